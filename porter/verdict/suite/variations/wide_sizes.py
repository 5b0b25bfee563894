"""Sizes past 16 bits: along each dimension, batches by channels, and what numbers and elements make of results.

A kernel with a `ushort` for a row, a position or a pixel is right for all that OpInfo has. Elements differ, so that
none that is read in place of another passes for it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import islice

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed, vary_result_sizes
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.gradients import differentiate
from porter.verdict.suite.leaves import compute, list_tensors, read_argument, replace_argument, replace_input
from porter.verdict.suite.long_rows import sums_rows
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.resizing import MOST_ELEMENTS, lengthen_dimensions, shorten_rows, spread_values
from porter.verdict.suite.samples import copy_sample
from porter.verdict.suite.variations.asked_gradients import ask_for, list_operands
from porter.verdict.suite.variations.choice import (
    TYPES,
    choose_flags,
    choose_samples,
    count_others,
    list_flags,
    varies_in,
)
from porter.verdict.suite.variations.ranks import find_dim
from porter.verdict.suite.variations.variation import Expectation, Operators, Variation

LONG = 70_001  # more than 2^16, and nothing that 16 bits make of it is another size
SHORT = 1 << 16
BATCH, CHANNELS = 257, 263  # more than 2^16 together
LONGER = 280_001  # more than 2^16 times four, which a thread may have of a row
LENGTH, COLUMNS = 260, 2_080  # so many columns that threadgroups have several each, which are read in several turns
SAMPLES = 4
GRADIENT_SAMPLES = 2
MOST = 1 << 18  # elements of results: three rows past 16 bits
NUMBERED = 4  # samples whose result sizes are numbers
SLICED_ROW = 280_001  # rows: 256 threads have 32 of each slice
ROW = (1 << 20) + (1 << 16)  # rows: 1,024 threads have 32 of each slice, so that there are 34
GRADIENT_ROW = 1_100  # more than threadgroups have threads


def list_wide(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Each sample with its first dimension long, its last one, and of three dimensions or more the first two together;
    one with each dimension between; one of long columns; one with elements, and with each number, of which results have
    so many elements.
    """
    if not varies_in(opinfos, op, dtype):
        return
    between: set[str] = set()  # dimensions that one sample is enough for
    for sample in choose_samples(opinfos, op, dtype, SAMPLES):
        for label, longs in name_dimensions(sample).items():
            resized = None if label in between else lengthen_dimensions(op, sample, longs, MOST_ELEMENTS * len(longs))
            if resized is not None:
                yield label, resized
                between |= {label} if 0 < min(longs) < sample.input.ndim - 1 else set()
    yield from islice(list_columns(opinfos, op, dtype), 1)
    few = sorted(opinfos.reaching_samples(op, dtype), key=count_elements)
    yield from islice((varied for sample in few[-SAMPLES:] for varied in count_far(op, sample)), 1)
    numbered = (varied for sample in few for varied in enlarge_results(op, sample))
    seen: set[str] = set()
    for label, sample in numbered:
        if label not in seen and len(seen) < NUMBERED:
            seen.add(label)
            yield label, sample


