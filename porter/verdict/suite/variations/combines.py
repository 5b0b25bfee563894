"""Rows that many threadgroups reduce: each has a slice, and more slices than a simdgroup has threads are combined.

What combines them may take the first slice, or the first of each thread, start from what is no identity, or take of
equal extremes the one that it meets first. Rows of few slices, and of positive elements, do not tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.leaves import compute_unless_refused, list_tensors, replace_input
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.products import make_factors, multiplies
from porter.verdict.suite.resizing import count_reduced, lengthen_dimensions
from porter.verdict.suite.samples import copy_sample
from porter.verdict.suite.variations.choice import TYPES, choose_samples, varies_in
from porter.verdict.suite.variations.variation import Variation

ROW = (1 << 21) + (1 << 15) + 5  # elements: a thread of 1,024 has 32 of each slice, so that there are 65 slices
THREADS = 1 << 10
# In the second half of the row, and of the 65 slices, or of 64, that every 1,024 elements are of in turn.
FIRST = 1596 * THREADS + 500
# Of an operator that puts its elements in order, which takes many steps an element: 69 blocks of 1,024 are merged.
SORTED_ROW = 70_001
# Of an operator that counts elements: more groups of 1,024 than a threadgroup has threads that add up their counts.
COUNTED_ROW = (1 << 20) + (1 << 16) + 5
_FEW = 33
SAMPLES = 2
MOST_WITH_OTHERS = 1  # rows
MOST_IN_OTHERS = 3  # likewise, in another type
IDENTITY_ROW = 70_001
IDENTITY_SAMPLES = 4
FAR = 1 << 17  # of a few elements a sum is exact


def list_combined(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples that are reduced along a dimension, with that so long that slices of it are combined."""
    if not varies_in(opinfos, op, dtype):
        return
    chosen = choose_samples(opinfos, op, dtype, SAMPLES)
    longest = 0
    for sample in chosen[:1] if any(map(has_other_tensors, chosen)) else chosen:
        # A call with weights or statistics takes seconds for such a row.
        most = MOST_WITH_OTHERS if has_other_tensors(sample) else None
        for length, label, combined in list_rows(op, sample, most):
            longest = max(longest, length)
            yield label, combined
    counted = (varied for sample in chosen if longest < COUNTED_ROW and (varied := lengthen_counted(op, sample)))
    yield from islice(((f"a row of {COUNTED_ROW} that are counted", varied) for varied in counted), 1)


