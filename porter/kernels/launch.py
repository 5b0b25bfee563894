"""Runs generated source on the mps device, the stand-in's on Linux or Apple's on a Mac, and on CUDA devices.

The first two go through `torch.mps.compile_shader`. Not yet run on Apple hardware.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import torch

from aten_overlay.device import load
from aten_overlay.device.shader import ShaderLibrary, bind_host
from aten_overlay.errors import OverlayError
from aten_overlay.metal.family import REFUSED
from aten_overlay.metal.sanitizer.checks import NAMES, select
from aten_overlay.metal.sanitizer.results import find_unwritten
from porter.core.errors import Place, PorterError
from porter.core.setting import setting
from porter.kernels import cuda
from porter.kernels.call import DEVICE, Call, Number, Value, device_of, is_cuda, operand, output_operand
from porter.kernels.kernel import Kernel
from porter.kernels.signature import Buffer, Content, Generated, generate, pointer_name, subscripts, tensor_views
from porter.kernels.validation import check_call, check_generated


@dataclass(frozen=True)
class Mode:
    """How the stand-in runs kernels. Apple's device knows none of this, a GPU of NVIDIA's `shuffle` alone.

    `checked` makes an access out of bounds an error; `shuffle` is the seed of a shuffled order; `poison` fills
    outputs without a start value with what no kernel writes; `traced` tells who writes what; `sanitize` makes all
    that the sanitizer finds an error. `arithmetic` is what Apple's compiler may make of floating-point operations.
    """

    checked: bool = False
    shuffle: int | None = None
    poison: bool = False
    traced: bool = False
    sanitize: bool = False
    arithmetic: str = "default"


@dataclass(frozen=True)
class Prepared:
    """A kernel's source for some types, and the function that runs it compiled."""

    generated: Generated
    function: Any


PLAIN = Mode()
_mode: ContextVar[Mode] = ContextVar("mode", default=PLAIN)
# Gets a kernel, its call and its outputs, before each launch.
Observer: TypeAlias = Callable[[Kernel, Call, Sequence[torch.Tensor]], None]
_observer: ContextVar[Observer | None] = ContextVar("observer", default=None)
_POISON = 0xA5
# A traced kernel has to run one thread after the other, as only one with a synchronizing function does.
_BODY = re.compile(r'^(?=#line \d+ "[^"]* body"$)', re.MULTILINE)
_SYNCHRONIZE = "metal::simdgroup_barrier(metal::mem_flags::mem_none);\n"
_UNKNOWN_TYPE = re.compile(r"unknown type name '(\w+)'")
_NARROW = {bool: "uint8", int: "int32"}
MOST_SHARED = 32 * 1024


def running(mode: Mode) -> AbstractContextManager[None]:
    """Runs the kernels of a block in `mode`."""
    return setting(_mode, mode)


def observing(observer: Observer) -> AbstractContextManager[None]:
    """Calls `observer` before each launch of a block."""
    return setting(_observer, observer)


def write_source(kernel: Kernel, call: Call) -> Generated:
    """The source of `kernel` for the types of `call`. Raises PTR208-PTR218 for what cannot run."""
    check_call(kernel, call)
    return write_signature(kernel, call)


def write_signature(kernel: Kernel, call: Call) -> Generated:
    """The source for types that Metal has. Raises PTR213."""
    inputs = tuple(operand(n, v, kernel.tensors) for n, v in zip(kernel.inputs, call.inputs, strict=True))
    outputs = tuple(output_operand(n, o) for n, o in zip(kernel.outputs, call.outputs, strict=True))
    generated = generate(kernel, inputs, outputs, call.template)
    check_generated(kernel, generated)
    return generated


def prepare(kernel: Kernel, call: Call) -> Prepared:
    """What launches calls like this one, with its source compiled. Raises PTR208-PTR220 for a call that cannot run."""
    generated = write_source(kernel, call)
    if is_cuda(device_of(call.inputs)):
        seed = _mode.get().shuffle
        library = cuda.compiled(generated.source) if seed is None else cuda.compiled_in_order(generated.source, seed)
        function = getattr(library, generated.function)
    else:
        require_device(kernel)
        function = getattr(_compile(kernel, call, generated), generated.function)
    _check_limits(kernel, call, function)
    return Prepared(generated, function)


def current_mode() -> Mode:
    """How kernels run now."""
    return _mode.get()


def is_plain() -> bool:
    """Whether kernels run as they are, and nothing observes them."""
    return _mode.get() is PLAIN and _observer.get() is None


