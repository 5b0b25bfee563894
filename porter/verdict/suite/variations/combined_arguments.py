"""Long rows for each argument that an operator reduces by: each has a kernel that combines slices, of every type.

A norm of zero counts, one of infinity has the largest element: the kernels that reduce slices of a row and those that
combine them are written, and registered, for each apart. Few of OpInfo's samples are made long elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, turn_to_last
from porter.verdict.suite.leaves import compute_unless_refused, list_tensors, read_argument, replace_input
from porter.verdict.suite.long_rows import ignores_order, makes_nan, put_ends
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.samples import copy_sample
from porter.verdict.suite.sums import convert
from porter.verdict.suite.variations.choice import choose_samples
from porter.verdict.suite.variations.combines import (
    has_other_tensors,
    is_finite,
    lengthen_reduced,
    orders_elements,
    scale_row,
)
from porter.verdict.suite.variations.ranks import find_dim
from porter.verdict.suite.variations.variation import Variation


@dataclass(frozen=True)
class Long:
    """A row of slices: its elements, the place of its largest one, and how far behind that its least is.

    Both are in the last slices, whether a slice has neighboring elements or takes turns with the others.
    """

    row: int
    first: int
    step: int


TWO_SLICES = Long(70_001, 51 * 1024 + 500, 2 * 1024)  # 64 elements for each of 1,024 threads, and more
# 256 threads that have 32 elements each make 34 slices, and a simdgroup that combines these has 32 lanes.
MANY_SLICES = Long(280_001, 1052 * 256 + 100, 34 * 256)
# They make two slices: fewer are one, of which nothing is combined.
FEWEST_SLICES = Long(20_001, 75 * 256 + 100, 2 * 256)
ROW, FIRST = TWO_SLICES.row, TWO_SLICES.first
ROWS, ROWS_OF_CLASSES = 2, 6
MOST, MOST_WITH_OTHERS, MOST_CHECKED = 12, 3, 4  # samples that differ in their arguments
_ENDS = ("nan last", "inf last")
_LEAST = 1  # of the samples that `choose_samples` would take


def list_combined_arguments(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Long rows for each sample that differs from others in numbers, strings or types, but not in its dimensions.

    A run that checks memory has a few of the fewest slices: a kernel that reads what it wrote beyond its memory is
    right, and of more slices the same code makes memory.
    """
    if not choose_samples(opinfos, op, dtype, _LEAST):
        return
    every = list_unlike(op, opinfos.reaching_samples(op, dtype))
    plain, weighted = ([each for each in every if has_other_tensors(each) is other] for other in (False, True))
    if opinfos.context.checks_memory:
        checked = (list_rows(op, sample, FEWEST_SLICES) for sample in (*plain[:MOST], *weighted[:MOST]))
        yield from chain.from_iterable(islice(filter(None, checked), MOST_CHECKED))
        return
    # Sums of more are infinite in 16 bits, and a loss counts no more elements than these have.
    every_length = (
        ((MANY_SLICES,) * 2, (FEWEST_SLICES,) * 2) if dtype is torch.float32 else ((TWO_SLICES, FEWEST_SLICES),)
    )
    for long, fewer in every_length:
        yield from chain.from_iterable(list_rows(op, sample, long) for sample in plain[:MOST])
        rows = (list_rows(op, sample, fewer) for sample in (weighted[:MOST] if dtype.is_floating_point else ()))
        yield from chain.from_iterable(islice(filter(None, rows), MOST_WITH_OTHERS))


def list_rows(op: OpInfo, sample: SampleInput, long: Long) -> list[Varied]:
    """A sample with long rows that are reduced, and whose results are finite; none of what puts elements in order.

    One that is reduced along a dimension between others is reduced along the last.
    """
    # A target names one of several classes, and the input has an element for each of them.
    most = (ROWS, ROWS_OF_CLASSES) if has_other_tensors(sample) else (ROWS,)
    turned = (sample, turn_to_last(op, sample))
    tried = (lengthen_reduced(op, each, long.row, rows) for rows, each in product(most, turned))
    resized = next(filter(None, tried), None)
    is_bool = sample.input.dtype is torch.bool
    if resized is None or (not is_bool and orders_elements(op, sample)):
        return []
    rows = make_rows(resized.input, long)
    scaled = [(f"{label}, scaled", scale_row(row, sample.input)) for label, row in rows]
    every = ((label, replace_input(resized, row)) for label, row in (*rows, *scaled))
    finite = (
        (f"{describe_arguments(op, sample)}: rows of {long.row}, {label}", combined)
        for label, combined in every
        if is_finite(op, combined) and (not has_other_tensors(sample) or rounds_once(op, combined))
    )
    # What is true of all but one is so by one row, and of any of them by another.
    ends = list_not_finite(op, sample) if long is not FEWEST_SLICES else []  # once
    return [*islice(finite, len(rows) if is_bool else 1), *ends]