def list_combined_in_other_types(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """A few such rows in a type that `list_combined` has none of: what combines slices is a kernel for each type."""
    if varies_in(opinfos, op, dtype):
        return
    for sample in choose_samples(opinfos, op, dtype, 1):
        rows = list_rows(op, sample) if not has_other_tensors(sample) else ()
        yield from ((label, varied) for _, label, varied in islice(rows, MOST_IN_OTHERS))


def list_rows(op: OpInfo, sample: SampleInput, most: int | None = None) -> Iterator[tuple[int, str, SampleInput]]:
    """The sample with each of the first long rows of which results are finite, and how long it is."""
    length = SORTED_ROW if orders_elements(op, sample) else ROW
    resized = lengthen_reduced(op, sample, length)
    if resized is None:
        return
    factors = {"of factors": make_factors(resized.input)} if multiplies(op, sample) else {}
    rows = {**factors, **make_rows(resized.input)}
    for label, row in islice(rows.items(), None if most is None else most + len(factors)):
        # A product of many numbers overflows or not by the order of its factors, and is NaN if one is zero.
        tried = (replace_input(resized, values) for values in (row, scale_row(row, sample.input)))
        combined = next((each for each in tried if is_finite(op, each)), None)
        if combined is not None:
            yield length, f"a row of {length}, {label}", combined


def lengthen_counted(op: OpInfo, sample: SampleInput) -> SampleInput | None:
    """The sample with a dimension long of whose elements the sizes of results depend, as those of nonzero and unique
    ones do; None if there is none, or if the CPU puts elements in order.
    """
    for dim in dict.fromkeys((sample.input.ndim - 1, 0)):
        short = lengthen_dimensions(op, sample, {dim: _FEW}, _FEW + _FEW // 4)
        if short is None or short.input.dtype is torch.bool:
            continue
        falling = torch.arange(short.input.numel(), 0, -1).to(short.input.dtype).reshape(short.input.shape)
        few, many = (_compute(op, replace_input(short, values)) for values in (torch.zeros_like(falling), falling))
        values = [each for each in many[:1] if each.dtype == falling.dtype]
        is_sorted = any(not each.flatten().equal(falling.flatten()) for each in values)
        if [each.shape for each in few] != [each.shape for each in many] and not is_sorted:
            long = lengthen_dimensions(op, sample, {dim: COUNTED_ROW}, COUNTED_ROW + COUNTED_ROW // 4)
            return long and replace_input(long, make_rows(long.input)["of many numbers"])
    return None


def _compute(op: OpInfo, sample: SampleInput) -> list[torch.Tensor]:
    """The CPU's results; none where it refuses the sample."""
    return list_tensors(compute_unless_refused(op, sample))


def orders_elements(op: OpInfo, sample: SampleInput) -> bool:
    """Whether the CPU gives an element of a row that is neither its least nor its largest, as a median is."""
    short = lengthen_reduced(op, sample, _FEW)
    if short is None or short.input.is_complex() or short.input.dtype is torch.bool:  # complex numbers have no order
        return False
    count = short.input.numel()
    # In no order, and so that neither a sum of them nor a mean is one of them.
    distinct = torch.randperm(count, generator=torch.Generator().manual_seed(0)).square() + 3
    row = distinct.to(short.input.dtype).reshape(short.input.shape)
    first = next((each for each in _compute(op, replace_input(short, row)) if each.dtype == row.dtype), None)
    if first is None or first.numel() not in (1, count):
        return False
    inner = (first != row.min()) & (first != row.max())
    return bool(torch.isin(first, row).all() and inner.any())


def scale_row(row: torch.Tensor, sample: torch.Tensor) -> torch.Tensor:
    """A row in the range of a sample's elements: binary_cross_entropy takes numbers from 0 to 1."""
    if not row.is_floating_point():
        return row
    low, high = sample.detach().aminmax()
    least, most = row.aminmax()
    return low + (row - least) / (most - least) * (high - low)


def has_other_tensors(sample: SampleInput) -> bool:
    """Whether there are tensors beside the input."""
    return bool(list_tensors((sample.args, sample.kwargs)))


def is_finite(op: OpInfo, sample: SampleInput) -> bool:
    """Whether the CPU's floating results are all finite, and it takes the call."""
    results = compute_unless_refused(op, copy_sample(sample))
    return results is not None and all(bool(result.isfinite().all()) for result in list_tensors(results))


def lengthen_reduced(op: OpInfo, sample: SampleInput, long: int, rows: int = 1) -> SampleInput | None:
    """The sample with a dimension long that its elements are reduced along; None if there is none.

    It has so many rows at most.

    Of the first dimension and the last it is the one along which more is reduced: a mean of losses has all of its rows
    in slices, and of each row one element. Where nothing is left of either, it is the first one for what has targets,
    and the last for what has none.
    """
    last = sample.input.ndim - 1
    dims = dict.fromkeys((0, last) if has_other_tensors(sample) else (last, 0))
    counts = {dim: count for dim in dims if (count := count_reduced(op, sample, dim)) is not None}
    return (
        lengthen_dimensions(op, sample, {min(counts, key=lambda dim: counts[dim]): long}, rows * long + long // 4)
        if counts
        else None
    )


def make_rows(tensor: torch.Tensor) -> Mapping[str, torch.Tensor]:
    """Elements for a tensor of one long row, by what a message says of them: each slice has some that count."""
    at = torch.arange(tensor.numel())
    first = FIRST if len(at) >= ROW else FIRST // THREADS * len(at) // ROW * THREADS + 500
    later = at >= first
    tied = torch.ones(tensor.numel())
    tied[later & (at % THREADS == first % THREADS)] = 2
    tied[later & (at % THREADS == first % THREADS + 9)] = 0.25
    single = torch.zeros(tensor.numel())
    single[first], single[first + 7 * THREADS] = 5, -3
    least = torch.ones(tensor.numel())
    least[first] = 0
    rows = {
        "of ones and equal extremes": tied,
        "of zeros but for two": single,
        "of ones but for a zero": least,
        "of many numbers": (at * 5 % 8191 % 8).float(),
    }
    kept = rows if tensor.dtype is not torch.bool else {label: row != 0 for label, row in rows.items()}
    return {label: row.to(tensor.dtype).reshape(tensor.shape) for label, row in kept.items()}


def list_identities(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples whose elements are all one number, below or above what an extreme value might wrongly start from."""
    chosen = choose_samples(opinfos, op, dtype, IDENTITY_SAMPLES)
    for sample in chosen:
        yield from keep_computed(op, fill(sample))
    if varies_in(opinfos, op, dtype):
        long = (resized for sample in chosen if (resized := lengthen_reduced(op, sample, IDENTITY_ROW)))
        yield from (varied for sample in islice(long, 1) for varied in keep_computed(op, fill(sample)))


def fill(sample: SampleInput) -> Iterator[Varied]:
    """The sample with an input of -1 and of 1, alone of what no exponential of is left, of either end of a type of
    integers and of 1, or of either bool.
    """
    dtype = sample.input.dtype
    if dtype is torch.bool or dtype.is_floating_point or dtype.is_complex:
        numbers: tuple[int, ...] = (0, 1) if dtype is torch.bool else (-1, 1)
    else:
        numbers = (torch.iinfo(dtype).min, torch.iinfo(dtype).max, 1)  # as many equal ones as bincount counts
    if dtype.is_floating_point and not has_other_tensors(sample):  # a product with others loses digits
        numbers = (*numbers, -FAR, FAR)
    for number in numbers:
        yield f"an input of {number} alone", replace_input(sample, torch.full_like(sample.input.detach(), number))


IDENTITY_TYPES = (torch.float32, torch.int64, torch.int32, torch.bool)
COMBINES = Variation("combines", list_combined, dtypes=TYPES)
OTHER_TYPES = (torch.float16, torch.int64, torch.bool)  # a type of each kind
COMBINES_IN_OTHER_TYPES = Variation("combines_in_others", list_combined_in_other_types, dtypes=OTHER_TYPES)
COMBINES_IN_EVERY_TYPE = Variation(
    "combines_in_every_type",
    list_combined_in_other_types,
    dtypes=(torch.bfloat16, torch.int32, torch.int16, torch.int8, torch.uint8),
    thorough=True,
)
IDENTITIES = Variation("identities", list_identities, dtypes=IDENTITY_TYPES)
