"""Index tensors in every type of integers that the CPU takes: OpInfo mostly gives 64 bits.

Kernels have an instance for each type of an index tensor, and one that is not registered is missing at the first call.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.core.dtypes import name_torch
from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.gradients import differentiate
from porter.verdict.suite.leaves import Place, list_passed, list_tensors, replace_arguments
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.variation import Expectation, Variation

TYPES = (torch.int32, torch.int64, torch.int16, torch.uint8, torch.int8)
MOST_SAMPLES = 2
_OF_FLOATS = torch.float32
_INPUT = "the input"


def list_places(samples: Sequence[SampleInput]) -> list[Place]:
    """The arguments of integers in some of the samples of floats, which are indices or counts in other types too.

    They are told by position after the input, by name, or `"the input"`; a list of tensors is one argument.
    """
    every = (place for sample in samples for place, value in _list_arguments(sample) if _list_integers(value))
    return list(dict.fromkeys(every))


def cast_places(sample: SampleInput, places: Collection[Place]) -> Iterator[Varied]:
    """Yields the sample with the integers of all places in each other type that holds their values, then with each
    alone; with names for messages.
    """
    filled = [place for place, value in _list_arguments(sample) if place in places and _list_integers(value)]
    for dtype in TYPES:
        for changed in (filled, *([place] for place in filled if len(filled) > 1)):
            cast = _cast(sample, changed, dtype)
            if cast is not None:
                yield f"{' and '.join(map(str, changed))} in {name_torch(dtype)}", cast


def list_cast(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, slopes: bool = False) -> Iterator[Varied]:
    """Those that the CPU computes, with its gradients if these are asked for."""
    floats = dtype if dtype.is_floating_point or dtype.is_complex else _OF_FLOATS
    if floats not in op.supported_dtypes("cpu"):
        return
    places = list_places(opinfos.reaching_samples(op, floats, slopes))
    few = _pick_kinds(opinfos.reaching_samples(op, dtype, slopes), places) if places else []
    compute: Callable[..., Any] = partial(differentiate, op) if slopes else stay_inside(op)
    yield from keep_computed(compute, [varied for sample in few for varied in cast_places(sample, places)])


def _pick_kinds(samples: Sequence[SampleInput], places: Collection[Place]) -> list[SampleInput]:
    """Of samples with integers in the same places, with as many dimensions, the one with the most of them."""
    largest: dict[object, tuple[int, SampleInput]] = {}
    for sample in samples:
        integers = {place: _list_integers(value) for place, value in _list_arguments(sample) if place in places}
        kind = tuple((place, tuple(each.ndim for each in tensors)) for place, tensors in integers.items() if tensors)
        count = sum(each.numel() for tensors in integers.values() for each in tensors)
        if count > largest.get(kind, (0, sample))[0]:
            largest[kind] = count, sample
    return [sample for _, sample in sorted(largest.values(), key=lambda one: -one[0])[:MOST_SAMPLES]]


def _list_arguments(sample: SampleInput) -> list[tuple[Place, Any]]:
    return [(_INPUT, sample.input), *list_passed(sample)]


def _list_integers(value: Any) -> list[torch.Tensor]:
    return [each for each in list_tensors(value) if each.dtype in TYPES]


def _cast(sample: SampleInput, places: Sequence[Place], dtype: torch.dtype) -> SampleInput | None:
    """None if no value has another type then, or some are lost."""
    before = [each for place, value in _list_arguments(sample) if place in places for each in _list_integers(value)]
    if all(each.dtype == dtype for each in before) or not all(each.to(dtype).equal(each) for each in before):
        return None
    cast: dict[Place, Any] = {
        "input" if place == _INPUT else place: pytree.tree_map_only(
            torch.Tensor, partial(_cast_integers, dtype=dtype), value
        )
        for place, value in _list_arguments(sample)
        if place in places
    }
    return replace_arguments(sample, cast)


def _cast_integers(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return tensor.to(dtype) if tensor.dtype in TYPES else tensor


INDEX_TYPES = Variation("index_types", list_cast, dtypes=None)
SLOPES_BY_INDEX_TYPES = Variation(
    "slopes_by_index_types", partial(list_cast, slopes=True), expectation=Expectation.GRADIENTS, dtypes=None
)
