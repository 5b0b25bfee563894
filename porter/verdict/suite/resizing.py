"""Samples with dimensions of other sizes, and with them what has to go with those sizes.

What goes with a size, no schema tells: a weight may have as many elements as the input has columns, or as many as it
has rows, and a list may repeat the last sizes of the input. Each way to change these together is tried at small sizes,
and one that the CPU computes there, without reaching beyond its operands, is taken at large ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite import results, samples
from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.leaves import compute, list_operands, list_tensors, replace_input
from porter.verdict.suite.products import keep_products, make_factors, multiplies
from porter.verdict.suite.refusals import REFUSALS

MOST_ELEMENTS = 220_000  # of an input: three rows past 16 bits
MOST_RESULTS = 1 << 21
_IMAGE = 2  # dimensions of rows and columns, behind those of batches and channels
_TRIAL = 3  # times the size that a dimension had, to see which way the CPU computes
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_INDICES = (torch.int64, torch.int32)
_GOLDEN = (math.sqrt(5) - 1) / 2
_VALUES = 64  # of a floating tensor, at least: sums of thousands of them stay exact in 32 bits


class Tie(Enum):
    """Which dimensions of tensors beside the input have the sizes of its dimensions."""

    FIRST = "counted from the first"
    LAST = "counted from the last"
    EQUAL = "all of an equal size"
    NONE = "none, but in tensors of its shape"


@dataclass(frozen=True)
class Way:
    """How a sample is resized: what goes with the sizes of the input, and whether indices reach as far as these do.

    Where they do not, many are equal, and elements that may be written to one place are all one.
    """

    tie: Tie
    changes_lists: bool
    spreads_indices: bool

    def resize(self, sample: SampleInput, sizes: Mapping[int, int]) -> SampleInput:
        """The sample whose input has these sizes, by dimension. Elements differ, within the range that they had."""
        old, new = sample.input.shape, list(sample.input.shape)
        for dim, size in sizes.items():
            new[dim] = size
        longest = max(sizes, key=lambda dim: sizes[dim])
        repeats = not self.spreads_indices and any(map(_is_index_of(sample.input), list_operands(sample)))

        def change(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                changed = self._change_tensor(value, sample.input, new, longest)
                is_written = repeats and value is not sample.input and not _is_index_of(sample.input)(value)
                return torch.ones_like(changed) if is_written and changed is not value else changed
            if self.changes_lists and _repeats_sizes(value, old):
                return type(value)(new[len(new) - len(value) :])
            return value

        changed = pytree.tree_map(
            change,
            (sample.input, tuple(sample.args), dict(sample.kwargs)),
            is_leaf=lambda value: _repeats_sizes(value, old),
        )
        return SampleInput(changed[0], args=changed[1], kwargs=changed[2])

    def count_elements(self, sample: SampleInput, sizes: Mapping[int, int]) -> int:
        """The elements of the largest tensor of the sample resized: a square matrix is long in both dimensions."""
        old = sample.input.shape
        new = [sizes.get(dim, size) for dim, size in enumerate(old)]
        return max(math.prod(_find_shape(tensor.shape, old, new, self.tie)) for tensor in list_operands(sample))

    def _change_tensor(
        self, tensor: torch.Tensor, source: torch.Tensor, new: Sequence[int], longest: int
    ) -> torch.Tensor:
        shape = _find_shape(tensor.shape, source.shape, new, self.tie)
        is_index = self.spreads_indices and _is_index_of(source)(tensor) and tensor.numel() > 0
        if is_index and int(tensor.min()) >= 0 and int(tensor.max()) < source.shape[longest]:
            return _count_through(shape, new[longest], tensor.dtype)
        if shape == tensor.shape:
            return tensor
        return spread_values(tensor.detach(), shape).requires_grad_(tensor.requires_grad)


def find_way(op: Callable[..., Any], sample: SampleInput, dims: Sequence[int], largest: bool = False) -> Way | None:
    """The first way to resize these dimensions of a sample's input that the CPU computes; None if there is none.

    The `largest` is the one in which tensors have the most elements: indices may be as long as what they index.
    """
    if not isinstance(sample.input, torch.Tensor) or not sample.input.numel() or not sample.input.ndim:
        return None
    small = {dim: (_TRIAL + 2 * at) * sample.input.shape[dim] for at, dim in enumerate(dims)}  # unlike each other
    tried: list[tuple[Way, SampleInput]] = []
    for way in _list_ways(sample):
        resized = way.resize(sample, small)
        if not any(_describe(resized) == _describe(other) for _, other in tried):
            tried.append((way, resized))
    if largest:
        tried.sort(key=lambda one: -sum(tensor.numel() for tensor in list_operands(one[1])))
    varied: list[Varied] = [(str(at), resized) for at, (_, resized) in enumerate(tried)]
    computed = next(keep_computed(stay_inside(op), varied), None)
    return None if computed is None else tried[int(computed[0])][0]


def lengthen_dimensions(
    op: Callable[..., Any],
    sample: SampleInput,
    longs: Mapping[int, int],
    most: int = MOST_ELEMENTS,
    kept: Collection[int] = (),
    largest: bool = False,
) -> SampleInput | None:
    """The sample with dimensions of its input, by number, as long as that at least, and others so short that it fits,
    but for those that are `kept`, in the first way or the `largest`.

    A size stays a multiple of what it was, since groups may divide it; the input has `most` elements. None where the
    CPU takes no such sizes, or the results would have millions of elements.
    """
    if not isinstance(sample.input, torch.Tensor) or not sample.input.numel():
        return None
    shape = sample.input.shape
    sizes = {dim: _round_up(long, shape[dim]) for dim, long in longs.items()}
    for others in _list_shorter(shape, sizes, kept):
        count = math.prod(others.get(dim, size) for dim, size in enumerate(shape))
        if count > most:
            continue
        cut = {dim: size for dim, size in others.items() if dim not in sizes}
        shortened = sample if not cut else _shorten(op, sample, cut)
        way = None if shortened is None else find_way(op, shortened, list(sizes), largest)
        if shortened is not None and way is not None:
            if not _is_small(way.count_elements(shortened, sizes), max(MOST_RESULTS, 3 * most)):
                return None
            few = way.resize(shortened, dict.fromkeys(sizes, _TRIAL))
            resized = keep_products(op, few, way.resize(shortened, sizes))
            # Before the CPU computes 19 GB of an outer product; a normalization has as many statistics as rows.
            if samples.count_results(op, resized) > max(MOST_RESULTS, 3 * most):
                return None
            # Positions that fit at small sizes may not at large ones, and some CPU kernels write where they point.
            inside = next(keep_computed(stay_inside(op), [("", resized)]), None)
            return resized if inside else None
    return None


def resize_along(
    op: Callable[..., Any],
    sample: SampleInput,
    dim: int,
    sizes: Iterable[int],
    others: int,
    is_wanted: Callable[[int, SampleInput], bool] = lambda *_: True,
) -> Iterator[tuple[int, SampleInput]]:
    """The sample with each of some sizes along a dimension of its input, as far as the CPU computes it so.

    Other dimensions have so many elements at most, where it computes that. The CPU is asked for those that are wanted.
    The input's elements are all different, or such that no product of them vanishes.
    """
    shape = sample.input.shape
    cut = {at: min(size, others) for at, size in enumerate(shape) if at != dim and size > others}
    shortened = (_shorten(op, sample, cut) if cut else None) or sample
    way = find_way(op, shortened, [dim])
    if way is None:
        return
    # A matrix that is square is long in both dimensions.
    small = (size for size in sizes if _is_small(way.count_elements(shortened, {dim: size}), MOST_RESULTS))
    resized = ((size, way.resize(shortened, {dim: size})) for size in small)
    wanted = ((size, call) for size, call in resized if is_wanted(size, call))
    is_product = shortened.input.is_floating_point() and multiplies(op, way.resize(shortened, {dim: _TRIAL}))
    change = make_factors if is_product else shuffle_values
    varied = [(str(size), replace_input(call, change(call.input))) for size, call in wanted]
    yield from ((int(label), each) for label, each in keep_computed(stay_inside(op), varied))


def _is_small(count: int, most: int) -> bool:
    """Whether a sample with a tensor of so many elements is run; that another is left out is remarked."""
    if count > most:
        results.leave_out(f"a tensor would have more than {most:,} elements")
    return count <= most


def shuffle_values(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor of the shape and range of another, of floating elements that all differ; of other types, as it is.

    They are multiples of a power of two: of sums around zero that 32 bits round, no order is nearer than another.
    """
    values = tensor.detach()
    if not tensor.is_floating_point() or tensor.numel() < 2:
        return tensor
    low, high = float(values.min()), float(values.max())
    count = tensor.numel()
    if high == low:
        return tensor
    step = 2.0 ** math.floor(math.log2((high - low) / count))
    order = _count_through((count,), count, torch.int64).add_(math.ceil(low / step)).to(torch.float64)
    return order.mul_(step).clamp_(low, high).to(tensor.dtype).reshape(tensor.shape)


