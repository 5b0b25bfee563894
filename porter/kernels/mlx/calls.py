"""A kernel of MLX's `metal_kernel` and its calls, whose arrays the stand-in device reads where they are.

MLX lets no Python code be a primitive of its graphs. So a call evaluates its inputs, and runs the kernel at once; what
is computed from its outputs stays lazy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch.utils.dlpack import from_dlpack

from aten_overlay.device import load, shader
from porter.core.errors import Place, PorterError
from porter.core.setting import setting
from porter.kernels.call import Call, Number, Output, Value, template_arguments
from porter.kernels.definition import check_kernel, check_texts, is_name
from porter.kernels.kernel import Kernel, Library
from porter.kernels.launch import launch, prepare
from porter.kernels.metal_kernel import write_options
from porter.kernels.mlx.library import find_library
from porter.kernels.validation import check_start, output_lengths, sizes, template_values

# What MLX calls the types that Metal has, and torch.
_TYPES = {name: name for name in ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64",
          "float16", "bfloat16", "float32", "complex64")} | {"bool_": "bool"}  # fmt: skip
_PACKAGE = str(Path(__file__).parents[2]) + "/"
# The compiler defines it where MLX asks for fast arithmetic, and sources may test it.
_FAST = "#define __FAST_MATH__ 1\n"


class MlxError(PorterError, ValueError):
    """What porter says of a kernel of MLX's: a ValueError, as MLX raises one."""


@dataclass(frozen=True)
class Launched:
    """One launch: the kernel, its call, the line that asked for the kernel (`origin`), and the line that called it."""

    kernel: Kernel
    call: Call
    origin: Place
    called: Place


Watcher: TypeAlias = Callable[[Launched], None]
Maker: TypeAlias = Callable[[Kernel], None]
_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_maker: ContextVar[Maker | None] = ContextVar("maker", default=None)


@contextmanager
def watching(watcher: Watcher, maker: Maker | None = None) -> Iterator[None]:
    """Calls `watcher` before each launch of a block, and `maker` with each kernel that is asked for."""
    with setting(_watcher, watcher), setting(_maker, maker):
        yield


