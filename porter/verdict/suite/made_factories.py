"""OpInfos of operators that make a tensor of numbers alone, and that torch has none for: samples made from the schema.

Source: torch/testing/_internal/opinfo/core.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import Any

import torch
from torch.testing._internal.common_dtype import _dispatch_dtypes
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.core.dtypes import TESTED, Kind

_TYPES = tuple(getattr(torch, each.torch) for each in TESTED if each.kind in (Kind.FLOATING, Kind.INTEGRAL))
_WHOLE = (0, 2, 7, 1, -3, 12)
_REAL = (*_WHOLE, 0.5, -1.25, 9.75)
_NUMBERS = ("number", "int", "SymInt", "float")
_OPTIONS = frozenset({"dtype", "layout", "device", "pin_memory"})
_GENERATOR = "generator"
_MOST = 40  # samples
_MOST_ELEMENTS = 1000


@lru_cache
def make_factory_opinfo(base: str) -> OpInfo | None:
    """An OpInfo of the overload of an operator that takes most numbers, nothing else and what a tensor is made with,
    perhaps a generator of random numbers, if the CPU computes some samples of it; else None.
    """
    packet = getattr(torch.ops.aten, base, None)
    overloads = [getattr(packet, name) for name in packet.overloads()] if packet else []
    factories = [each for each in overloads if _takes_numbers(each)]
    overload = max(factories, key=lambda each: len(each._schema.arguments), default=None)
    if overload is None:
        return None
    supported = [dtype for dtype in _TYPES if any(True for _ in _make_samples(overload, "cpu", dtype))]
    if not supported:
        return None
    return OpInfo(
        base,
        op=overload,
        aten_name=base,
        dtypes=_dispatch_dtypes(supported),
        supports_out=False,
        supports_autograd=False,
        sample_inputs_func=_sample_inputs,
    )


def _takes_numbers(overload: torch._ops.OpOverload) -> bool:
    given = overload._schema.arguments
    options = {each.name for each in given if each.kwarg_only}
    numbers = [str(each.type) for each in given if not each.kwarg_only]
    return bool(numbers) and options - {_GENERATOR} == _OPTIONS and all(each in _NUMBERS for each in numbers)


def _sample_inputs(
    op: OpInfo, device: str, dtype: torch.dtype, requires_grad: bool, **kwargs: Any
) -> Iterator[SampleInput]:
    overload: Any = op.op
    yield from _make_samples(overload, device, dtype)


def _make_samples(overload: torch._ops.OpOverload, device: str, dtype: torch.dtype) -> Iterator[SampleInput]:
    """Samples of numbers that the CPU takes, with elements; the first numbers of all arguments first."""
    kinds = [str(each.type) for each in overload._schema.arguments if not each.kwarg_only]
    pools = [_REAL if dtype.is_floating_point and each in ("number", "float") else _WHOLE for each in kinds]
    places = sorted(product(*(range(len(each)) for each in pools)), key=sum)
    listed = ([pool[at] for pool, at in zip(pools, each, strict=True)] for each in places)
    taken = (numbers for numbers in listed if _is_taken(overload, numbers, dtype))
    for first, *others in islice(taken, _MOST):
        yield SampleInput(first, args=tuple(others), kwargs=_list_options(overload, device, dtype))


def _list_options(overload: torch._ops.OpOverload, device: str, dtype: torch.dtype) -> dict[str, Any]:
    """What a tensor is made with; by the device's own generator, where the overload takes one."""
    is_random = any(each.name == _GENERATOR for each in overload._schema.arguments)
    return {"dtype": dtype, "device": device, **({_GENERATOR: None} if is_random else {})}


def _is_taken(overload: torch._ops.OpOverload, numbers: Sequence[complex], dtype: torch.dtype) -> bool:
    try:
        made = overload(*numbers, **_list_options(overload, "cpu", dtype))
    except (RuntimeError, ValueError, TypeError):  # what the CPU's checks raise
        return False
    return isinstance(made, torch.Tensor) and 0 < made.numel() <= _MOST_ELEMENTS
