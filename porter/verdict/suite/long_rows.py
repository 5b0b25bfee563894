"""Samples with rows of so many elements that one threadgroup is too small for them, or with an element not finite."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, product
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, turn_flags
from porter.verdict.suite.leaves import change_tensors, compute_unless_refused, list_tensors, put_on_meta, replace_input
from porter.verdict.suite.opinfos import OpInfos, take_spread
from porter.verdict.suite.transforms import mixes

LONG, COLUMNS = 100_003, (3_001, 33)
SEVERAL = (2_500, (2_500, 3))  # more than two threadgroups have threads, for rows that stay as long
MOST_REPEATED = 1 << 20  # elements
PAIR = 2
SHORT = (101, (67, 3))  # of the same shapes, to tell whether an operator reduces
DTYPES = [torch.float32, torch.float16, torch.int64, torch.bool]  # other types have one sample's long rows
KEPT = 2


def list_long(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[tuple[str, SampleInput]]:
    """The samples of long rows that an operator reduces, which the CPU says of short ones, those of its own rows that
    end in an element that is not finite, and samples of rows that it keeps, as a scan or a sort does.
    """
    few = take_spread(opinfos.samples(op, dtype))
    if dtype not in DTYPES:
        # A kernel that merges what others sorted is launched for long rows alone, and registered for each type.
        yield from islice((varied for sample in few for varied in _list_reduced(op, sample)), 1)
        yield from next((several for sample in few if (several := _list_kept(op, sample))), [])
        return
    kept = KEPT
    for sample in few:
        long = _list_reduced(op, sample)
        yield from long
        many = zip(repeat_rows(sample), repeat_rows(sample, SHORT[0]), strict=False)
        yield from (each for each, (_, few_rows) in many if reduces(compute_unless_refused(op, few_rows), few_rows))
        if long:
            yield from put_nan_last(long[:1])
            infinite = put_infinite_last([*long[:1], *make_pairs(sample)])
            yield from ((label, row) for label, row in infinite if ignores_order(op, row))
            ends = (each for each in put_ends(sample) if ignores_order(op, each[1]))
            yield from (each for each in ends if not makes_nan(op, each[1]))
        elif kept and (several := _list_kept(op, sample)):
            kept -= 1
            yield from several


def _list_reduced(op: OpInfo, sample: SampleInput) -> list[tuple[str, SampleInput]]:
    """The sample with rows of several parts, where results have one element for each row."""
    varied = _lengthen_alike(sample, LONG, COLUMNS)
    return [long for long, short in varied if reduces(compute_unless_refused(op, short), short)]


def _list_kept(op: OpInfo, sample: SampleInput) -> list[tuple[str, SampleInput]]:
    """The sample with rows of several threadgroups, where results are as long; one of them with flags turned over."""
    varied = _lengthen_alike(sample, *SEVERAL)
    kept = [long for long, short in varied if keeps(compute_unless_refused(op, short), short)]
    turned = ((f"{label}, {flag}", each) for label, long in kept[-1:] for flag, each in turn_flags(op, long))
    return [*kept, *turned]


def _lengthen_alike(
    sample: SampleInput, long: int, columns: tuple[int, int]
) -> list[tuple[tuple[str, SampleInput], SampleInput]]:
    """The sample with long rows, each beside one of the same shape with short ones.

    None of a type whose elements the CPU cannot put into long rows.
    """
    try:
        varied = zip(lengthen(sample, long, columns), lengthen(sample, *SHORT), strict=True)
        return [(labeled, short) for labeled, (_, short) in varied]
    except NotImplementedError:
        return []


def reduces(result: Any, sample: SampleInput) -> bool:
    """Whether results have one element at most for each row of the sample's input along its longest dimension."""
    found = list_tensors(result)
    return bool(found) and all(
        each.numel() * max(sample.input.shape, default=1) <= sample.input.numel() for each in found
    )


def keeps(result: Any, sample: SampleInput) -> bool:
    """Whether results have no more elements than the sample's input: others may have its size squared."""
    found = list_tensors(result)
    return bool(found) and all(each.numel() <= sample.input.numel() for each in found)


def lengthen(
    sample: SampleInput, long: int = LONG, columns: tuple[int, int] = COLUMNS
) -> Iterator[tuple[str, SampleInput]]:
    """The sample with its first or its last dimension long, or with long columns, and other dimensions short.

    Tensors of the input's shape are changed with it. A sample with any of another shape stays as it is: its sizes may
    have to go with the input's, and not every kernel of ATen checks that.
    """
    if not isinstance(sample.input, torch.Tensor) or not sample.input.numel() or not sample.input.ndim:
        return
    others = list_tensors((sample.args, sample.kwargs))
    if any(each.ndim and each.shape != sample.input.shape for each in others):
        return
    rank = sample.input.ndim
    shapes = {"a long first dimension": (long, *(1 for _ in range(rank - 1)))}
    if rank > 1:
        shapes["a long last dimension"] = (2, *(1 for _ in range(rank - 2)), long)
        shapes["long columns"] = (columns[0], *(1 for _ in range(rank - 2)), columns[1])
    for (label, shape), rest in ((each, rest) for each in shapes.items() for rest in (1, 0)):
        yield f"{label}, of {rest}s", change_tensors(sample, partial(_enlarge, sample=sample, shape=shape, rest=rest))


