"""Samples whose index tensors are varied: below zero, far beyond 32 bits, none, and many that are equal.

An index tensor is one of integers beside an input of another type, of which the CPU checks the values or ignores those
that name nothing: a call with an index far outside ends no process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import list_arguments, turn_flags
from porter.verdict.suite.leaves import (
    Place,
    compute_unless_refused,
    list_passed,
    list_tensors,
    read_argument,
    replace_argument,
    replace_arguments,
    replace_input,
)
from porter.verdict.suite.long_rows import keeps, reduces

_TYPES = (torch.int64, torch.int32)
FAR = 1 << 32  # what nothing is left of in 32 bits
OUTSIDE = (1 << 40) + (1 << 30)  # beyond all memory, in 32 bits too
_SMALL = 1 << 31  # every type of indices has it
EQUAL = 300  # more than some of 16 bits count up to


def list_indices(sample: SampleInput) -> list[Place]:
    """The arguments that may be index tensors, by position after the input or by name."""
    if not isinstance(sample.input, torch.Tensor):
        return []
    return [place for place, value in _list_tensors(sample) if value.dtype in _TYPES and _may_index(value, sample)]


def _may_index(value: torch.Tensor, sample: SampleInput) -> bool:
    return value.dtype != sample.input.dtype and value.numel() > 0


def _list_tensors(sample: SampleInput) -> list[tuple[Place, torch.Tensor]]:
    return [(place, value) for place, value in list_passed(sample) if isinstance(value, torch.Tensor)]


def keep_written_once(
    op: Callable[..., Any], varied: Iterable[tuple[str, SampleInput]]
) -> Iterator[tuple[str, SampleInput]]:
    """The samples but for those in which two elements of a source go to one place, and the last one stays there.

    Which one is last nobody says, and the sanitizer calls it a race: an index that is expanded names one place for all
    of its elements, and some that OpInfos draw name one twice. Turned along the dimension that is named, or along
    some one, elements that each have a place give the same, and sums do.
    """
    return (each for each in varied if not _is_written_twice(op, each[1]))


def _is_written_twice(op: Callable[..., Any], sample: SampleInput) -> bool:
    indices = list_indices(sample)
    least = max((1, *(_read(sample, place).ndim for place in indices)))  # dimensions of a source
    sources = [p for p, value in _list_tensors(sample) if p not in indices and value.ndim >= least]
    want = compute_unless_refused(op, sample) if indices and sources else None
    if not isinstance(want, torch.Tensor) or want.shape != sample.input.shape:
        return False
    rank = max(_read(sample, place).ndim for place in sources)
    named = [value % rank for value in sample.args if type(value) is int and -rank <= value < rank]
    for dim in named or range(rank):
        turned = {place: _flip(_read(sample, place), dim) for place in (*indices, *sources)}
        got = compute_unless_refused(op, replace_arguments(sample, turned))
        if isinstance(got, torch.Tensor) and torch.allclose(got, want, rtol=1e-3, atol=1e-3, equal_nan=True):
            return False
    return True


def _flip(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """Back to front along a dimension of a source, or along the only one of an index."""
    return tensor.flip(dim if dim < tensor.ndim else 0)


def put_outside(sample: SampleInput, place: Place) -> SampleInput:
    """The sample with one index that names nothing, of which a CPU that checks nothing ends the process."""
    return replace_argument(sample, place, _change_first(_read(sample, place).long(), OUTSIDE))


def list_sizes(sample: SampleInput) -> list[int]:
    """The sizes of the input's dimensions that have two ends."""
    return [size for size in dict.fromkeys(sample.input.shape) if size > 1]


def put_beyond(sample: SampleInput, place: Place, size: int) -> list[tuple[str, SampleInput]]:
    """The sample with one index just beyond either end of a dimension of this size, with names for messages.

    That is where a kernel without a guard reaches memory that is not its tensor's. The CPU refuses the sample if that
    is the dimension that is meant.
    """
    return [(f"{place} with {each} of {size}", _put_first(sample, place, each)) for each in (size, -size - 1)]


def put_at_ends(sample: SampleInput, place: Place, size: int) -> list[tuple[str, SampleInput]]:
    """The sample with one number at either end of a dimension of this size, with names for messages.

    An index may be there; a count that goes with a size may not.
    """
    return [(f"{place} with {each} of {size}", _put_first(sample, place, each)) for each in (0, size - 1)]


def vary_indices(sample: SampleInput, place: Place) -> Iterator[tuple[str, SampleInput]]:
    """Yields the sample with one index tensor varied, with a name for messages; the CPU may refuse some of them."""
    index = _read(sample, place)
    for size, counted in ((size, _count_back(index, size)) for size in dict.fromkeys(sample.input.shape)):
        if not counted.equal(index):
            yield f"{place} counted from the end of {size}", replace_argument(sample, place, counted)
    if index.dtype == torch.int64:
        yield f"{place} far outside", replace_argument(sample, place, _change_first(index, FAR))
    if index.ndim:
        yield from _resize(sample, place)


