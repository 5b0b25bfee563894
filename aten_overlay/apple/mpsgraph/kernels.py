"""Kernels of Metal Performance Shaders that host code encodes by themselves, not as part of a graph.

Source: Apple's documentation of MPSMatrixDecompositionLU, MPSMatrixMultiplication, MPSMatrixSolveLU,
MPSMatrixSolveTriangular, MPSNDArrayIdentity and MPSNDArrayMatrixMultiplication. They run when they are encoded, after
what their command buffer holds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph.objects import HANDLER, Array, Frameworks, Handle, Value
from aten_overlay.apple.mpsgraph.types import over
from aten_overlay.errors import OverlayError

_SUCCESS, _SINGULAR = 0, -2  # MPSMatrixDecompositionStatus
_CLASS = "MPSKernel"


@dataclass(frozen=True)
class Encoded:
    """What a kernel is encoded with: its arguments by the parts of the selector, and how to read them."""

    frameworks: Frameworks
    host_address: Callable[[int], int]
    kernel: int
    arguments: dict[str, Value]

    def property(self, name: str) -> Any:
        return self.frameworks.property(self.kernel, name)

    def array(self, name: str) -> Tensor:
        return self._over(self.arguments[name])

    def arrays(self, name: str) -> list[Tensor]:
        values = self.arguments[name]
        assert isinstance(values, list)
        return [self._over(value) for value in values]

    def write_status(self, value: int) -> None:
        handle = self.arguments["status"]
        if isinstance(handle, Handle):
            ctypes.c_int32.from_address(self.host_address(handle.address)).value = value

    def _over(self, value: Value) -> Tensor:
        assert isinstance(value, Handle)
        array = Array()
        self.frameworks.library.porter_array_of(value.address, ctypes.byref(array))
        return over(array, self.host_address)


def _decompose(call: Encoded) -> None:
    """P A = L U; pivots count from 0; the status tells of a zero on the diagonal of U."""
    made, pivots, _ = torch.linalg.lu_factor_ex(call.array("sourceMatrix"))
    call.array("resultMatrix").copy_(made)
    target = call.array("pivotIndices")
    target.view(torch.int32).copy_((pivots - 1).reshape(target.shape))
    call.write_status(_SINGULAR if bool((made.diagonal() == 0).any()) else _SUCCESS)


def _solve_decomposed(call: Encoded) -> None:
    """op(A) X = B, of a decomposed A."""
    pivots = call.array("pivotIndices").view(torch.int32).flatten() + 1
    made = torch.linalg.lu_solve(
        call.array("sourceMatrix"), pivots, call.array("rightHandSideMatrix"), adjoint=bool(call.property("transpose"))
    )
    call.array("solutionMatrix").copy_(made)


def _solve_triangular(call: Encoded) -> None:
    """op(A) X = alpha B, or X op(A) = alpha B; `upper` is said of A as it is."""
    source, upper = call.array("sourceMatrix"), bool(call.property("upper"))
    if call.property("transpose"):
        source, upper = source.mT, not upper
    made = torch.linalg.solve_triangular(
        source, call.property("alpha") * call.array("rightHandSideMatrix"), upper=upper,
        left=not call.property("right"), unitriangular=bool(call.property("unit")),
    )  # fmt: skip
    call.array("solutionMatrix").copy_(made)


def _multiply(call: Encoded) -> None:
    """D = alpha A B + beta D, of the last two dimensions."""
    one, other = call.arrays("sourceArrays")
    target = call.array("destinationArray")
    made = call.property("alpha") * torch.matmul(one, other)
    beta = call.property("beta")
    target.copy_(made + beta * target if beta else made)


def _multiply_matrices(call: Encoded) -> None:
    """C = alpha op(A) op(B) + beta C, of as many rows and columns as the kernel was made for."""
    rows, columns, interior = (int(call.property(name)) for name in ("rows", "columns", "interior"))
    first, second = call.array("leftMatrix"), call.array("rightMatrix")
    first = (first.mT if call.property("transposeLeft") else first)[:rows, :interior]
    second = (second.mT if call.property("transposeRight") else second)[:interior, :columns]
    target = call.array("resultMatrix")[:rows, :columns]
    product = call.property("alpha") * torch.matmul(first, second)
    beta = call.property("beta")
    target.copy_(product + beta * target if beta else product)


def _copy(call: Encoded) -> None:
    target = call.array("destinationArray")
    target.copy_(call.array("sourceArray").reshape(target.shape))


_ENCODERS = {
    "MPSMatrixDecompositionLU": _decompose,
    "MPSMatrixSolveLU": _solve_decomposed,
    "MPSMatrixSolveTriangular": _solve_triangular,
    "MPSMatrixMultiplication": _multiply_matrices,
    "MPSNDArrayMatrixMultiplication": _multiply,
    "MPSNDArrayIdentity": _copy,
}


def install(frameworks: Frameworks, host_address: Callable[[int], int]) -> object:
    """Handles messages that MPSKernel and its subclasses have no method for, as long as the result is referenced."""

    def message(kernel: int, selector: bytes, _types: bytes, count: int, given: Any, _result: Any) -> int:
        def encode() -> None:
            name = frameworks.library.porter_class_name(kernel).decode()
            if name not in _ENCODERS or not selector.startswith(b"encodeTo"):
                raise OverlayError("PTR131", f"-[{name} {selector.decode()}] is not supported", hint="Report it.")
            values = (frameworks.value(given[i]) for i in range(count))
            arguments = dict(zip(selector.decode().split(":"), values, strict=False))
            _ENCODERS[name](Encoded(frameworks, host_address, kernel, arguments))

        return finish_earlier(selector, given) or frameworks.catch_errors(encode)

    def finish_earlier(selector: bytes, arguments: Any) -> int:
        """Runs what was encoded into the same command buffer before, and may wait for its commit; 1 after an error."""
        places = (i for i, part in enumerate(selector.split(b":")) if part.endswith(b"ommandBuffer"))
        return any(frameworks.library.porter_finish_encoded(ctypes.c_void_p(arguments[i].value.p)) for i in places)

    handler = HANDLER(message)
    frameworks.library.porter_handle_messages(_CLASS.encode(), handler)
    return handler