def make_pairs(sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with rows of two elements: what counts those that are finite has one, if the other is infinite."""
    pairs = islice(lengthen(sample, PAIR, (PAIR, 1)), 0, 4, 2)  # the first and the last dimension, without zeros
    yield from ((f"pairs: {label}", pair) for label, pair in pairs)


def repeat_rows(sample: SampleInput, long: int = LONG) -> Iterator[tuple[str, SampleInput]]:
    """The sample with its rows repeated, where tensors beside the input have fewer dimensions.

    Those of as many rows are changed with it; of these, the smallest has so many elements. Where others have several
    dimensions, or as many as the input, results may have the square of the rows, and the sample stays as it is.
    """
    if not isinstance(sample.input, torch.Tensor) or not sample.input.numel() or not sample.input.ndim:
        return
    others = list_tensors((sample.args, sample.kwargs))
    beside = [each for each in others if each.ndim and len(each) == len(sample.input)]
    if not any(each.ndim for each in others) or any(each.ndim >= sample.input.ndim for each in beside):
        return
    if any(each.ndim > 1 and len(each) != len(sample.input) for each in others):
        return
    rows = math.ceil(long / max(1, min((each[0].numel() for each in beside), default=1)))
    if rows * sample.input[0].numel() <= MOST_REPEATED:
        yield "many rows", change_tensors(sample, partial(_repeat, count=len(sample.input), rows=rows))


def sums_rows(sample: SampleInput) -> bool:
    """Whether a gradient by a tensor of the sample sums rows: it has fewer elements than the input, of many rows."""
    tensors = list_tensors((sample.args, sample.kwargs))
    return any(each.requires_grad and each.ndim and 2 * each.numel() <= sample.input.numel() for each in tensors)


def put_ends(sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with its first or its last element infinite or NaN, which it is of its row over any dimensions.

    Also NaN at both ends, because a position is the first one's; one of them behind zeros, because zero times it is
    NaN. Also all elements infinite, because the initial value of a minimum or maximum must not be more extreme; or NaN,
    because none of them equals the one before.
    """
    if not sample.input.is_floating_point() or not sample.input.numel():
        return
    for value, (label, at) in product((math.inf, -math.inf, math.nan), (("first", [0]), ("last", [-1]))):
        yield f"{value} {label}", _put(sample, value, at)
    yield "nan first and last", _put(sample, math.nan, [0, -1])
    zeros = replace_input(sample, torch.zeros_like(sample.input.detach()))
    for value in (math.inf, math.nan):
        yield f"{value} last of zeros", _put(zeros, value, [-1])
    for value in (math.inf, -math.inf, math.nan):
        yield f"{value} alone", replace_input(sample, torch.full_like(sample.input.detach(), value))


def put_nan_last(found: Iterable[tuple[str, SampleInput]]) -> Iterator[tuple[str, SampleInput]]:
    """The samples of floats with a NaN as the last element, which of a row in parts is in the last one, and with one as
    the first too, whose position is that of the row.
    """
    for label, sample in found:
        if sample.input.is_floating_point():
            yield f"{label}, nan last", _put(sample, math.nan, [-1])
            yield f"{label}, nan first and last", _put(sample, math.nan, [0, -1])


def put_infinite_last(long: Iterable[tuple[str, SampleInput]]) -> Iterator[tuple[str, SampleInput]]:
    """The samples of floats with an infinite last element: what combines parts of a row, as of a variance, is to know
    that not all of its elements are finite.
    """
    for label, sample in long:
        if sample.input.is_floating_point():
            yield f"{label}, inf last", _put(sample, math.inf, [-1])


def _put(sample: SampleInput, value: float, places: list[int]) -> SampleInput:
    changed = sample.input.detach().clone(memory_format=torch.contiguous_format)
    changed.view(-1)[places] = value
    return replace_input(sample, changed)


def ignores_order(op: Callable[..., Any], sample: SampleInput) -> bool:
    """Whether what is not finite of the CPU's results follows from elements, not from the order they are in.

    A mean of one pass, as the CPU's beside a variance, is NaN or infinite by where an infinite element is; and so are
    the results of a transform.
    """
    turned = replace_input(sample, sample.input.flip(tuple(range(sample.input.ndim))))
    return _list_kinds(op, sample) == _list_kinds(op, turned, turns=True) and not mixes(op, sample)


def makes_nan(op: Callable[..., Any], sample: SampleInput) -> bool:
    """Whether the CPU makes NaN of infinite elements alone: in a mean of one pass that may be of their order too."""
    found = _list_kinds(op, sample) if bool(sample.input.isinf().all()) else []
    return any(torch.tensor(nan).any() for nan, _ in found)


def _list_kinds(op: Callable[..., Any], sample: SampleInput, turns: bool = False) -> list[Any]:
    """Which floating results are NaN, and which infinite, as the input has them or turned back; none if refused."""
    made = [each for each in list_tensors(compute_unless_refused(op, sample)) if each.is_floating_point()]
    back = [each.flip(tuple(range(each.ndim))) if turns else each for each in made]
    return [(each.isnan().tolist(), each.isinf().tolist()) for each in back]


def _enlarge(value: torch.Tensor, sample: SampleInput, shape: tuple[int, ...], rest: int) -> torch.Tensor:
    """A tensor of another shape: its first elements at the start and at the end, and a number between."""
    if value.shape != sample.input.shape:
        return value
    made = torch.full(shape, rest, dtype=value.dtype)
    few = value.detach().flatten()[: made.numel() // 2]
    made.flatten()[: len(few)].copy_(few)
    made.flatten()[-len(few) :].copy_(few.flip(0))
    return made


def _repeat(value: torch.Tensor, count: int, rows: int) -> torch.Tensor:
    """A tensor of `count` rows with as many as `rows`."""
    if not value.ndim or len(value) != count:
        return value
    times = (math.ceil(rows / count), *(1 for _ in value.shape[1:]))
    return value.detach().repeat(times)[:rows].requires_grad_(value.requires_grad)


FLAGGED = (torch.float32, torch.int64)


def list_all_ends(op: OpInfo, picked: Sequence[SampleInput], dtype: torch.dtype) -> Iterator[Varied]:
    """Samples at the ends of their type; then, of `FLAGGED` types, the first one with each flag turned over: where a
    sort descends, its NaN are compared in another way than where it ascends.

    Samples whose input has elements at the ends of its type: integers shifted there, floats that are not finite, and
    zeros of either sign.
    """
    for sample in picked:
        yield from list_ends(op, sample)
    flagged = [turned for sample in picked[:1] if dtype in FLAGGED for turned in turn_flags(op, sample)]
    yield from ((f"{label}, {flag}", varied) for flag, sample in flagged for label, varied in list_ends(op, sample))


def list_ends(op: Callable[..., Any], sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with its input at the ends of its type, with names for messages, where no result is larger for it.

    Those that are not finite only where results keep the input's rows: what makes one element of a row has tests of its
    own.
    """
    if not isinstance(sample.input, torch.Tensor) or not sample.input.numel():
        return
    if sample.input.is_floating_point():
        yield from _list_not_finite(op, sample)
    elif not sample.input.is_complex() and sample.input.dtype != torch.bool and _tells_shapes(op, sample):
        yield from shift_to_ends(sample)


def shift_to_ends(sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with its input shifted so that its greatest element is the type's, then its least one.

    Elements differ by as much as before: in a floating type of as many bits they would be equal. Those without a sign
    are also about the middle of their type, from which on a sign makes them less than the others.
    """
    given, whole = sample.input.detach(), torch.iinfo(sample.input.dtype)
    yield "at the greatest integers", replace_input(sample, given - given.max() + whole.max)
    yield "at the least integers", replace_input(sample, given - given.min() + whole.min)
    if not whole.min:
        middle = whole.max // 2 - int(given.max() - given.min()) // 2
        yield "about the middle", replace_input(sample, given - given.min() + middle)


def _list_not_finite(op: Callable[..., Any], sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    result = compute_unless_refused(op, sample)
    if not keeps(result, sample):
        return
    yield "zeros of either sign", replace_input(sample, _alternate_zeros(sample.input.detach()))
    if reduces(result, sample) or mixes(op, sample):
        return
    turned = pytree.tree_leaves(compute_unless_refused(op, replace_input(sample, _turn(sample.input.detach()))))
    found = [(a, b) for a, b in zip(pytree.tree_leaves(result), turned, strict=False) if isinstance(a, torch.Tensor)]
    turns = bool(found) and all(a.shape == b.shape and torch.allclose(_turn(a), b, equal_nan=True) for a, b in found)
    yield from ((label, each) for label, each in put_ends(sample) if not turns or ignores_order(op, each))


def _alternate_zeros(tensor: torch.Tensor) -> torch.Tensor:
    """Zeros of which every second one has a sign, the first one too: they are all equal."""
    signs = torch.arange(tensor.numel()) % 2 * 2 - 1
    return torch.zeros(tensor.shape).copysign(signs.view(tensor.shape)).to(tensor.dtype)


def _turn(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.flip(tuple(range(tensor.ndim)))


def _tells_shapes(op: Callable[..., Any], sample: SampleInput) -> bool:
    """Whether the shapes of results do not follow from elements: a count of the greatest integer has no memory."""
    return compute_unless_refused(op, put_on_meta(sample)) is not None
