"""Calls in 16 bits that add up many elements, each too small to count in 16 bits beside what was added up before.

Every ATen row computes in 32 bits what it returns in 16. A kernel that adds up a variance, a norm or a loss in 16 bits
loses the small elements of these rows, whichever thread adds them: the large ones are first in the row. What they are
as squares, cubes or exponentials is small in turn. Linear operators have `many_addends` besides.
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
from porter.verdict.suite.leaves import change_tensors, compute, compute_unless_refused, list_tensors
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.overloads import Call, call_overload, record_calls
from porter.verdict.suite.refusals import REFUSALS
from porter.verdict.suite.resizing import lengthen_dimensions, resize_along
from porter.verdict.suite.samples import count_results
from porter.verdict.suite.sums import convert, excess_of_rounding
from porter.verdict.suite.variations.choice import TYPES, choose_samples, varies_in
from porter.verdict.suite.variations.combines import has_other_tensors
from porter.verdict.suite.variations.ranks import NAMES
from porter.verdict.suite.variations.variation import Expectation, Variation

LENGTH = 70_001  # 34 elements for each of 1,024 threads that have a slice of a row, of two
LARGE = 2048  # elements at its start: the first of each thread's
MOST_ELEMENTS, MOST_WITH_OTHERS = 100_000, 300_000
MOST = 12  # samples of an operator
_SAMPLES, _CALLS = 24, 6  # that are recorded; of each row of ATen
_ROWS, _PICKED = 2, 1  # for a dimension of a call
_SEEN = 1.5  # times what 16 bits tell apart: what a result changes by with the small elements, at least
_FLAGS = ("keepdim", *NAMES)  # arguments that do not tell what is added up


def list_accumulating(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Calls with a last or a first dimension of large and small elements, where the small ones count together."""
    if opinfos.plans(dtype) or dtype in opinfos.grad_dtypes:
        yield from islice(_list_all(opinfos, op, dtype), MOST)