def launch(kernel: Kernel, call: Call, prepared: Prepared) -> tuple[torch.Tensor, ...]:
    """Runs a call on its device; its outputs."""
    device = DEVICE if call.in_host else device_of(call.inputs)
    inputs = lay_out(kernel, call.inputs)
    outputs = tuple(allocate(o.shape, o.dtype, call.init_value, device) for o in call.outputs)
    if 0 not in call.grid:
        _run(prepared.function, kernel, prepared.generated, call, inputs, outputs)
    return outputs


def require_device(kernel: Kernel) -> None:
    """Raises PTR220 if this process has no mps device."""
    if not torch.backends.mps.is_available():
        raise PorterError(
            "PTR220", f"kernel `{kernel.name}` needs the mps device, and this process has none",
            hint="Run the program with `python -m aten_overlay SCRIPT.py`, or on a Mac.",
        )  # fmt: skip


def _compile(kernel: Kernel, call: Call, generated: Generated) -> Any:
    """The library of a call. Raises PTR219, which tells of values that the body takes for lists."""
    try:
        return compiled(generated.source, _mode.get())
    except PorterError as error:
        pairs = zip(kernel.inputs, call.inputs, strict=True)
        values = [name for name, value in pairs if not isinstance(value, torch.Tensor) or not value.dim()]
        indexed = next(subscripts(kernel.body, values), None)
        if error.code != "PTR219" or indexed is None:
            raise
        hint = f"`{indexed[0]}` has no dimensions, and is a value: write it without [], or pass a tensor with some."
        raise PorterError(error.code, error.what, error.place, hint) from None


@lru_cache(maxsize=256)
def compiled(source: str, mode: Mode) -> Any:
    """The library that `source` compiles to. Raises PTR219 with the compiler's message, which stands there once."""
    device = load.started()
    try:
        if device is None or mode == PLAIN:
            return torch.mps.compile_shader(source)
        text = _BODY.sub(_SYNCHRONIZE, source) if mode.traced else source
        return ShaderLibrary(
            text,
            device,
            checked=mode.checked,
            shuffle=mode.shuffle,
            traced=mode.traced,
            sanitize=mode.sanitize,
            arithmetic=mode.arithmetic,
        )
    except SyntaxError as error:
        what, place = _compile_error(error)
        cause = error.__cause__
        if isinstance(cause, OverlayError) and cause.code == REFUSED:
            raise PorterError(cause.code, cause.what, place, cause.hint) from None
        raise PorterError("PTR219", f"the kernel does not compile: {what}", place, advise(what)) from None


def advise(what: str) -> str:
    """What to do about a compiler's message."""
    unknown = _UNKNOWN_TYPE.search(what)
    if unknown:
        name = unknown[1]
        return f'If `{name}` is a template parameter, give it a type: template={{"{name}": torch.float32}}.'
    return "Fix the body or the header; verbose=True prints the whole source."


def _compile_error(error: SyntaxError) -> tuple[str, Place | None]:
    """What the compiler said, and of which line where that is known by itself."""
    cause = error.__cause__
    if not isinstance(cause, OverlayError):
        return str(error), None
    what = cause.what.removeprefix("the Metal source does not compile: ")
    return what, Place(cause.place.file, cause.place.line) if cause.place else None


def _check_limits(kernel: Kernel, call: Call, function: Any) -> None:
    """Raises PTR212 or PTR214 if the pipeline allows fewer threads, or less memory, than is asked for."""
    most = function.max_threads_per_threadgroup
    threads = call.group[0] * call.group[1] * call.group[2]
    if threads > most:
        raise PorterError(
            "PTR212", f"threadgroup {call.group} of kernel `{kernel.name}` has {threads} threads; it takes {most}",
            hint="Make `threadgroup` smaller; the grid may stay.",
        )  # fmt: skip
    shared = function.static_thread_group_memory_length
    if shared > MOST_SHARED:
        raise PorterError(
            "PTR214", f"kernel `{kernel.name}` declares {shared} bytes of threadgroup memory; Metal has {MOST_SHARED}",
            hint="Make its threadgroup arrays smaller.",
        )  # fmt: skip


def lay_out(kernel: Kernel, inputs: Sequence[Value]) -> tuple[Value, ...]:
    """The inputs as the kernel takes them: dense ones are not copied."""
    if not kernel.row_contiguous:
        return tuple(inputs)
    return tuple(each.contiguous() if isinstance(each, torch.Tensor) else each for each in inputs)