def list_longer_rows(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Two samples with a row of which the threads are past 16 bits, where each has four elements."""
    chosen = choose_samples(opinfos, op, dtype, SAMPLES) if varies_in(opinfos, op, dtype) else []
    longs = ({sample.input.ndim - 1: LONGER} for sample in chosen)
    rows = (lengthen_dimensions(op, *each, LONGER + LONGER // 4) for each in zip(chosen, longs, strict=True))
    yield from islice(((f"{LONGER} along the last dimension", row) for row in rows if row is not None), 2)


def list_columns(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples that go over the first dimension, with long columns and many of them."""
    for sample in opinfos.reaching_samples(op, dtype):
        place = find_dim(op, sample) if isinstance(sample.input, torch.Tensor) and sample.input.ndim > 1 else None
        if place is None or not isinstance(read_argument(sample, place), int):
            continue
        columns = replace_argument(sample, place, 0)
        longs = {0: LENGTH, sample.input.ndim - 1: COLUMNS}
        if any(True for _ in keep_computed(stay_inside(op), [("", columns)])):
            resized = lengthen_dimensions(op, columns, longs, 2 * LENGTH * COLUMNS)
            if resized is not None:
                yield f"{COLUMNS} columns of {LENGTH} elements", resized


def enlarge_results(op: OpInfo, sample: SampleInput) -> Iterator[Varied]:
    """The sample with each number of which a result has a dimension past 16 bits.

    Of a sample with many rows a result would have too many elements: it has one batch and channel then.
    """
    within = list(vary_result_sizes(op, sample, LONG, MOST))
    if not within and any(True for _ in vary_result_sizes(op, sample, LONG, sys.maxsize)):
        short = shorten_rows(op, sample)
        within = [] if short is None else list(vary_result_sizes(op, short, LONG, MOST))
    yield from within


def count_far(op: OpInfo, sample: SampleInput) -> Iterator[Varied]:
    """The sample with elements past 16 bits where a result's size follows from these, as in a count of each integer."""
    if not isinstance(sample.input, torch.Tensor) or sample.input.dtype != torch.int64 or not sample.input.numel():
        return
    elements = spread_values(torch.tensor([0, LONG]), sample.input.shape)
    elements.view(-1)[-1] = LONG
    far = replace_input(sample, elements)
    for label, counted in keep_computed(stay_inside(op), [(f"elements up to {LONG}", far)]):
        if any(size > SHORT for size in list_sizes(op, counted)):
            yield label, counted


def list_sizes(op: OpInfo, sample: SampleInput) -> list[int]:
    """The sizes of the dimensions of all results."""
    copied = copy_sample(sample)
    results = list_tensors(compute(op, copied))
    return [size for result in results for size in result.shape]


def list_wide_gradients(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Each sample with its first dimension past 16 bits, and with its last past what a threadgroup has threads for."""
    if not varies_in(opinfos, op, dtype):
        return
    for sample in choose_samples(opinfos, op, dtype, GRADIENT_SAMPLES, requires_grad=True):
        sizes = {"a long first dimension": {0: LONG}, "a long last dimension": {sample.input.ndim - 1: GRADIENT_ROW}}
        for label, longs in sizes.items():
            resized = lengthen_dimensions(op, sample, longs)
            if resized is not None:
                yield from keep_computed(partial(differentiate, op), [(label, resized)])


def list_wider_gradients(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """A sample with its last dimension past 16 bits too, and its batch by its channels; each other choice of flags,
    which has kernels of its own, with its first dimension so long, and with its second, the channels; one without
    tensors that may be left out: where gradients alone call what is tested.
    """
    if not opinfos.context.through_backward or not varies_in(opinfos, op, dtype):
        return
    chosen = choose_samples(opinfos, op, dtype, GRADIENT_SAMPLES, requires_grad=True)
    sizes = [(sample, label, longs) for sample in chosen[:1] for label, longs in name_dimensions(sample).items()][1:]
    for sample in choose_flags(opinfos, op, dtype, chosen[:1]):
        sizes += [(sample, f"other flags, {LONG} along dimension {dim}", {dim: LONG}) for dim in (0, 1)]
    for sample in choose_fewest(opinfos, op, dtype, chosen):
        sizes.append((sample, f"the fewest tensors, {LONG} along the last dimension", {sample.input.ndim - 1: LONG}))
    for sample, label, longs in sizes:
        resized = lengthen_dimensions(op, sample, longs, MOST_ELEMENTS * len(longs))
        if resized is not None:
            yield from keep_computed(partial(differentiate, op), [(label, resized)])


def list_halves(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with a first dimension past 16 bits: kernels that combine slices are registered for each type, those that
    gradients alone call too.
    """
    if not opinfos.context.through_backward:
        return
    chosen = choose_samples(opinfos, op, dtype, 1, requires_grad=True)
    for sample in (*chosen, *choose_flags(opinfos, op, dtype, chosen)):
        resized = lengthen_dimensions(op, sample, {0: LONG}, LONG + LONG // 2)
        if resized is not None:
            yield from keep_computed(partial(differentiate, op), [(f"{LONG} rows", resized)])


def choose_fewest(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, chosen: Sequence[SampleInput]) -> list[SampleInput]:
    """A sample of fewer tensors than the first chosen one has, as a norm without a weight; none if there is none."""
    samples = opinfos.reaching_samples(op, dtype, requires_grad=True) if chosen else []
    fewer = [
        sample
        for sample in samples
        if count_others(sample) < count_others(chosen[0]) and sample.input.ndim > 1 and sample.input.numel()
    ]
    return sorted(fewer, key=count_others)[:1]


def list_long_gradients(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, rows: int) -> Iterator[Varied]:
    """A sample of which a gradient sums rows, with so many that more slices of them are combined than threads do; then
    one with each other choice of flags, which has kernels of its own. Of each, all gradients and the sums alone.
    """
    if not varies_in(opinfos, op, dtype):
        return
    chosen = choose_samples(opinfos, op, dtype, GRADIENT_SAMPLES, requires_grad=True)
    seen: set[str] = set()
    for sample in (*chosen, *choose_flags(opinfos, op, dtype, chosen)):
        flags = list_flags(sample)
        resized = lengthen_dimensions(op, sample, {0: rows}, rows + rows // 4) if flags not in seen else None
        if resized is not None and sums_rows(resized):
            seen.add(flags)
            yield f"{rows} rows", resized
            sums = [at for at, tensor in enumerate(list_operands(resized)) if 2 * tensor.numel() <= rows]
            yield from ((f"{rows} rows, the gradient of operand {at} alone", ask_for(resized, [at])) for at in sums)


def list_first_long_gradient(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """A sample with rows for more slices still: it takes seconds."""
    return islice(list_long_gradients(opinfos, op, dtype, ROW), 1)


def count_elements(sample: SampleInput) -> int:
    """The elements of a sample's input; none of what is no tensor."""
    return sample.input.numel() if isinstance(sample.input, torch.Tensor) else 0


def name_dimensions(sample: SampleInput) -> Mapping[str, Mapping[int, int]]:
    """The dimensions of a sample's input that are long, and how long, by what a message calls them."""
    last = sample.input.ndim - 1
    longs = {f"{LONG} along the first dimension": {0: LONG}}
    if last:
        longs[f"{LONG} along the last dimension"] = {last: LONG}
    # Classes, channels, the height of images: a row's position is another number than its column's.
    longs |= {f"{LONG} along dimension {dim}": {dim: LONG} for dim in range(1, last)}
    if last > 1:
        longs[f"a batch of {BATCH} by {CHANNELS} channels"] = {0: BATCH, 1: CHANNELS}
    return longs


WIDE_SIZES = Variation("wide_sizes", list_wide, dtypes=TYPES)
LONGER_ROWS = Variation("longer_rows", list_longer_rows, thorough=True)
LONG_GRADIENTS = Variation(
    "long_gradients", partial(list_long_gradients, rows=SLICED_ROW), expectation=Expectation.GRADIENTS
)
LONGER_GRADIENTS = Variation(
    "longer_gradients", list_first_long_gradient, expectation=Expectation.GRADIENTS, thorough=True
)
WIDE_GRADIENTS = Variation("wide_gradients", list_wide_gradients, Operators.STRUCTURED, Expectation.GRADIENTS)
WIDER_GRADIENTS = Variation("wider_gradients", list_wider_gradients, expectation=Expectation.GRADIENTS)
WIDE_GRADIENTS_IN_16_BITS = Variation(
    "wide_gradients_in_16_bits",
    list_halves,
    expectation=Expectation.GRADIENTS,
    dtypes=(torch.float16, torch.bfloat16),
)