def fill_with_numbers(op: OpInfo, sample: SampleInput, place: Place) -> Iterator[tuple[str, SampleInput]]:
    """Yields the sample with all indices one whole number of its arguments, which may be what is ignored, or padding;
    again with an infinite input, of which zero times what is ignored would be NaN.
    """
    index = _read(sample, place)
    for number in dict.fromkeys(value for _, value in list_arguments(op, sample) if type(value) is int):
        if abs(number) < _SMALL:
            filled = replace_argument(sample, place, torch.full_like(index, number))
            yield f"all of {place} {number}", filled
            if sample.input.is_floating_point() and not sample.input.requires_grad:
                infinite = torch.full_like(sample.input, math.inf)
                yield f"all of {place} {number}, infinite", replace_input(filled, infinite)


def _count_back(index: torch.Tensor, size: int) -> torch.Tensor:
    """Every second index from the end of a dimension of this size."""
    back = torch.arange(index.numel()).reshape(index.shape) % 2 == 0
    return torch.where(back & (index >= 0) & (index < size), index - size, index)


def _change_first(index: torch.Tensor, by: int) -> torch.Tensor:
    changed = index.clone(memory_format=torch.contiguous_format)
    changed.view(-1)[0] += by
    return changed


def _put_first(sample: SampleInput, place: Place, value: int) -> SampleInput:
    changed = _read(sample, place).clone(memory_format=torch.contiguous_format)
    changed.view(-1)[0] = value
    return replace_argument(sample, place, changed)


def _resize(sample: SampleInput, place: Place) -> Iterator[tuple[str, SampleInput]]:
    """No index, and many that are equal; so as to fit, other tensors have as many elements, in one dimension of each.

    Elements that go to one place are all one, so that none has to be the last.
    """
    index = _read(sample, place)
    others = {name: each for name, each in _list_tensors(sample) if name != place and each.ndim}
    for dim in range(max(each.ndim for each in (index, *others.values()))):
        with_others = {name: each for name, each in others.items() if _fits(each, index, dim)}
        axis = min(dim, index.ndim - 1)
        every = {place: index, **with_others}
        none = {name: each.narrow(min(dim, each.ndim - 1), 0, 0) for name, each in every.items()}
        yield f"{place} empty, others in dimension {dim}", replace_arguments(sample, none)
        same = index.flatten()[0].expand(_enlarge(index, axis))
        many = {name: each.new_ones(_enlarge(each, min(dim, each.ndim - 1))) for name, each in with_others.items()}
        yield f"{EQUAL} equal of {place}, others in dimension {dim}", replace_arguments(sample, {place: same, **many})


def _fits(other: torch.Tensor, index: torch.Tensor, dim: int) -> bool:
    """Whether a tensor has as many elements in a dimension as there are indices."""
    return other.shape[min(dim, other.ndim - 1)] == index.shape[min(dim, index.ndim - 1)]


def _enlarge(tensor: torch.Tensor, dim: int) -> list[int]:
    return [EQUAL if i == dim else size for i, size in enumerate(tensor.shape)]


def _read(sample: SampleInput, place: Place) -> torch.Tensor:
    value = read_argument(sample, place)
    assert isinstance(value, torch.Tensor)
    return value.detach()


LONG, ROWS = 2_500, 3  # more elements than two threadgroups have threads
SHORT = 37, 2  # enough to tell an operator that picks; of one element in a dimension, sums pick it too


def list_picked(op: OpInfo, sample: SampleInput) -> Iterator[tuple[str, SampleInput]]:
    """The sample with several long rows in each dimension, with names for messages, and with each of its flags turned
    over, where the CPU picks elements of such rows.

    OpInfo's rows are short, and long ones of equal elements hide most of what is picked wrongly. Nothing is rounded
    where elements are picked, so that any elements do: each result is right or wrong.
    """
    if not _is_alone(sample):
        return
    for dim in range(sample.input.ndim):
        if not picks(op, roughen(shuffle(sample, dim, *SHORT))):
            continue
        long = shuffle(sample, dim)
        for label, turned in (("", long), *((f", {label}", flagged) for label, flagged in turn_flags(op, long))):
            yield f"long rows that differ in dimension {dim}{label}", turned
            if turned.input.is_floating_point():
                yield f"long rows with a NaN in dimension {dim}{label}", put_nan(turned)


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
    unlike: dict[Any, SampleInput] = {}
    for sample in samples:
        rank = sample.input.ndim if isinstance(sample.input, torch.Tensor) else None
        unlike.setdefault((rank, repr((sample.args, sample.kwargs))), sample)
    return list(unlike.values())