def allocate(shape: Sequence[int], dtype: torch.dtype, init_value: Number | None, device: str = DEVICE) -> torch.Tensor:
    """Memory for an output."""
    if init_value is None:
        empty = torch.empty(shape, dtype=dtype, device=device)
        if _mode.get().poison and empty.numel():
            empty.view(-1).view(torch.uint8).fill_(_POISON)
        return empty
    return torch.full(shape, init_value, dtype=dtype, device=device)


def _run(
    function: Any,
    kernel: Kernel,
    generated: Generated,
    call: Call,
    inputs: Sequence[Value],
    outputs: Sequence[torch.Tensor],
) -> None:
    arguments, casts = arrange_arguments(kernel, generated, inputs, outputs)
    if call.in_host:
        arguments = [bind_host(a) if isinstance(a, torch.Tensor) and a.device.type == "cpu" else a for a in arguments]
    observer = _observer.get()
    if observer is not None:
        observer(kernel, call, outputs)
    try:
        function(*arguments, threads=list(call.grid), group_size=list(call.group), arg_casts=casts or None)
    except OverlayError as error:
        raise cuda.convert(error) from error
    except RuntimeError as error:
        raise RuntimeError(rename_operands(str(error), kernel, generated)) from None
    if call.init_value is None and "uninitialized" in select(NAMES if _mode.get().sanitize else ()):
        _require_results(kernel, outputs)


def arrange_arguments(
    kernel: Kernel, generated: Generated, inputs: Sequence[Value], outputs: Sequence[torch.Tensor]
) -> tuple[list[Any], dict[int, str]]:
    """What is bound for each buffer, and which of these `compile_shader` has to narrow."""
    given: Mapping[str, Value] = dict(zip((*kernel.inputs, *kernel.outputs), (*inputs, *outputs), strict=True))
    arguments: list[Any] = []
    casts: dict[int, str] = {}
    for index, buffer in enumerate(generated.buffers):
        value, narrow = _argument(buffer, given[buffer.operand])
        arguments.append(value)
        if narrow:
            casts[index] = narrow
    return arguments, casts


def rename_operands(message: str, kernel: Kernel, generated: Generated) -> str:
    """A message about generated source, with the names that the kernel's author gave."""
    renamed = message.replace(f"`{generated.function}`", f"`{kernel.name}`")
    for name in tensor_views(kernel):
        renamed = renamed.replace(f"`{pointer_name(name)}`", f"`{name}`")
    return renamed


def _require_results(kernel: Kernel, outputs: Sequence[torch.Tensor]) -> None:
    """Raises PTR263 if no thread wrote some element of a result, as far as the sanitizer watched it."""
    device = load.started()
    if device is None:
        return
    for name, output in zip(kernel.outputs, outputs, strict=True):
        address = device.host_address(output.data_ptr()) if output.numel() else 0
        found = find_unwritten(address, output.numel(), output.element_size()) if address else None
        if found:
            index = [int(i) for i in torch.unravel_index(torch.tensor(found.first), output.shape)]
            raise PorterError(
                "PTR263",
                f"kernel `{kernel.name}`: no thread writes {name}{index}, nor {found.count - 1} more of its elements",
                hint="Cover all of the output, or give it an init_value.",
            )


def _argument(buffer: Buffer, value: Value) -> tuple[object, str]:
    """What is bound for a buffer, and how `compile_shader` has to narrow it: it passes 64-bit integers by itself."""
    if buffer.content is Content.DATA:
        return (value, "") if isinstance(value, torch.Tensor) else (value, _NARROW.get(type(value), ""))
    shape, strides, offset = _layout(value)
    match buffer.content:
        case Content.SHAPE | Content.EXTENTS:
            return shape, "int32"
        case Content.STRIDES:
            return strides, ""
        case Content.RANK:
            return 0 if not isinstance(value, torch.Tensor) else value.dim(), "int32"
    return offset, ""


def _layout(value: Value) -> tuple[list[int], list[int], int]:
    """Shape, strides and storage offset; a value without dimensions has one of size 1, for lists may not be empty."""
    if not isinstance(value, torch.Tensor):
        return [1], [1], 0
    return list(value.shape) or [1], list(value.stride()) or [1], int(value.storage_offset())


@dataclass
class LastSource:
    """The source of a kernel's last call; "" before the first, and for types that Metal lacks."""

    text: str = ""


_sources: dict[Kernel, LastSource] = {}


def find_last_source(kernel: Kernel) -> LastSource:
    """The source of a kernel's last call, which later calls change."""
    return _sources.setdefault(kernel, LastSource())
