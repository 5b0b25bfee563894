"""OpInfos of recurrent layers that only one device has, and that torch has none for: the CPU's twin is the reference.

A twin takes the same arguments, and returns the first of the results; the others are for the device's own backward.
Source: aten/src/ATen/native/RNN.cpp (`lstm`, which calls the device's operator in a build for it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import Any

import torch
from torch.testing._internal.common_dtype import _dispatch_dtypes
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.core.dtypes import TESTED, Kind
from porter.verdict.derivatives import read_derivatives
from porter.verdict.suite.compare import HALVES

_DEVICE_ENDINGS = ("_for_mps", "_mps")
_TYPES = tuple(getattr(torch, each.torch) for each in TESTED if each.kind is Kind.FLOATING)
# Of a layer: how its arguments begin, and those that say what it computes.
_TENSORS = ["Tensor", "List[Tensor]", "List[Tensor]"]
_NAMES = {"has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first"}
_GATES = 4
_SIZES = ((5, 3, 4, 6), (3, 2, 7, 5), (4, 1, 3, 9), (1, 4, 2, 3), (2, 5, 70, 33))  # steps, rows, features, states
_LAYERS = (1, 2, 3)
_Overload = torch._ops.OpOverload


@dataclass(frozen=True)
class RecurrentCall:
    """Calls a device's overload on it, and its twin on the CPU; results are those of the twin.

    In 16 bits, the CPU would round what each step begins with: it computes all steps in float32.
    """

    overload: _Overload
    twin: _Overload

    def __call__(self, *sequence: Any) -> Any:
        if sequence[0].device.type == "cpu":
            _require_fitting(*sequence)
            dtype = sequence[0].dtype
            wide = pytree.tree_map(partial(_convert, dtype=torch.float32), sequence) if dtype in HALVES else sequence
            return pytree.tree_map(partial(_convert, dtype=dtype), self.twin(*wide))
        return tuple(self.overload(*sequence)[: len(self.twin._schema.returns)])


def _convert(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, torch.Tensor) else value


def _require_fitting(
    sequence: torch.Tensor, starts: Sequence[torch.Tensor], params: Sequence[torch.Tensor], has_biases: bool,
    layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> None:  # fmt: skip
    """Raises RuntimeError for sizes that do not go with each other, as `torch.nn.RNNBase.check_forward_args` does.

    The CPU's operator looks at few of them, and reaches beyond tensors.
    """
    shapes = [tuple(each.shape) for each in (*starts, *params)]
    if sequence.ndim != 3 or not starts or starts[0].ndim != 3 or not sequence.shape[1 if batch_first else 0]:
        raise RuntimeError("Expected an input of 3 dimensions with steps, and states with as many")
    rows, states, directions = sequence.shape[0 if batch_first else 1], starts[0].shape[2], 2 if bidirectional else 1
    expected: list[tuple[int, ...]] = [(layers * directions, rows, states)] * 2
    for layer in range(layers):
        width = directions * states if layer else sequence.shape[2]
        parameters = [
            (_GATES * states, width),
            (_GATES * states, states),
            *([(_GATES * states,)] * 2 if has_biases else []),
        ]
        expected += parameters * directions
    if shapes != expected or {each.dtype for each in (*starts, *params)} != {sequence.dtype}:
        raise RuntimeError(f"Expected states and parameters of one dtype and {expected}, but got {shapes}")


def find_twin(overload: _Overload) -> _Overload | None:
    """What an operator that only one device has is called for others, with arguments of the same types."""
    name = overload._schema.name.removeprefix("aten::")
    ending = next((each for each in _DEVICE_ENDINGS if name.endswith(each)), "")
    plain = name.removesuffix(ending) if ending else ""
    types = _list_types(overload)
    named = (each for other in dict.fromkeys((plain, plain.lstrip("_"))) if other for each in _list_overloads(other))
    return next((each for each in named if _list_types(each) == types), None)


def _list_types(overload: _Overload) -> list[str]:
    return [str(each.type) for each in overload._schema.arguments]


@lru_cache
def make_recurrent_opinfo(base: str) -> OpInfo | None:
    """An OpInfo of a recurrent layer's operator, if a twin of it computes samples on the CPU; else None."""
    overload = next((each for each in _list_overloads(base) if not each._schema.is_mutable), None)
    if overload is None or not {each.name for each in overload._schema.arguments} >= _NAMES:
        return None
    twin = find_twin(overload) if _list_types(overload)[: len(_TENSORS)] == _TENSORS else None
    if twin is None:
        return None
    call = RecurrentCall(overload, twin)
    supported = [dtype for dtype in _TYPES if _takes(call, next(_make_samples(dtype)))]
    return OpInfo(
        base,
        op=call,
        aten_name=base,
        dtypes=_dispatch_dtypes(supported),
        # In 16 bits, the functions of one and of the other direction round alike only where both are ported
        backward_dtypes=_dispatch_dtypes([torch.float32]),
        supports_out=False,
        supports_autograd=any(base == name for name, _ in read_derivatives()),
        sample_inputs_func=_sample_inputs,
    )


def _list_overloads(base: str) -> list[_Overload]:
    packet = getattr(torch.ops.aten, base, None)
    return [getattr(packet, name) for name in packet.overloads()] if packet else []


def _takes(call: RecurrentCall, sample: SampleInput) -> bool:
    try:
        with torch.no_grad():
            call(sample.input, *sample.args)
    except RuntimeError:  # the CPU has no kernel of the type
        return False
    return True


def is_recurrent(op: OpInfo) -> bool:
    """Whether an OpInfo is one of these: its samples have all values of flags, which tensors go with."""
    return isinstance(op.op, RecurrentCall)


def _sample_inputs(
    op: OpInfo, device: str, dtype: torch.dtype, requires_grad: bool, **kwargs: Any
) -> Iterator[SampleInput]:
    """Samples of real numbers: no device has such layers of others."""
    if dtype.is_floating_point:
        yield from _make_samples(dtype, device, requires_grad)


def _make_samples(dtype: torch.dtype, device: str = "cpu", requires_grad: bool = False) -> Iterator[SampleInput]:
    """Layers with all flags, of several sizes; dropout only where none is left out: between no layers, or untrained."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        drawn = torch.rand(shape, generator=generator) - 0.5
        return drawn.to(device, dtype).requires_grad_(requires_grad)

    flags = product(_LAYERS, (True, False), (False, True), (False, True))
    for at, (layers, has_biases, bidirectional, batch_first) in enumerate(flags):
        steps, rows, features, states = _SIZES[at % len(_SIZES)]
        directions = 2 if bidirectional else 1
        train = at % 2 == 0
        dropout = 0.5 if (layers == 1 or not train) and at % 3 == 0 else 0.0
        sequence = draw(rows, steps, features) if batch_first else draw(steps, rows, features)
        starts = [draw(layers * directions, rows, states) for _ in range(2)]
        params = []
        for layer in range(layers):
            width = directions * states if layer else features
            for _ in range(directions):
                params += [draw(_GATES * states, width), draw(_GATES * states, states)]
                params += [draw(_GATES * states) for _ in range(2 if has_biases else 0)]
        yield SampleInput(
            sequence, args=(starts, params, has_biases, layers, dropout, train, bidirectional, batch_first)
        )