def count_reduced(op: OpInfo, sample: SampleInput, dim: int) -> int | None:
    """How many elements a result has, the smallest one, for all of a sample's input along a dimension, however long.

    None where every result has more elements if the dimension is longer, or more than there are rows along it, and of
    what the CPU refuses: `turn_to_last` asks for shapes alone, and indices may be past the end of another dimension.
    """
    way = find_way(op, sample, [dim])
    if way is None:
        return None
    long = way.resize(sample, {dim: _TRIAL * sample.input.shape[dim]})
    try:
        before, after = (_count_elements(compute(op, each)) for each in (sample, long))
    except REFUSALS:
        return None
    rows = sample.input.numel() // sample.input.shape[dim]
    return min((count for count, other in zip(before, after, strict=False) if count == other <= rows), default=None)


def _count_elements(results: Any) -> list[int]:
    return [each.numel() for each in list_tensors(results)]


def _shorten(op: Callable[..., Any], sample: SampleInput, sizes: Mapping[int, int]) -> SampleInput | None:
    """The sample with other sizes that the CPU computes as they are; None if it does not."""
    tried = [(way.tie.value, way.resize(sample, sizes)) for way in _list_ways(sample) if not way.spreads_indices]
    found = next(keep_computed(stay_inside(op), tried), None)
    return found and found[1]


