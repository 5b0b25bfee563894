"""Calls like one that ran before: all that does not depend on addresses and numbers is kept, down to the launch."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch._C import (
    _dispatch_keys,
    _get_tracing_state,
    _len_torch_dispatch_stack,
    _len_torch_function_stack,
    is_grad_enabled,
)
from torch._C._autograd import _profiler_enabled
from torch._C._functorch import peek_interpreter_stack
from torch.autograd import forward_ad

from aten_overlay.cuda.kernel import CudaKernel
from aten_overlay.cuda.repeated import RepeatedLaunch as CudaLaunch
from aten_overlay.device.calls import Run, bind, find_module
from aten_overlay.device.repeated import RepeatedLaunch, repeat
from aten_overlay.device.shader import MetalKernel as Pipeline
from aten_overlay.errors import OverlayError
from aten_overlay.metal.sanitizer.checks import select
from porter.kernels import cuda
from porter.kernels.call import Call, Number, Output, device_of, is_intercepted, is_large
from porter.kernels.kernel import Kernel
from porter.kernels.launch import (
    LastSource,
    Prepared,
    allocate,
    arrange_arguments,
    find_last_source,
    is_plain,
    lay_out,
    rename_operands,
)
from porter.kernels.signature import Content

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def is_watched(values: Sequence[object]) -> bool:
    """Whether a mode, a transform, a tracer, a profiler or a gradient needs the operator of a call with `values`."""
    if (
        _len_torch_dispatch_stack()
        or _len_torch_function_stack()
        or peek_interpreter_stack() is not None
        or _get_tracing_state() is not None
        or _profiler_enabled()
        or forward_ad._current_level >= 0
    ):
        return True
    differentiates = is_grad_enabled()
    for value in values:
        if isinstance(value, torch.Tensor) and (type(value) not in _PLAIN or (differentiates and value.requires_grad)):
            return True
    return False


_MOST = 512  # of a kernel
_NUMBERS = (float, int, bool)
_ATOMS = frozenset((int, bool, str, torch.dtype, torch.Size, type(None)))  # equal means the same, within one type


@dataclass(frozen=True)
class Repetition:
    """A call that ran, ready to run with other values: which values and outputs it binds, where, and the launch.

    `like` is an input on the device of the outputs. `copies` makes inputs dense. `native` does all of it in C++, where
    that is compiled.
    """

    kernel: Kernel
    prepared: Prepared
    outputs: tuple[Output, ...]
    init_value: Number | None
    tensors: tuple[int, ...]
    numbers: tuple[int, ...]
    launch: RepeatedLaunch | CudaLaunch
    source: LastSource
    device: str
    like: int | None = None
    copies: bool = False
    native: Run | None = None

    def run(self, inputs: Any) -> list[torch.Tensor]:
        """The outputs for inputs like those of the first call."""
        try:
            outputs = self.native(inputs) if self.native else self._run_in_python(inputs)
        except OverlayError as error:
            if isinstance(self.launch, CudaLaunch):
                raise cuda.convert(error) from error
            raise RuntimeError(rename_operands(str(error), self.kernel, self.prepared.generated)) from error
        self.source.text = self.prepared.generated.source
        return outputs

    def _run_in_python(self, inputs: Any) -> list[torch.Tensor]:
        given = [*(inputs.values() if type(inputs) is dict else inputs)]
        if self.like is not None and self.init_value is None and isinstance(self.launch, CudaLaunch):
            like = given[self.like]  # whose device need not be parsed
            outputs = [like.new_empty(each.shape, dtype=each.dtype) for each in self.outputs]
        else:
            outputs = [allocate(each.shape, each.dtype, self.init_value, self.device) for each in self.outputs]
        if self.copies:
            given = [each.contiguous() if isinstance(each, torch.Tensor) else each for each in given]
        given += outputs
        self.launch.run([given[i].data_ptr() for i in self.tensors], [given[i] for i in self.numbers])
        return outputs


Repetitions: TypeAlias = dict[Hashable, Repetition]


def describe(inputs: object, rest: Sequence[object], by_value: bool) -> Hashable:
    """All of a call that its checks, source and launch depend on; None for one that has to go the long way.

    `rest` are the arguments beside the inputs. `by_value`: what is checked depends on the values of numbers.
    """
    if torch.compiler.is_compiling() or is_intercepted() or not is_plain():
        return None
    if (native := find_module()) is not None:
        likeness: Hashable = native.describe(inputs, rest, by_value)
        return likeness
    values = _list_values(inputs)
    if values is None or is_watched(values):
        return None
    names = tuple(inputs) if type(inputs) is dict else None
    try:
        return names, tuple([_describe_value(value, by_value) for value in values]), _freeze_rest(rest)
    except (TypeError, RecursionError):
        return None


def _list_values(inputs: Any) -> Sequence[Any] | None:
    """The inputs in the order given; None for what is neither a mapping nor a list."""
    if type(inputs) is dict:
        return tuple(inputs.values())
    return tuple(inputs) if type(inputs) in (list, tuple) else None


def keep_repetition(
    kept: Repetitions, likeness: Hashable, kernel: Kernel, inputs: object, call: Call, prepared: Prepared
) -> None:
    """Keeps what repeats a call that was given `inputs`, if it can be repeated."""
    names = tuple(inputs) if isinstance(inputs, dict) else kernel.inputs
    repetition = _make_repetition(kernel, names, call, prepared)
    if repetition is not None:
        if len(kept) >= _MOST:
            kept.clear()
        kept[likeness] = repetition


def _make_repetition(kernel: Kernel, names: Sequence[str], call: Call, prepared: Prepared) -> Repetition | None:
    """None unless a kernel of the stand-in or of a CUDA device ran, unwatched, wherever its memory begins."""
    buffers = prepared.generated.buffers
    values = dict(zip(kernel.inputs, lay_out(kernel, call.inputs), strict=True))
    copies = any(values[name] is not given for name, given in zip(kernel.inputs, call.inputs, strict=True))
    moves = any(buffer.content is Content.STORAGE_OFFSET for buffer in buffers)
    function, device = prepared.function, device_of(call.inputs)
    if not isinstance(function, Pipeline | CudaKernel) or select() or 0 in call.grid or moves:
        return None
    outputs = [torch.empty(each.shape, dtype=each.dtype, device=device) for each in call.outputs]
    arguments, casts = arrange_arguments(kernel, prepared.generated, tuple(values.values()), outputs)
    held = [[each] if buffer.content is Content.RANK else each for buffer, each in zip(buffers, arguments, strict=True)]
    launch: RepeatedLaunch | CudaLaunch | None
    if isinstance(function, CudaKernel):
        launch = function.repeat(held, call.grid, call.group, casts)
    else:
        launch = repeat(function, held, call.grid, call.group, casts)
    if launch is None:
        return None
    places = {name: place for place, name in enumerate((*names, *kernel.outputs))}
    bound = [places[each.operand] for each in buffers if each.content is Content.DATA]
    numbers = {place for place, value in enumerate(names) if not isinstance(values[value], torch.Tensor)}
    taken = tuple(place for place in bound if place not in numbers), tuple(place for place in bound if place in numbers)
    outputs_of = [(each.shape, each.dtype) for each in call.outputs]
    native = None
    if isinstance(launch, RepeatedLaunch):
        native = bind(launch, *taken, outputs_of, call.init_value, copies)
    return Repetition(
        kernel, prepared, call.outputs, call.init_value, *taken,
        launch, find_last_source(kernel), device, _find_on(device, [values[name] for name in names]), copies, native,
    )  # fmt: skip


def _find_on(device: str, values: Sequence[Any]) -> int | None:
    """The place of a tensor on a device, by its name."""
    places = (i for i, each in enumerate(values) if isinstance(each, torch.Tensor) and str(each.device) == device)
    return next(places, None)


def _describe_value(value: Any, by_value: bool) -> Hashable:
    """Of a tensor all but its memory, of a number its type. Raises TypeError for others."""
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided or value.is_conj() or value.is_neg():
            raise TypeError  # the dispatcher computes conjugates and negatives for an operator
        return value.dtype, value.shape, value.stride(), _dispatch_keys(value).raw_repr(), value.get_device()
    kind = type(value)
    if kind not in _NUMBERS:
        raise TypeError
    return kind, repr(value) if by_value or is_large(value) else None


def _freeze_rest(rest: Sequence[Any]) -> Hashable:
    """The arguments beside the inputs as a key, in one pass unless one has more in it than atoms."""
    kinds, parts, ends = [], [], []
    for each in rest:
        kind = type(each)
        kinds.append(kind)
        if kind is dict:
            parts += each
            parts += each.values()
        elif kind is tuple or kind is list:
            parts += each
        else:
            parts.append(each)
        ends.append(len(parts))
    of_parts = [*map(type, parts)]
    if _ATOMS.issuperset(of_parts):
        return (*kinds, *ends, *of_parts, *parts)
    return tuple([_freeze(each) for each in rest])


def _freeze(given: Any) -> Hashable:
    """An argument as a key. Equal numbers of different types are different: a kernel may take one and not the other.

    Raises TypeError for what cannot be one, such as an array.
    """
    kind = type(given)
    if kind in _ATOMS:
        return kind, given
    if kind in (tuple, list):
        return kind, _freeze_all(given)
    if kind is dict:
        return tuple(given), _freeze_all(given.values())
    if kind is float:
        return kind, repr(given)
    hash(given)
    frozen: Hashable = given
    return frozen


def _freeze_all(values: Collection[Any]) -> Hashable:
    kinds = tuple(map(type, values))
    return (kinds, tuple(values)) if _ATOMS.issuperset(kinds) else tuple(map(_freeze, values))
