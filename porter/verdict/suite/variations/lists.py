"""Lists of tensors: long and ragged ones, of several types, of one tensor and of more than a kernel has arguments for.

Other variations resize the tensor that an input is. A kernel that goes over a list has a launch for each of its
tensors, or an argument for each, and sizes and types that need not be those of the first.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import chain, combinations, islice
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.gradients import differentiate
from porter.verdict.suite.leaves import (
    Place,
    has_elements,
    list_passed,
    list_tensors,
    replace_argument,
    replace_arguments,
    replace_input,
)
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.resizing import MOST_RESULTS, spread_values
from porter.verdict.suite.samples import count_results
from porter.verdict.suite.variations.choice import TYPES, varies_in
from porter.verdict.suite.variations.more_indices import place_largest_last
from porter.verdict.suite.variations.variation import Expectation, Variation

LONG = 70_001
LONGEST = (1 << 20) + 77  # elements of one tensor: more than a launch has threads if its grid ends at a round number
MANY = 260  # tensors: an encoder has 31 buffers, and a byte counts to 255
SAMPLES = 3
OTHERS = 2  # the size of other dimensions of long tensors, at most
RANK = 2  # of a list of which the first tensor is longest
_FEW = 3  # tensors of a list that are long
_MIXED = (torch.float16, torch.float32, torch.int32, torch.int64, torch.uint8, torch.bool)
Tensors = list[torch.Tensor]


def list_varied(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Those of a few samples that the CPU computes; of long ones in each dimension, ragged ones if it takes them."""
    for sample, place, tensors in choose_lists(opinfos.reaching_samples(op, dtype)):
        plain = [*vary_count(sample, place, tensors), *mix_types(sample, place, tensors)]
        small = [varied for varied in plain if count_results(op, varied[1]) < MOST_RESULTS]
        yield from keep_computed(stay_inside(op), small)
        for dim in dict.fromkeys((0, tensors[0].ndim - 1)):
            long = lengthen(sample, place, tensors, dim)
            fitting = (varied for varied in long if count_results(op, varied[1]) < MOST_RESULTS)
            yield from islice(keep_computed(stay_inside(op), fitting), 1)
        if dtype is torch.float32 and tensors[0].ndim == RANK:
            yield from islice(keep_computed(stay_inside(op), lengthen_first(sample, place, tensors)), 1)


def choose_lists(samples: Sequence[SampleInput]) -> list[tuple[SampleInput, Place, Tensors]]:
    """Samples with a list of tensors that have elements, of each rank and number of them one, those of a rank of two
    first.
    """
    unlike: dict[object, tuple[SampleInput, Place, Tensors]] = {}
    for sample in samples:
        every: list[tuple[Place, Any]] = [("input", sample.input), *enumerate(sample.args)]
        for place, value in every:
            if isinstance(value, (list, tuple)) and value and all(map(has_elements, value)):
                unlike.setdefault((place, value[0].ndim, len(value) > 1), (sample, place, list(value)))
    return sorted(unlike.values(), key=lambda one: (one[2][0].ndim != 2, len(one[2]) < 2))[:SAMPLES]


def vary_count(sample: SampleInput, place: Place, tensors: Tensors) -> Iterator[Varied]:
    """Yields the sample with one tensor alone, with many, and with one that has no elements between others."""
    many = [tensors[at % len(tensors)].detach().roll(at) for at in range(MANY)]  # each unlike the others
    none = [tensors[0], tensors[0][:0], *tensors[1:], tensors[0].new_empty(0)]
    for label, others in (("one tensor", tensors[:1]), (f"{MANY} tensors", many), ("tensors of no elements", none)):
        yield label, replace_argument(sample, place, others)


def mix_types(sample: SampleInput, place: Place, tensors: Tensors) -> Iterator[Varied]:
    """Yields the sample with its first or its last tensor in each other type."""
    for at in dict.fromkeys((0, len(tensors) - 1)) if len(tensors) > 1 else ():
        for dtype in _MIXED:
            if dtype != tensors[at].dtype:
                others = [*tensors[:at], tensors[at].detach().to(dtype), *tensors[at + 1 :]]
                yield f"tensor {at} in {dtype}", replace_argument(sample, place, others)