def rounds_once(op: OpInfo, sample: SampleInput) -> bool:
    """Whether the CPU's results are as near to double precision as their type is: it rounds its own losses and
    statistics more than once in 16 bits.
    """
    results = compute_unless_refused(op, copy_sample(sample))
    exact = compute_unless_refused(op, convert(sample, torch.float64))
    pairs = zip(list_tensors(results), list_tensors(exact), strict=True)
    return sample.input.dtype.itemsize > 2 or all(
        torch.allclose(mine.to(right.dtype), right, rtol=torch.finfo(sample.input.dtype).eps) for mine, right in pairs
    )


def list_not_finite(op: OpInfo, sample: SampleInput) -> list[Varied]:
    """The sample with a NaN, and with an infinite element, where what is made of it does not follow from its place."""
    ends = dict(put_ends(sample))
    return [
        (f"{describe_arguments(op, sample)}: {label}", ends[label])
        for label in _ENDS
        if label in ends and ignores_order(op, ends[label]) and not makes_nan(op, ends[label])
    ]


def list_unlike(op: OpInfo, samples: list[SampleInput]) -> list[SampleInput]:
    """One of several samples of tensors for each of some arguments, alone and beside others: with rows, if there is one
    that names a dimension.
    """
    unlike: dict[tuple[str, bool], SampleInput] = {}
    for sample in sorted(samples, key=lambda each: not _names_dimension(op, each)):
        if isinstance(sample.input, torch.Tensor) and sample.input.ndim and sample.input.numel() > 1:
            unlike.setdefault((describe_arguments(op, sample), has_other_tensors(sample)), sample)
    return list(unlike.values())


def _names_dimension(op: OpInfo, sample: SampleInput) -> bool:
    """Whether one dimension of several is named."""
    is_row = isinstance(sample.input, torch.Tensor) and sample.input.ndim > 1
    place = find_dim(op, sample) if is_row else None
    return place is not None and isinstance(read_argument(sample, place), int)


def describe_arguments(op: OpInfo, sample: SampleInput) -> str:
    """The arguments that decide how elements are combined: no tensors, flags or dimensions.

    Of calls with weights or targets only strings, such as a reduction of losses: numbers there say which count.
    """
    place = find_dim(op, sample)
    kinds: Any = str if has_other_tensors(sample) else object
    named: list[tuple[Any, Any]] = [*enumerate(sample.args), *sorted(sample.kwargs.items())]
    plain = [(at, value) for at, value in named if at != place and not isinstance(value, (bool, torch.Tensor))]
    return ", ".join(f"{at}={value}" for at, value in plain if isinstance(value, kinds)) or "no argument"


def make_rows(tensor: torch.Tensor, long: Long) -> list[tuple[str, torch.Tensor]]:
    """Elements for a tensor of long rows, whose extremes are in their last slices; fewer add up to less in 16 bits.

    Each row has other extremes. Bools are true but for one, or false but for one, in turn.
    """
    count, along = max(tensor.shape), list(tensor.shape).index(max(tensor.shape))
    numbers = torch.arange(tensor.numel() // count)[:, None] + 1
    if tensor.dtype is torch.bool:
        single = torch.arange(count) == long.first
        rows = {"of ones but for one": (numbers % 2 == 1) ^ single, "of zeros but for one": (numbers % 2 == 0) ^ single}
    else:
        scale = 16.0 if tensor.is_floating_point() else 1.0
        sparse = (torch.arange(count) % 4 == 0).float()
        rows = {f"of {number:g}s": torch.full(numbers.shape, number).expand(-1, count) for number in (scale, 1.0, 0.5)}
        rows = {
            label: row.clone() for label, row in (rows | {"of ones and zeros": sparse.expand(len(numbers), -1)}).items()
        }
        for row in rows.values():
            row[:, long.first], row[:, long.first + 7], row[:, long.first + long.step] = (
                number * scale * numbers[:, 0] for number in (5, -3, 0.125)
            )
    shape = [size for dim, size in enumerate(tensor.shape) if dim != along]
    return [
        (label, row.reshape(*shape, count).movedim(-1, along).to(tensor.dtype).contiguous())
        for label, row in rows.items()
    ]


COMBINED_ARGUMENTS = Variation("combined_arguments", list_combined_arguments)
COMBINED_IN_EVERY_TYPE = Variation("combined_in_every_type", list_combined_arguments, dtypes=None, thorough=True)