def shorten_rows(op: OpInfo, sample: SampleInput) -> SampleInput | None:
    """The sample with one element along each dimension of its input before the last two; None where that fails."""
    if not isinstance(sample.input, torch.Tensor) or sample.input.ndim < _IMAGE + 1 or not sample.input.numel():
        return None
    return _shorten(op, sample, dict.fromkeys(range(sample.input.ndim - _IMAGE), 1))


def _list_shorter(shape: Sequence[int], sizes: Mapping[int, int], kept: Collection[int]) -> Iterator[dict[int, int]]:
    """Sizes of the dimensions that are not long: a few elements of each, as they are behind the second, or one.

    Of an image of one column, windows that are padded may have no element at all. Targets name a class each, in the
    second dimension, so that it may stay as it is beside one row. Of three dimensions with long rows there are several
    of these: where each one begins is a number past 16 bits too.
    """
    rest = [dim for dim in range(len(shape)) if dim not in sizes and dim not in kept]
    seen: list[dict[int, int]] = []
    few = [(3, 3, 3), (2, 2, 2), (math.inf, math.inf, math.inf), *([(3, 1, 1)] if rest == [0, 1] else [])]
    for first, second, most in (*few, (1, 1, math.inf), (1, 1, 3), (1, 1, 2), (1, 1, 1), (math.inf, math.inf, 1)):
        shortest = {dim: int(min(shape[dim], (first, second, most)[min(dim, 2)])) for dim in rest}
        changed = {dim: size for dim, size in shortest.items() if size != shape[dim]} | dict(sizes)
        if changed not in seen:
            seen.append(changed)
            yield changed


def _round_up(size: int, multiple: int) -> int:
    """An odd multiple that is no smaller, where the number is odd: powers of two are of another class of faults."""
    times = math.ceil(size / multiple)
    return multiple * (times + (times + 1) % 2)