def lengthen(sample: SampleInput, place: Place, tensors: Tensors, dim: int) -> Iterator[Varied]:
    """Yields the sample with a list of long tensors, of which no two are as long, and of those that are.

    Indices are of all that every dimension has, and what goes with them is as long as they are.
    """
    indexes = tensors[0].dtype in (torch.int64, torch.int32) and isinstance(sample.input, torch.Tensor)
    ends = torch.tensor([0, min(sample.input.shape, default=1) - 1]) if indexes else None
    for label, step in (("ragged", 7), ("alike", 0)):
        shapes = [_lengthen_shape(each.shape, dim, LONG + step * at) for at, each in enumerate(tensors[:_FEW])]
        pairs = list(zip(tensors, shapes, strict=False))
        if ends is None:
            long = [spread_values(tensor.detach(), shape) for tensor, shape in pairs]
        else:
            long = [place_largest_last(ends.to(tensor.dtype), shape, dim) for tensor, shape in pairs]
        listed = replace_argument(sample, place, [*long, *tensors[_FEW:]] if indexes else long)
        if indexes:
            listed = _lengthen_others(listed, tensors[0].shape, shapes[0])
        yield f"{LONG} along dimension {dim} of each tensor, {label}", listed


def lengthen_first(sample: SampleInput, place: Place, tensors: Tensors) -> Iterator[Varied]:
    """Yields the sample with so many elements in its first tensor, along each of its dimensions in turn."""
    for dim in range(tensors[0].ndim):
        shapes = [_lengthen_shape(each.shape, dim, _FEW) for each in tensors]
        shapes[0][dim] = -(-LONGEST // (math.prod(shapes[0]) // _FEW))
        long = [spread_values(each.detach(), shape) for each, shape in zip(tensors, shapes, strict=True)]
        yield f"a first tensor of {LONGEST} elements", replace_argument(sample, place, long)


def _lengthen_shape(shape: Sequence[int], dim: int, size: int) -> list[int]:
    return [size if at == dim else min(other, OTHERS) for at, other in enumerate(shape)]


def _lengthen_others(sample: SampleInput, before: torch.Size, shape: Sequence[int]) -> SampleInput:
    """The sample whose arguments begin with another shape than they did; elements that go to one place are all one."""

    def change(value: Any) -> Any:
        is_alike = isinstance(value, torch.Tensor) and value.shape[: len(before)] == before
        return value.new_ones((*shape, *value.shape[len(before) :])) if is_alike else value

    return SampleInput(sample.input, args=pytree.tree_map(change, tuple(sample.args)), kwargs=sample.kwargs)


LISTS = Variation("lists", list_varied, dtypes=TYPES)


# Lists of numbers the other way round, and images of more rows: of windows of 3 by 2 with dilations of 1 by 2 none has
# rows apart, and none of height 4 ends past the padding.
#
# OpInfo's lists of strides, paddings and dilations have one order all through, so that what a kernel does with one
# number beside another in the height it is asked of the width alone.


_MOST = 12  # samples, that differ in what is no tensor or flag
_MOST_ELEMENTS = 1 << 12
_IMAGES = (3, 4, 5)  # dimensions
# Samples whose numbers are made larger, two arguments at a time, and elements of their results.
_MOST_GROWN, _MOST_GROWN_RESULTS = 2, 1 << 14


def list_turned(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with all of their lists the other way round, where the CPU computes that."""
    yield from keep_computed(stay_inside(op), choose_turned(opinfos, op, dtype))


def list_turned_slopes(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """The same that the CPU differentiates: of what gradients alone call."""
    if opinfos.context.through_backward:
        turned = choose_turned(opinfos, op, dtype, requires_grad=True)
        yield from keep_computed(partial(differentiate, op), turned)


def choose_turned(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, requires_grad: bool = False) -> list[Varied]:
    """A few samples that differ from each other in lists and numbers, each with every list turned, or of an image alone
    with more rows; those of the largest numbers with larger ones still.
    """
    if not varies_in(opinfos, op, dtype):
        return []
    turned: dict[str, Varied] = {}
    higher: dict[str, Varied] = {}
    samples = opinfos.reaching_samples(op, dtype, requires_grad)
    for sample in samples:
        if isinstance(sample.input, torch.Tensor) and 0 < sample.input.numel() <= _MOST_ELEMENTS and _has_list(sample):
            if any(map(_is_ordered, (*sample.args, *sample.kwargs.values()))):
                label = f"lists turned: {_describe(_turn(sample))}"
                turned.setdefault(label, (label, _turn(sample)))
            if sample.input.ndim in _IMAGES and not list_tensors((sample.args, sample.kwargs)):
                label = f"a row more: {_describe(sample)}"
                image = sample.input.detach()
                taller = torch.cat([image, image.flip(-2)[..., :1, :]], -2).requires_grad_(sample.input.requires_grad)
                higher.setdefault(label, (label, replace_input(sample, taller)))
    images = [sample for sample in samples if _is_small_image(sample.input)]
    largest = sorted(images, key=lambda sample: -sum(chain.from_iterable(_list_numbers(sample).values())))[:_MOST_GROWN]
    # Others, as the mode of a grid sampler, are names.
    sizes = {place for sample in images for place, value in list_passed(sample) if isinstance(value, (list, tuple))}
    few = [varied for unlike in (turned, higher) for varied in list(unlike.values())[:: len(unlike) // _MOST + 1]]
    grown = dict(varied for sample in largest for varied in _grow_pairs(sample, sizes)).items()
    return [*few, *((label, varied) for label, varied in grown if 0 < count_results(op, varied) <= _MOST_GROWN_RESULTS)]


def _grow_pairs(sample: SampleInput, places: Collection[Place]) -> Iterator[Varied]:
    """Yields the sample of an image with each two of some of its arguments larger, and the image: of a window of seven
    with a padding of two several places are outside, of OpInfo's one. Then with all lists turned, as a dilation of two
    skips one of them.
    """
    image = sample.input.detach()
    for dim in (-1, -2):
        image = torch.cat([image, image.flip(dim), image], dim)
    larger = replace_input(sample, image.requires_grad_(sample.input.requires_grad))
    for pair in combinations([place for place in _list_numbers(sample) if place in places], 2):
        others = {place: _grow(value) for place, value in list_passed(sample) if place in pair}
        grown = replace_arguments(larger, others)
        yield from ((f"larger numbers: {_describe(varied)}", varied) for varied in (grown, _turn(grown)))


def _is_small_image(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim in _IMAGES and 0 < value.numel() <= _MOST_ELEMENTS


def _grow(value: Any) -> Any:
    return 2 * value + (value > 1) if type(value) is int else type(value)(map(_grow, value))


def _list_numbers(sample: SampleInput) -> dict[Place, tuple[int, ...]]:
    """The whole numbers of each argument that has nothing else."""
    several = {place: (value,) if type(value) is int else value for place, value in list_passed(sample)}
    return {
        place: tuple(values)
        for place, values in several.items()
        if isinstance(values, (list, tuple)) and values and all(type(value) is int for value in values)
    }


def _turn(sample: SampleInput) -> SampleInput:
    return replace_arguments(sample, {place: _reverse(value) for place, value in list_passed(sample)})


def _reverse(value: Any) -> Any:
    return type(value)(value[::-1]) if _is_ordered(value) else value


def _has_list(sample: SampleInput) -> bool:
    return any(isinstance(value, (list, tuple)) for value in (*sample.args, *sample.kwargs.values()))


def _is_ordered(value: Any) -> bool:
    """Whether a value is a list of whole numbers that is another one if it is turned."""
    if not isinstance(value, (list, tuple)) or not all(type(number) is int for number in value):
        return False
    return list(value) != list(value[::-1])


def _describe(sample: SampleInput) -> str:
    """The numbers and lists of a sample."""
    named = [*enumerate(sample.args), *sorted(sample.kwargs.items())]
    kept = {place: value for place, value in named if not isinstance(value, (bool, str)) and not list_tensors(value)}
    return ", ".join(f"{place}={value}" for place, value in kept.items())


TURNED_LISTS = Variation("turned_lists", list_turned)
SLOPES_BY_TURNED_LISTS = Variation("slopes_by_turned_lists", list_turned_slopes, expectation=Expectation.GRADIENTS)
