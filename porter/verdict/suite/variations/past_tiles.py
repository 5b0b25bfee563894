"""Operands with more elements along each dimension than a tile has, in other layouts: matrices, images, batches.

A kernel of tiles reads small operands one way, all of whose elements a tile has, and large ones another way. Where a
result has many tiles, they may be larger.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.gradients import differentiate
from porter.verdict.suite.leaves import (
    Place,
    change_tensors,
    compute,
    list_operands,
    list_passed,
    read_argument,
    replace_argument,
    replace_input,
)
from porter.verdict.suite.omitted import list_omitted
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.resizing import spread_values
from porter.verdict.suite.samples import copy_sample, vary_layouts
from porter.verdict.suite.variations.choice import TYPES, choose_samples
from porter.verdict.suite.variations.variation import Expectation, Variation

SIZES = (43, 37, 41, 35, 45)  # no multiples of what a tile may have, and none as long as another
SAMPLES = 3
MOST_ELEMENTS = 600_000  # of a tensor
FEW, MANY = 19, (739, 81)  # the size of one dimension, and of the others: a matrix has over 2^19 elements, or a batch


def list_past_tiles(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples of several operands with two dimensions or more, enlarged, and these in each layout.

    Of floating types, those too whose results have many tiles.
    """
    many = (
        labeled for sample in choose_samples(opinfos, op, dtype, SAMPLES) for labeled in list_many_tiles(sample, dtype)
    )
    if dtype.is_floating_point:
        yield from islice(keep_computed(stay_inside(op), many), SAMPLES)
    for sample in choose_samples(opinfos, op, dtype, SAMPLES):
        enlarged = enlarge(sample, dtype)
        if enlarged is not None and any(True for _ in keep_computed(stay_inside(op), [("", enlarged)])):
            yield "past a tile", enlarged
            layouts = [*vary_layouts(enlarged, pointwise=False), ("batches last", put_batches_last(enlarged))]
            yield from keep_computed(stay_inside(op), ((f"past a tile, {label}", each) for label, each in layouts))


