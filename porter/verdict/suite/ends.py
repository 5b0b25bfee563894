"""Samples whose input has elements at the ends of its type: integers shifted there, floats that are not finite, and
zeros of either sign.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, keep_computed, turn_flags
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.leaves import (
    change_tensors,
    compute,
    compute_unless_refused,
    list_operands,
    list_tensors,
    put_on_meta,
    replace_input,
)
from porter.verdict.suite.long_rows import ignores_order, keeps, put_ends, reduces
from porter.verdict.suite.resizing import Tie, Way
from porter.verdict.suite.transforms import mixes

FLAGGED = (torch.float32, torch.int64)


def list_all_ends(op: OpInfo, picked: Sequence[SampleInput], dtype: torch.dtype) -> Iterator[Varied]:
    """Samples at the ends of their type; then, of `FLAGGED` types, the first one with each flag turned over: where a
    sort descends, its NaN are compared in another way than where it ascends.
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


# Samples without elements in one dimension, of which an operator still makes some: a sum of nothing is zero.


def list_empty_rows(op: Callable[..., Any], sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """Those of which the CPU makes elements, with names for messages."""
    for label, each in keep_computed(stay_inside(op), empty_dimensions(sample)):
        if any(result.numel() for result in list_tensors(compute(op, each))):
            yield label, each


def empty_dimensions(sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with one dimension of the input empty, and of what has its shape, then of what goes with its sizes, as
    the target of a loss does; the CPU may refuse some of them.
    """
    if isinstance(sample.input, torch.Tensor) and sample.input.numel() and sample.input.layout is torch.strided:
        for dim in range(sample.input.ndim):
            alone = change_tensors(sample, partial(_empty, shape=sample.input.shape, dim=dim))
            yield f"no elements in dimension {dim}", alone
            tried = [_list_shapes(alone)]
            for tie in (Tie.FIRST, Tie.LAST):
                tied = Way(tie, changes_lists=False, spreads_indices=False).resize(sample, {dim: 0})
                if _list_shapes(tied) not in tried:
                    tried.append(_list_shapes(tied))
                    yield f"no elements in dimension {dim}, {tie.value}", tied


def has_other_bools(results: Any) -> bool:
    """Whether a result of bools has an element that is neither true nor false, as memory that nobody wrote may."""
    found = list_tensors(results)
    bools = (each.cpu() for each in found if each.dtype is torch.bool)
    return any(bool((each.view(torch.uint8) > 1).any()) for each in bools)


def _list_shapes(sample: SampleInput) -> list[torch.Size]:
    return [leaf.shape for leaf in list_operands(sample)]


def _empty(tensor: torch.Tensor, shape: torch.Size, dim: int) -> torch.Tensor:
    return tensor.detach().narrow(dim, 0, 0).clone() if tensor.shape == shape else tensor


# Samples with long rows of elements that all differ, for operators that pick elements or give whole numbers.
#
# OpInfo's rows are short, and long ones of equal elements hide most of what is picked wrongly. Nothing is rounded where
# elements are picked, so that any elements do: each result is right or wrong.


LONG, ROWS = 2_500, 3  # more elements than two threadgroups have threads
SHORT = 37, 2  # enough to tell an operator that picks; of one element in a dimension, sums pick it too


def list_picked(op: OpInfo, sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with several long rows in each dimension, with names for messages, and with each of its flags turned
    over, where the CPU picks elements of such rows.
    """
    if not _is_alone(sample):
        return
    for dim in range(sample.input.ndim):
        if not picks(op, roughen(shuffle(sample, dim, *SHORT))):
            continue
        long = shuffle(sample, dim)
        for label, each in (("", long), *((f", {label}", each) for label, each in turn_flags(op, long))):
            yield f"long rows that differ in dimension {dim}{label}", each
            if each.input.is_floating_point():
                yield f"long rows with a NaN in dimension {dim}{label}", put_nan(each)


def picks(op: OpInfo, sample: SampleInput) -> bool:
    """Whether all results of a sample are elements of its input, or whole numbers, and no more than these."""
    result = compute_unless_refused(op, sample)
    is_by_rows = keeps(result, sample) or reduces(result, sample)
    return is_by_rows and all(_is_exact(each, sample.input) for each in list_tensors(result))


def shuffle(sample: SampleInput, dim: int, long: int = LONG, others: int = 1) -> SampleInput:
    """The sample with another input: rows along a dimension, of which no two elements are equal.

    Where there is another dimension, there are several rows.
    """
    rank = sample.input.ndim
    shape = [long if each == dim else ROWS if each == (dim + 1) % rank else others for each in range(rank)]
    count = math.prod(shape)
    numbers = torch.randperm(count, generator=torch.Generator().manual_seed(0)) - count // 3
    return replace_input(sample, numbers.view(shape).to(sample.input.dtype))


def roughen(sample: SampleInput) -> SampleInput:
    """The sample with floats at no even distances, of which no sum or mean is one of them."""
    return replace_input(sample, sample.input.sin() if sample.input.is_floating_point() else sample.input)


def put_nan(sample: SampleInput) -> SampleInput:
    """The sample with one NaN, in the middle of a row: any other row has none."""
    changed = sample.input.clone()
    changed.view(-1)[changed.numel() // 2] = math.nan
    return replace_input(sample, changed)


def _is_alone(sample: SampleInput) -> bool:
    """Whether the input has dimensions, and no other tensor has sizes that go with its own."""
    if list_tensors((sample.args, sample.kwargs)) or not isinstance(sample.input, torch.Tensor):
        return False
    return sample.input.ndim > 0 and sample.input.numel() > 0


def _is_exact(result: torch.Tensor, source: torch.Tensor) -> bool:
    """Whether a result is of whole numbers, or its elements are a tensor's."""
    if not result.is_floating_point() and not result.is_complex():
        return True
    return result.dtype == source.dtype and bool(torch.isin(result, source).all())


def tell_apart(samples: list[SampleInput]) -> list[SampleInput]:
    """The first sample of each rank and other arguments."""
    found: dict[Any, SampleInput] = {}
    for each in samples:
        rank = each.input.ndim if isinstance(each.input, torch.Tensor) else None
        found.setdefault((rank, repr((each.args, each.kwargs))), each)
    return list(found.values())