def _list_all(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    seen: set[str] = set()
    for call in choose_calls(opinfos, op, dtype):
        sample = call.make_sample()
        # A weight for channels that were cut is of no call, though the CPU computes it.
        most, kept = (MOST_WITH_OTHERS, (1,)) if has_other_tensors(sample) else (MOST_ELEMENTS, ())
        for dim in dict.fromkeys((sample.input.ndim - 1, 0)):
            resized = lengthen_dimensions(call_overload, sample, {dim: LENGTH}, most, kept)
            rows = _ROWS if call.base not in seen else 1
            filled = [] if resized is None else [*islice(fill_picked(resized, dim, dtype), _PICKED),
                                                 *islice(fill_rows(resized, dim, dtype), rows)]  # fmt: skip
            yield from filled
            if filled and call.base in seen:  # of calls that differ in numbers one dimension tells
                break
            if filled and dim == 0:
                seen.add(call.base)


def choose_calls(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype, prefers_rows: bool = False) -> list[Call]:
    """Calls of operators under test that an OpInfo's samples end in: of each row of ATen a few that differ in numbers,
    with the first of alike ones, or the one with the most results.
    """
    samples = opinfos.reaching_samples(op, dtype, requires_grad=op.supports_autograd)
    chosen: dict[str, dict[str, Call]] = {}
    for call in record_calls(op, samples[:: len(samples) // _SAMPLES + 1], opinfos.context.bases):
        first = call.args[0] if call.args else None
        if isinstance(first, torch.Tensor) and first.dtype is dtype and first.ndim and first.numel():
            alike = chosen.setdefault(call.name, {})
            other = alike.setdefault(_describe(call), call)
            if prefers_rows and _count_results(other.make_sample()) < _count_results(call.make_sample()):
                alike[_describe(call)] = call
    return [call for calls in chosen.values() for call in list(calls.values())[:_CALLS]]


def _describe(call: Call) -> str:
    """The arguments of a call that are no tensors and name no dimension."""
    names = [argument.name for argument in call.overload._schema.arguments]
    every = {**dict(zip(names, call.args, strict=False)), **call.kwargs}
    plain = {name: value for name, value in every.items() if name not in _FLAGS}
    return repr({name: value for name, value in plain.items() if not isinstance(value, (torch.Tensor, list))})


def fill_rows(sample: SampleInput, dim: int, dtype: torch.dtype) -> Iterator[Varied]:
    """Yields the call with such elements in all floating tensors that are as long, where the CPU computes that."""
    small = torch.finfo(dtype).eps * 0.45  # less than half of what follows one
    at = torch.arange(sample.input.shape[dim])
    # Around zero, squares are those of deviations from a mean too.
    plain, around_zero = torch.ones(at.shape), torch.where(at % 2 == 0, 1.0, -1.0)
    pairs = ((0.0, math.log(small), plain), (1.0, small, plain), (1.0, small ** (1 / 2), around_zero),
             (1.0, small ** (1 / 3), plain))  # fmt: skip
    for large, rest, signs in pairs:
        label = f"{LARGE} of {large} and {len(at) - LARGE} of {rest:.4f} along dimension {dim}"
        smaller = torch.full(at.shape, rest / 64 if large else 4 * rest)
        rows = [torch.full(at.shape, rest), smaller, torch.where(at // 2 % 2 == 0, smaller, rest)]
        filled = [_fill(sample, signs * torch.where(at < LARGE, large, row)) for row in rows]
        if counts(filled[0], filled[1:], len(at), dtype) and not rounds_elements(filled[0], filled[1], dtype):
            yield from keep_computed(stay_inside(call_overload), [(f"{sample.kwargs['overload']}: {label}", filled[0])])


def fill_picked(sample: SampleInput, dim: int, dtype: torch.dtype) -> Iterator[Varied]:
    """Yields the call with such elements in the floating tensors of one dimension that its long index tensors pick
    from: the weights of classes, of which a loss has the sum.

    The first of a tensor is large, and what is picked most is the second and the third.
    """
    count = sample.input.shape[dim]
    values = pytree.tree_leaves((sample.args, sample.kwargs))
    indices = [value for value in values if _is_index(value, count)]
    lengths = [len(value) for value in values if _is_table(value, count)]
    if not indices or not lengths or any(int(index.max()) >= min(lengths) for index in indices):
        return  # these tensors are not what they name elements of
    small = torch.finfo(dtype).eps * 0.45
    at = torch.arange(count)
    places = torch.where(at < LARGE, 0, 1 + at // 2 % 2)
    tables = ((small, small), (small / 64, small / 64), (small / 64, small))
    filled = [_fill_table(sample, places, torch.tensor([1.0, *table])) for table in tables]
    label = f"{LARGE} of the first weight and {count - LARGE} of others along dimension {dim}"
    if counts(filled[0], filled[1:], count, dtype):
        yield from keep_computed(stay_inside(call_overload), [(f"{sample.kwargs['overload']}: {label}", filled[0])])


def counts(sample: SampleInput, smaller: Sequence[SampleInput], length: int, dtype: torch.dtype) -> bool:
    """Whether a result differs in 16 bits where all small elements of a call are smaller, and less where every second
    one is: of results along the row, one at a large element.

    What picks elements takes a smaller one or does not.
    """
    try:
        before, all_smaller, some_smaller = (_compute_exactly(each) for each in (sample, *smaller))
    except REFUSALS:
        return False
    for results in zip(before, all_smaller, some_smaller, strict=True):
        if len({result.shape for result in results}) > 1:
            continue  # it tells elements apart, as `unique` does, and adds none up
        mine, every, some = (_narrow(each, length) for each in results)
        most, less = (mine - every).abs(), (mine - some).abs()
        is_seen = most > _SEEN * torch.finfo(dtype).eps * mine.abs()
        if bool((is_seen & (less > most / 8) & (less < most * 7 / 8)).any()):
            return True
    return False


def rounds_elements(sample: SampleInput, smaller: SampleInput, dtype: torch.dtype) -> bool:
    """Whether the CPU rounds to 16 bits what it adds up in 32, of elements that are too small for these.

    Its result is off, by far less than what is lost without these elements. A loss of three tensors is a product of
    three: 65 of float16's smallest numbers (`binary_cross_entropy_out_cpu` in aten/src/ATen/native/Loss.cpp).
    """
    try:
        rounded, wide = (_compute(convert(sample, each)) for each in (dtype, torch.float32))
        exact, without = (_compute_exactly(each) for each in (sample, smaller))
    except REFUSALS:
        return False
    return any(
        len({result.shape for result in results}) == 1 and _is_rounded(*results, dtype)
        for results in zip(rounded, wide, exact, without, strict=True)
    )


def _is_rounded(
    mine: torch.Tensor, near: torch.Tensor, right: torch.Tensor, rest: torch.Tensor, dtype: torch.dtype
) -> bool:
    """Whether a result in 16 bits is off as one in 32 is not, by less than it would be without the small elements."""
    lost = ((mine - right).abs() < (right - rest).abs() / 8).all()
    return bool(lost) and excess_of_rounding(mine, near, right, dtype) != ""


def _narrow(result: torch.Tensor, length: int) -> torch.Tensor:
    return result.narrow(list(result.shape).index(length), 0, LARGE) if length in result.shape else result


def _compute_exactly(sample: SampleInput) -> list[torch.Tensor]:
    return _compute(convert(sample, torch.float64))


def _compute(sample: SampleInput) -> list[torch.Tensor]:
    results = list_tensors(compute(call_overload, sample))
    return [result for result in results if result.is_floating_point()]


def _is_index(value: Any, count: int) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.int64, torch.int32) and count in value.shape


def _is_table(value: Any, count: int) -> bool:
    is_row = isinstance(value, torch.Tensor) and value.is_floating_point() and value.ndim == 1
    return is_row and 3 <= len(value) != count


def _fill_table(sample: SampleInput, places: torch.Tensor, table: torch.Tensor) -> SampleInput:
    """The sample with these indices along the dimension that is as long, and these elements to pick from."""

    def change(value: torch.Tensor) -> torch.Tensor:
        if _is_index(value, len(places)):
            return _spread_row(places, value)
        if not _is_table(value, len(places)):
            return value
        return table.to(value.dtype)[torch.arange(len(value)).clamp(max=len(table) - 1)]

    return change_tensors(sample, change)


def _spread_row(row: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """A tensor of a shape and type whose elements are a row's along the dimension that is as long."""
    behind = value.ndim - 1 - list(value.shape).index(len(row))
    return row.view(-1, *[1] * behind).expand(value.shape).to(value.dtype, memory_format=torch.contiguous_format)


def _fill(sample: SampleInput, row: torch.Tensor) -> SampleInput:
    def change(value: torch.Tensor) -> torch.Tensor:
        return _spread_row(row, value) if value.is_floating_point() and len(row) in value.shape else value

    return change_tensors(sample, change)


WIDE_ACCUMULATION = Variation(
    "wide_accumulation",
    list_accumulating,
    expectation=Expectation.ROUNDED,
    dtypes=(torch.float16, torch.bfloat16),
    calls_overloads=True,
)


# Elements of a row. Rounded to 16 bits, the count is off by as much as rounding may be, and so is the factor that a
# variance of so many elements has.
COUNTS = {torch.float16: 2_051, torch.bfloat16: 259}
_MOST_OTHERS = 9  # elements along other dimensions
_OF_COUNTS = 20  # samples of an operator
_SCALES = (1.0, 0.94, 0.88, 0.82, 0.76, 0.7, 0.64, 0.58)  # of elements with one result: each has other last digits


def list_rounded_once(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Calls that reduce rows of a count that 16 bits do not have: a kernel that divides by it in 16 bits, or in 16 bits
    at all, rounds more often than once.
    """
    if opinfos.plans(dtype) or dtype in opinfos.grad_dtypes:
        yield from islice(_list_counted(opinfos, op, dtype), _OF_COUNTS)


def _list_counted(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    for call in choose_calls(opinfos, op, dtype, prefers_rows=True):
        sample = call.make_sample()
        is_one = min(_count_results(sample), default=0) == 1
        dims = dict.fromkeys((sample.input.ndim - 1, *range(sample.input.ndim)))
        rows = ((dim, each) for dim in dims if (each := _lengthen_rows(sample, dim, dtype, is_one)) is not None)
        # A loss has classes along one of two dimensions.
        for dim, resized in islice(rows, 2 if has_other_tensors(sample) else 1):
            for scale in _SCALES if is_one else _SCALES[:1]:
                change = partial(_scale_rows, shape=resized.input.shape, dim=dim, scale=scale)
                label = f"{call.name}: rows of {COUNTS[dtype]} along dimension {dim}, times {scale}"
                yield label, change_tensors(resized, change)


def _lengthen_rows(sample: SampleInput, dim: int, dtype: torch.dtype, is_one: bool) -> SampleInput | None:
    """The sample with rows of such a count along a dimension, if floating results have no more elements then."""
    counts = _count_results(sample)
    resized = resize_along(call_overload, sample, dim, (COUNTS[dtype],), 1 if is_one else _MOST_OTHERS)
    lengthened = ((rows, _count_results(rows)) for _, rows in resized)
    return next((rows for rows, now in lengthened if now and all(map(int.__le__, now, counts))), None)


def _scale_rows(tensor: torch.Tensor, shape: torch.Size, dim: int, scale: float) -> torch.Tensor:
    """Positive elements, each row times another factor. Of a sum near zero, 32 bits have few digits."""
    if not tensor.is_floating_point():
        return tensor
    scaled = tensor.detach().abs() * scale
    if tensor.shape != shape:
        return scaled
    kept = [size for at, size in enumerate(shape) if at != dim]
    return scaled * torch.linspace(0.5, 1, math.prod(kept)).view(kept).unsqueeze(dim).to(tensor.dtype)


def _count_results(sample: SampleInput) -> list[int]:
    results = list_tensors(compute_unless_refused(call_overload, sample))
    return [result.numel() for result in results if result.is_floating_point()]


ONE_ROUNDING = Variation(
    "one_rounding",
    list_rounded_once,
    expectation=Expectation.ROUNDED_ONCE,
    dtypes=(torch.float16, torch.bfloat16),
    calls_overloads=True,
)


RESULTS = 1 << 20
MOST_WIDE = RESULTS + RESULTS // 4
ROWS, COLUMNS = 1_031, 1_033  # together more than that
LONG = RESULTS + 77
BATCH, LENGTH_WIDE = 15, 70_001  # likewise, and so long that a gradient which sums that many is judged by its own bound
SAMPLES = 6


def list_wide_results(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """One sample whose results have so many elements.

    Results of more than 2^20 elements, and gradients: of a launch whose grid ends at a round number, the rest is memory
    that nobody wrote. Other sizes go past 16 bits along a dimension and stay below this, as most of them would take
    long.
    """
    if not varies_in(opinfos, op, dtype):
        return
    for sample in choose_samples(opinfos, op, dtype, SAMPLES):
        for longs in _list_longs(sample) if count_results(op, sample) > 1 else ():
            resized = lengthen_dimensions(op, sample, longs, MOST_WIDE, largest=True)
            if resized is not None and count_results(op, resized) > RESULTS:
                yield f"results of more than {RESULTS} elements", resized
                return


def list_wide_slopes(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """One sample whose input has so many elements, where gradients alone call what is tested."""
    if not opinfos.context.through_backward or not varies_in(opinfos, op, dtype):
        return
    for sample in choose_samples(opinfos, op, dtype, SAMPLES, requires_grad=True):
        last = sample.input.ndim - 1
        longs = {0: BATCH, last: LENGTH_WIDE} if last else {0: LONG}
        resized = lengthen_dimensions(op, sample, longs, MOST_WIDE)
        if resized is not None and resized.input.numel() > RESULTS:
            yield from keep_computed(partial(differentiate, op), [(f"more than {RESULTS} elements", resized)])
            return


def _list_longs(sample: SampleInput) -> tuple[Mapping[int, int], ...]:
    """The dimensions that are long: rows and columns, or for results of a row each the rows alone."""
    last = sample.input.ndim - 1
    return ({0: ROWS, last: COLUMNS}, {0: LONG}) if last else ({0: LONG},)


WIDE_RESULTS = Variation("wide_results", list_wide_results, dtypes=TYPES)
SLOPES_OF_WIDE_INPUTS = Variation("slopes_of_wide_inputs", list_wide_slopes, expectation=Expectation.GRADIENTS)
