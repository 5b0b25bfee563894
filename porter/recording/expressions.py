"""Turns the graphs that one call ran into one expression of its tensor arguments.

Complex numbers are pairs of parts, merged again if both are parts of one argument.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from porter.core.dtypes import DType, Kind, name_torch
from porter.core.errors import PorterError, explained
from porter.mpsgraph.graph import RESULTS, Call, Cast, Constant, Expr, Input, Literal, Scalar, Value, size
from porter.mpsgraph.operations import by_selector
from porter.recording.calls import argument_parts, find_dtype
from porter.recording.runs import same_elements

if TYPE_CHECKING:
    import torch

    from aten_overlay.apple.mpsgraph.objects import Ref
    from aten_overlay.apple.mpsgraph.recorder import GraphRun

JOIN = "complexTensorWithRealTensor:imaginaryTensor"
_MAX_OPERATIONS = 600
_TYPES = ("dataType", "toType", "returnIndicesDataType")
_TABLE = 16  # the most numbers host code passes to a graph at once, such as sizes
# Operations that only move elements: elementwise, each is its argument.
_SHAPES = ("reshapeTensor", "broadcastTensor", "squeezeTensor", "expandDimsOfTensor", "identityWithTensor")


def join_parts(real: Expr, imaginary: Expr, dtype: DType) -> Call:
    """The complex number with these parts."""
    return Call(JOIN, (real, imaginary), dtype)


def complex_constant(value: complex, dtype: DType) -> Call:
    """A complex constant as a pair of real ones, which may differ from run to run."""
    return join_parts(Constant(value.real, dtype.real), Constant(value.imag, dtype.real), dtype)


def merge_parts(expr: Expr) -> Expr:
    """Merges the parts of each argument, and of each constant without an imaginary part."""
    if isinstance(expr, Cast):
        return replace(expr, arg=merge_parts(expr.arg))
    if not isinstance(expr, Call):
        return expr
    match expr.op, tuple(map(merge_parts, expr.args)):
        case op, (Constant() | Scalar() as real, Constant(value=0)) if op == JOIN:
            return replace(real, dtype=expr.dtype)
        case op, (Scalar(name=real), Scalar(name=imaginary)) if op == JOIN and _are_parts_of_one(real, imaginary):
            return Scalar(real.removesuffix(".real()"), expr.dtype)
        case _, args:
            return replace(expr, args=args)


def _are_parts_of_one(real: str, imaginary: str) -> bool:
    name = real.removesuffix(".real()")
    return (real, imaginary) == tuple(argument_parts(name, 0))


def build_expression(
    runs: Sequence[GraphRun],
    inputs: Mapping[str, torch.Tensor],
    given: Mapping[str, torch.Tensor],
    results: Sequence[torch.Tensor],
    elementwise: bool,
) -> Expr:
    """The results of a call as an expression of its tensor `inputs`, by schema name.

    `given` are copies of the inputs from before the call, which may write to them. A graph may read the results of an
    earlier one. If `elementwise`, omits operations that only move elements, and raises an error for any operation not
    in `operations.py`. Raises PTR135.
    """
    known: dict[int, Expr] = {tensor.data_ptr(): Input(name, _dtype(tensor.dtype)) for name, tensor in inputs.items()}
    for run in runs:
        reader = _Reader(run, dict(known), given, elementwise)
        known.update({address: reader.read(ref) for ref, address in run.results.items()})
    found = [_read_result(tensor, runs, known, given) for tensor in results if tensor.numel()]
    if not found:
        raise explained("PTR135", "every result is empty")
    expression = found[0] if len(found) == 1 else Call(RESULTS, tuple(found), _dtype(results[0].dtype))
    if size(expression, _MAX_OPERATIONS) >= _MAX_OPERATIONS:
        raise _unsupported(f"over {_MAX_OPERATIONS} operations when expanded")
    return expression


def _read_result(
    result: torch.Tensor, runs: Sequence[GraphRun], known: Mapping[int, Expr], given: Mapping[str, torch.Tensor]
) -> Expr:
    """The expression of a result: written by a graph, or copied, which its elements show.

    Host code may write the real part of a complex result with one graph, then the imaginary part with another.
    """
    if any(result.data_ptr() in run.results.values() for run in runs):
        return _read_as(known, result.data_ptr(), _dtype(result.dtype), "writes")
    if not runs:
        copied = [name for name, tensor in given.items() if same_elements(result.cpu(), tensor)]
        if len(copied) == 1 and _is_distinctive(given[copied[0]]):
            return Input(copied[0], _dtype(given[copied[0]].dtype))
        raise explained("PTR135", "the call ran no graph")
    if result.is_complex() and len(runs) > 1:
        whole = result.detach().cpu()
        real, imaginary = _find_copy(whole.real, runs[-2], known), _find_copy(whole.imag, runs[-1], known)
        return join_parts(real, imaginary, _dtype(result.dtype))
    return _find_copy(result, runs[-1], known)


def _read_as(known: Mapping[int, Expr], address: int, dtype: DType, does: str) -> Expr:
    """The expression at an address, read with this dtype. Raises PTR135."""
    found = known[address]
    if (found.dtype.kind is Kind.COMPLEX) == (dtype.kind is Kind.COMPLEX):
        return found
    if dtype.kind is Kind.COMPLEX and (imaginary := known.get(address + dtype.real.size)):
        return join_parts(found, imaginary, dtype)
    raise _unsupported(f"a placeholder or a result that {does} complex elements as pairs of real ones")


def _find_copy(tensor: torch.Tensor, run: GraphRun, known: Mapping[int, Expr]) -> Expr:
    """The result of a graph that has these elements, which host code copied."""
    from aten_overlay.apple.mpsgraph.recorder import evaluate

    for ref, address in run.results.items():
        if same_elements(evaluate(run.graph, ref, dict(run.values)), tensor):
            return known[address]
    raise _unsupported("nothing that writes the result")


class _Reader:
    """Reads one graph from its results back to its placeholders."""

    def __init__(
        self, run: GraphRun, known: Mapping[int, Expr], given: Mapping[str, torch.Tensor], elementwise: bool
    ) -> None:
        self._run, self._addresses, self._given, self._elementwise = run, known, given, elementwise
        self._read: dict[Ref, Expr] = {}

    def read(self, ref: Ref) -> Expr:
        if ref not in self._read:
            self._read[ref] = self._read_placeholder(ref) if ref in self._run.feeds else self._read_operation(ref)
        return self._read[ref]

    def _read_placeholder(self, ref: Ref) -> Expr:
        """A placeholder is a tensor, an earlier result, a number, a copy of a tensor, or a few numbers."""
        dtype, value = self._dtype(ref), self._run.values[ref]
        if self._run.feeds[ref] in self._addresses:
            return _read_as(self._addresses, self._run.feeds[ref], dtype, "reads")
        copied = [name for name, tensor in self._given.items() if same_elements(value, tensor)]
        if not copied and value.numel() == 1:
            return complex_constant(value.item(), dtype) if value.is_complex() else Constant(value.item(), dtype)
        if not copied and not self._elementwise and value.numel() <= _TABLE:
            return Literal(tuple(value.flatten().tolist()), dtype)
        if len(copied) != 1:
            raise _unsupported("a placeholder that is not a tensor argument")
        if value.numel() == 1 and (dtype.kind is not Kind.FLOATING or value.item() in (0, 1)):
            raise _unsupported("a placeholder that may be a one-element tensor or a number")
        given = Input(copied[0], _dtype(self._given[copied[0]].dtype))
        return given if given.dtype == dtype else Cast(given, dtype)

    def _read_operation(self, ref: Ref) -> Expr:
        node, dtype = self._run.graph.nodes[ref.node], self._dtype(ref)
        if node.selector.startswith("constantWithScalar") and isinstance(node.arguments[0], (bool, int, float)):
            return Constant(node.arguments[0], dtype)
        if node.selector.startswith("constantWithRealPart") and dtype.kind is Kind.COMPLEX:
            real, imaginary = node.arguments[:2]
            return complex_constant(complex(real, imaginary), dtype)  # type: ignore[arg-type]
        if node.selector == "castTensor:toType":
            return Cast(self._read_argument(node.arguments[0], dtype), dtype)
        if self._elementwise and node.selector.startswith(_SHAPES):
            return self._read_argument(node.arguments[0], dtype)
        row = by_selector().get(node.selector)
        if row is not None:
            return Call(
                row.op, tuple(self._read_argument(each, dtype) for each in node.arguments if _is_ref(each)), dtype
            )
        if self._elementwise:
            raise _unsupported(f"the operation `{node.selector}`, which is not elementwise")
        op = f"{node.selector}[{ref.output}]" if ref.output else node.selector
        named = zip(node.selector.split(":"), node.arguments, strict=False)
        numbers = _list_numbers(node.results[ref.output])
        return Call(
            op, tuple(self._read_argument(_name_type(part, each), dtype, numbers) for part, each in named), dtype
        )

    def _read_argument(self, value: Any, dtype: DType, numbers: Sequence[float] = ()) -> Expr:
        """An argument of an operation; `numbers` are the values of a bytes argument."""
        if _is_ref(value):
            return self.read(value)
        if isinstance(value, bytes) and numbers:
            return Call("list", tuple(Constant(number, dtype) for number in numbers), dtype)
        if isinstance(value, list) and any(map(_is_ref, value)):
            return Call("list", tuple(self._read_argument(each, dtype) for each in value), dtype)
        return Literal(_to_value(value), dtype)

    def _dtype(self, ref: Ref) -> DType:
        return _dtype(self._run.graph.nodes[ref.node].types[ref.output])


def _list_numbers(result: torch.Tensor | None) -> list[float]:
    """The values of a small, real, constant result."""
    if result is None or result.device.type == "meta" or result.is_complex() or result.numel() > _TABLE:
        return []
    return list(result.flatten().tolist())


def _name_type(part: str, value: Any) -> Any:
    """The value of an argument or descriptor property; a dtype by its name."""
    from aten_overlay.apple.mpsgraph.types import TORCH

    if part not in _TYPES or value not in TORCH:
        return value
    dtype = find_dtype(TORCH[value])
    return dtype.metal if dtype else name_torch(TORCH[value])


def _to_value(value: Any) -> Value:
    """A decoded argument as a plain value; a descriptor as its properties."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_to_value, value))
    if hasattr(value, "properties"):
        return tuple(f"{name}={_to_value(_name_type(name, each))}" for name, each in value.properties)
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return value if isinstance(value, (bool, int, float, str, type(None))) else type(value).__name__


def _is_distinctive(tensor: torch.Tensor) -> bool:
    """Whether its elements are unlikely to come from a fill."""
    first = tensor.flatten()[0]
    return bool((tensor != first).any()) or (tensor.is_floating_point() and first.item() not in (0, 1))


def _is_ref(value: Any) -> bool:
    return hasattr(value, "node")


def _dtype(dtype: torch.dtype) -> DType:
    metal = find_dtype(dtype)
    if metal is None:
        raise _unsupported(f"elements of type {name_torch(dtype)}")
    return metal


def _unsupported(what: str) -> PorterError:
    return explained("PTR135", f"the recorded graph has {what}")