def list_slopes_past_tiles(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """The same samples with gradients, as they are and transposed."""
    for sample in choose_samples(opinfos, op, dtype, SAMPLES, requires_grad=True):
        enlarged = enlarge(sample, dtype)
        if enlarged is not None:
            layouts = [("past a tile", enlarged), *vary_layouts(enlarged, pointwise=False)][:2]
            yield from keep_computed(partial(differentiate, op), layouts)


def enlarge(sample: SampleInput, dtype: torch.dtype) -> SampleInput | None:
    """The sample with another size for each that its tensors have, but for one; None for one operand, or a large one.

    Operands have all elements of this type, and no two neighbors of theirs are equal.
    """
    numbers = list_sizes(sample)
    return resize(sample, dict(zip(numbers, SIZES, strict=False)), dtype) if len(numbers) <= len(SIZES) else None


def list_many_tiles(sample: SampleInput, dtype: torch.dtype) -> Iterator[Varied]:
    """The sample with one size small and all others large, for each that its tensors have."""
    numbers = list_sizes(sample)
    for number in numbers:
        every = (resize(sample, dict.fromkeys(numbers, many) | {number: FEW}, dtype) for many in MANY)
        resized = next((each for each in every if each is not None), None)
        if resized is not None:
            yield f"many tiles, {number} as {FEW}", resized


def list_sizes(sample: SampleInput) -> list[int]:
    """The sizes that dimensions of the sample's tensors have, but for one."""
    return sorted({size for tensor in list_operands(sample) for size in tensor.shape if size > 1})


def resize(sample: SampleInput, sizes: Mapping[int, int], dtype: torch.dtype) -> SampleInput | None:
    """The sample with these sizes in place of others; None for one operand, another type, or a large one."""
    tensors = list_operands(sample)
    with_one = {1: 1, **sizes}
    is_small = all(math.prod(with_one.get(size, 0) for size in tensor.shape) <= MOST_ELEMENTS for tensor in tensors)
    has_operands = sum(tensor.ndim > 1 for tensor in tensors) > 1
    is_alike = all(tensor.dtype == dtype and tensor.numel() for tensor in tensors)
    if not (has_operands and is_alike and is_small):
        return None
    return change_tensors(sample, partial(_resize, with_one))


def put_batches_last(sample: SampleInput) -> SampleInput:
    """The sample with the elements of a tensor's first dimension beside each other in memory."""
    return change_tensors(sample, lambda t: t.movedim(0, -1).contiguous().movedim(-1, 0) if t.ndim else t)


def _resize(sizes: Mapping[int, int], value: torch.Tensor) -> torch.Tensor:
    spread = spread_values(value.detach(), [sizes[size] for size in value.shape])
    return spread.requires_grad_(value.requires_grad)


PAST_TILES = Variation("past_tiles", list_past_tiles, dtypes=None)
SLOPES_PAST_TILES = Variation("slopes_past_tiles", list_slopes_past_tiles, expectation=Expectation.GRADIENTS)


# Long tensors beside an input that is not: each element of isin is looked for in all of another tensor.
#
# What is reduced is the other tensor then, in slices if it is long; elsewhere that of the input alone is. A flag has
# kernels of its own, those that combine slices too.


LONG = 70_001
LONGER = 280_001  # more slices of 8,192 than a simdgroup has threads to combine them
_ROWS = 301  # elements of the input: more than one threadgroup has threads
_SAMPLES = 2
_MOST_ELEMENTS = 64  # of the input, and of each long row


def list_long_operands(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with one vector beside the input long, in order, where results keep their shapes; with each flag too.

    Where the input has its type, also longer ones, and an input of more rows, of elements that are in the vector.
    """
    for sample in choose_samples(opinfos, op, dtype, _SAMPLES):
        if sample.input.numel() <= _MOST_ELEMENTS:
            for place, value in list_passed(sample):
                if isinstance(value, torch.Tensor) and value.ndim == 1 and value.numel() and not value.is_complex():
                    kept = list(keep_computed(stay_inside(op), list(_lengthen(op, sample, place, value))))
                    shapes = _list_shapes(op, sample) if kept else []
                    alike = [(label, longer) for label, longer in kept if _list_shapes(op, longer) == shapes]
                    yield from alike
                    if alike and value.dtype == sample.input.dtype:
                        many = [_pick_from(sample, place, LONGER, sample.input.shape)]
                        many.append(_pick_from(sample, place, LONG, (_ROWS, *sample.input.shape[1:])))
                        yield from keep_computed(stay_inside(op), many)


def _pick_from(sample: SampleInput, place: Place, count: int, shape: Sequence[int]) -> Varied:
    """The sample with a long vector in order, and an input of this shape of elements from all over it, but for every
    third one, which is past its end.
    """
    ordered = spread_values(read_argument(sample, place).detach(), (count,)).sort().values
    at = torch.linspace(0, count - 1, math.prod(shape)).round().long()
    picked = torch.where(torch.arange(len(at)) % 3 == 0, ordered[-1:] + 1, ordered[at]).to(ordered.dtype)
    longer = replace_argument(sample, place, ordered)
    return f"{len(at)} elements of tensor {place} of {count}", replace_input(longer, picked.view(*shape))


def _lengthen(op: OpInfo, sample: SampleInput, place: Place, value: torch.Tensor) -> Iterator[Varied]:
    ordered = spread_values(value.detach(), (LONG,)).sort().values
    longer = replace_argument(sample, place, ordered)
    yield f"tensor {place} of {LONG} elements", longer
    for argument in list_omitted(op, sample):
        if isinstance(argument.values[0], bool):
            flagged = replace_argument(longer, argument.name, argument.values[0])
            yield f"tensor {place} of {LONG} elements, with {argument.name}={argument.values[0]}", flagged


def _list_shapes(op: OpInfo, sample: SampleInput) -> list[Any]:
    results = pytree.tree_leaves(compute(op, copy_sample(sample)))
    return [result.shape if isinstance(result, torch.Tensor) else result for result in results]


LONG_OPERANDS = Variation("long_operands", list_long_operands, dtypes=TYPES)