class MetalFunction:
    """What `metal_kernel` returns. Every argument of a call is by name, as in MLX."""

    def __init__(self, mx: Any, kernel: Kernel) -> None:
        self._mx, self._kernel, self._origin = mx, kernel, _find_caller()
        self._torch: dict[Any, torch.dtype] = {getattr(mx, ours): getattr(torch, name) for ours, name in _TYPES.items()}

    @classmethod
    def of(
        cls,
        mx: Any,
        name: str,
        input_names: Sequence[str],
        output_names: Sequence[str],
        source: str,
        header: str = "",
        ensure_row_contiguous: bool = True,
        atomic_outputs: bool = False,
        compile_options: Mapping[str, str] | None = None,
    ) -> MetalFunction:
        """The arguments of `metal_kernel`. Raises PTR200-PTR204, PTR289 and PTR407 as ValueErrors."""
        with _as_value_errors(_find_caller()):
            check_texts(
                name, {"input_names": input_names, "output_names": output_names}, {"source": source, "header": header}
            )
            options = write_options(name, compile_options)
            fast = _FAST if compile_options and compile_options.get("math_mode") == "fast" else ""
            kernel = Kernel(
                name if is_name(name) else f"kernel_{''.join(c if c.isalnum() else '_' for c in name)}",
                tuple(input_names), tuple(output_names), source, options + fast + header,
                row_contiguous=ensure_row_contiguous, atomic_outputs=atomic_outputs,
            )  # fmt: skip
            check_kernel(kernel)
        if (maker := _maker.get()) is not None:
            maker(kernel)
        return cls(mx, kernel)

    def __call__(
        self,
        *,
        inputs: Sequence[Any],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Any],
        grid: Sequence[int],
        threadgroup: Sequence[int],
        template: Sequence[tuple[str, Any]] | None = None,
        init_value: float | None = None,
        verbose: bool = False,
        stream: Any = None,
    ) -> list[Any]:
        """Runs the kernel; its outputs as arrays of MLX, over the memory that the kernel wrote.

        `stream` says nothing here: there is one device, and a call has ended when it returns. Raises PTR205-PTR219,
        PTR224 and PTR263 as ValueErrors, and RuntimeError for what the sanitizer finds, with the line that
        made the call.
        """
        del stream
        called = _find_caller()
        with _as_value_errors(called):
            if len(inputs) != len(self._kernel.inputs):
                raise PorterError(
                    "PTR205", f"`inputs` of kernel `{self._kernel.name}` has {len(inputs)} entries for "
                    f"{len(self._kernel.inputs)} names", hint=f"Give one for each of {', '.join(self._kernel.inputs)}.",
                )  # fmt: skip
            outputs = self._read_outputs(output_shapes, output_dtypes)
            chosen = {n: self._torch.get(v, v) if isinstance(v, self._mx.Dtype) else v for n, v in template or ()}
            arguments = template_arguments(template_values(self._kernel, chosen))
            threads, group = sizes(self._kernel, "grid", grid), sizes(self._kernel, "threadgroup", threadgroup)
            start = self._read_start(init_value, outputs)

        def run(*arrays: Any) -> list[Any]:
            following = iter(arrays)
            with _as_value_errors(called):
                values = [self._read(n, v, following) for n, v in zip(self._kernel.inputs, inputs, strict=True)]
                call = Call(tuple(values), outputs, threads, group, arguments, start, in_host=True)
                return self._launch(call, called, verbose)

        arrays = [value for value in inputs if isinstance(value, self._mx.array)]
        return list(self._without_gradient(run)(*arrays)) if arrays else run()

    def _launch(self, call: Call, called: Place, verbose: bool) -> list[Any]:
        kernel = replace(self._kernel, library=self._find_library(call))
        prepared = prepare(kernel, call)
        if verbose:
            print(f"Generated source code for `{self._kernel.name}`:\n```\n{prepared.generated.source}\n```")
        if (watcher := _watcher.get()) is not None:
            watcher(Launched(self._kernel, call, self._origin, called))
        return [self._write(tensor) for tensor in launch(kernel, call, prepared)]

    def _find_library(self, call: Call) -> Library | None:
        has_complex = any(getattr(value, "dtype", None) == torch.complex64 for value in (*call.inputs, *call.outputs))
        return find_library(Path(getattr(self._mx, "__file__", "")).parent, self._kernel, has_complex)

    def _without_gradient(self, run: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        """`run` as a function that MLX knows to have no derivative: without it, one of zeros would come of it."""
        function = self._mx.custom_function(run)

        def refuse(*_: object) -> None:
            raise MlxError(
                "PTR225", f"kernel `{self._kernel.name}` has no derivative",
                hint="Put the call into a function under @mx.custom_function, and give that function a vjp.",
            )  # fmt: skip

        function.vjp(refuse)
        function.jvp(refuse)
        function.vmap(refuse)
        return function  # type: ignore[no-any-return]

    def _read_outputs(self, shapes: Sequence[Sequence[int]], dtypes: Sequence[Any]) -> tuple[Output, ...]:
        lengths = output_lengths(self._kernel, "output_shapes", [tuple(shape) for shape in shapes])
        if len(dtypes) != len(lengths):
            raise PorterError(
                "PTR206", f"`output_dtypes` of kernel `{self._kernel.name}` has {len(dtypes)} entries for "
                f"{len(lengths)} names", hint=f"Give one for each of {', '.join(self._kernel.outputs)}.",
            )  # fmt: skip
        return tuple(Output(s, self._find_type("output", d)) for s, d in zip(lengths, dtypes, strict=True))

    def _find_type(self, what: str, dtype: Any) -> torch.dtype:
        if dtype not in self._torch:
            raise PorterError("PTR209", f"{what} of kernel `{self._kernel.name}` is {dtype}, which Metal does not have",
                              hint="Convert it to float32.")  # fmt: skip
        return self._torch[dtype]

    def _read_start(self, value: Any, outputs: Sequence[Output]) -> Number | None:
        """MLX takes the start value for a float, and converts it to the type of each output."""
        check_start(self._kernel, value)
        integral = any(not output.dtype.is_floating_point for output in outputs)
        return int(value) if integral and isinstance(value, float) and value.is_integer() else value

    def _read(self, name: str, value: Any, following: Iterator[Any]) -> Value:
        """An input as the kernel takes it: an array's memory itself. Raises PTR207, PTR209 and PTR224."""
        if isinstance(value, (bool, int, float)):
            return value
        if not isinstance(value, self._mx.array):
            raise PorterError(
                "PTR207", f"input `{name}` of kernel `{self._kernel.name}` is a {type(value).__name__}",
                hint="Pass a mlx.core.array or a number.",
            )  # fmt: skip
        array = next(following)
        self._find_type(f"input `{name}`", array.dtype)
        try:
            self._mx.eval(array)
        except (ValueError, RuntimeError) as error:
            if "eval" not in str(error):
                raise
            raise MlxError(
                "PTR224", f"input `{name}` of kernel `{self._kernel.name}` has no values while MLX traces a function",
                hint="Call the kernel outside mx.vmap, and leave mx.compile disabled, as porter.mlx does.",
            ) from error  # fmt: skip
        if array.size == 0:
            return torch.empty(array.shape, dtype=self._torch[array.dtype])
        if _has_negative_stride(array):  # torch has none, and ends the process
            array = self._mx.contiguous(array)
            self._mx.eval(array)
        return from_dlpack(array)

    def _write(self, tensor: torch.Tensor) -> Any:
        """An array over the memory of a result."""
        device = load.started()
        assert device is not None, "prepare() has found the device"
        storage = shader.host_alias(tensor.untyped_storage(), device)
        host = torch.empty(0, dtype=tensor.dtype).set_(storage, 0, tensor.shape, tensor.stride())
        return self._mx.from_dlpack(host)


@contextmanager
def _as_value_errors(called: Place) -> Iterator[None]:
    """What porter raises as ValueErrors, and what the sanitizer finds, with the line of the call."""
    try:
        yield
    except MlxError:
        raise
    except PorterError as error:
        raise MlxError(
            error.code, error.what, error.place, f"{error.hint} The call is at {called}.".lstrip()
        ) from error
    except RuntimeError as error:
        raise RuntimeError(f"{error}\n  The call is at {called}.") from error


def _find_caller() -> Place:
    """The nearest line outside porter that led here."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return Place(frame.f_code.co_filename, frame.f_lineno)


def _has_negative_stride(array: Any) -> bool:
    """Whether an array runs backwards through memory in some dimension."""
    try:
        strides = memoryview(array).strides or ()
    except TypeError:  # no buffer: DLPack alone tells
        return False
    return any(stride < 0 for stride in strides)