def _list_ways(sample: SampleInput) -> Iterator[Way]:
    """All ways: where a list repeats sizes it goes with them, and where indices may reach as far, they do, at first."""
    for lists, indices, tie in product((True, False), (True, False), Tie):
        yield Way(tie, lists, indices)


def _find_shape(shape: torch.Size, old: torch.Size, new: Sequence[int], tie: Tie) -> torch.Size:
    """The shape of a tensor where the input's has changed."""
    if shape == old:
        return torch.Size(new)
    if tie is Tie.NONE or not shape:
        return shape
    if tie is Tie.EQUAL:
        changed = {before: after for before, after in zip(old, new, strict=True) if before != after}
        return torch.Size(changed.get(size, size) for size in shape)
    offset = 0 if tie is Tie.FIRST else len(old) - len(shape)
    places = ((at + offset, size) for at, size in enumerate(shape))
    return torch.Size(new[at] if 0 <= at < len(old) and old[at] == size else size for at, size in places)


def _repeats_sizes(value: Any, shape: torch.Size) -> bool:
    """Whether a value is a list of the last sizes of a shape."""
    is_list = isinstance(value, (list, tuple)) and 0 < len(value) <= len(shape)
    return is_list and all(type(size) is int for size in value) and tuple(value) == tuple(shape[-len(value) :])


def spread_values(tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """A tensor of a shape whose elements differ from those before them, in the range of what another tensor has.

    Floating ones are multiples of a power of two, of which a sum of thousands stays exact.
    """
    count = math.prod(shape)
    if not tensor.numel() or not count:
        return tensor.new_zeros(tuple(shape))
    if tensor.is_complex():
        parts = torch.view_as_real(tensor.resolve_conj())
        real, imaginary = (spread_values(part, shape) for part in parts.unbind(-1))
        return torch.complex(real, imaginary.flip(tuple(range(imaginary.ndim))))
    if tensor.dtype is not torch.bool and tensor.dtype not in _INTEGERS and not tensor.is_floating_point():
        return tensor.flatten()[torch.arange(count) % tensor.numel()].reshape(tuple(shape))
    turns = torch.arange(1, count + 1, dtype=torch.float64).mul_(_GOLDEN).frac_()
    if tensor.dtype is torch.bool:
        return (turns < 0.5).reshape(tuple(shape))
    finite = tensor[tensor.isfinite()].double()
    low, high = (float(finite.min()), float(finite.max())) if finite.numel() else (0.0, 0.0)
    if tensor.dtype in _INTEGERS:
        return turns.mul_(high - low + 1).floor_().add_(low).to(tensor.dtype).reshape(tuple(shape))
    if high == low:
        return torch.full(tuple(shape), low, dtype=tensor.dtype)
    step = 2.0 ** math.floor(math.log2((high - low) / _VALUES))
    first, steps = math.ceil(low / step), math.floor(high / step)
    return turns.mul_(steps - first + 1).floor_().add_(first).mul_(step).to(tensor.dtype).reshape(tuple(shape))


def _count_through(shape: Sequence[int], size: int, dtype: torch.dtype) -> torch.Tensor:
    """Indices into a size, the last one first; along any dimension all differ until there are as many as the size."""
    step = next(number for number in range(int(size * _GOLDEN), 2 * size + 2) if math.gcd(number, size) == 1)
    at = sum((torch.arange(length).view(-1, *[1] * (len(shape) - 1 - dim)) for dim, length in enumerate(shape)),
             torch.zeros((), dtype=torch.int64))  # fmt: skip
    return ((size - 1 + at * step) % size).to(dtype)


def _is_index_of(source: torch.Tensor) -> Callable[[Any], bool]:
    """Whether a value is a tensor of integers beside an input of another type."""
    return lambda value: (
        isinstance(value, torch.Tensor) and value is not source and value.dtype in _INDICES
        and value.dtype != source.dtype
    )  # fmt: skip


def _describe(sample: SampleInput) -> list[Any]:
    """What two ways of resizing may differ in: shapes, indices and lists."""
    return [
        (each.shape, each.tolist() if each.dtype in _INDICES else None) if isinstance(each, torch.Tensor) else each
        for each in pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    ]
