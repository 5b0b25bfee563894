"""Linear operators, of which one element is the sum of many: in results, or in gradients.

Windows that lie over one element, indices that are equal, a result that is read from one element, long rows. In 16 bits
a sum of hundreds of elements that are added up one by one loses its last digits, or no longer grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied
from porter.verdict.suite.gradients import run_forward
from porter.verdict.suite.indices import list_indices
from porter.verdict.suite.leaves import (
    change_tensors,
    compute,
    has_elements,
    list_passed,
    put_on_meta,
    read_argument,
    replace_argument,
    replace_input,
)
from porter.verdict.suite.opinfos import OpInfos, take_spread
from porter.verdict.suite.refusals import REFUSALS
from porter.verdict.suite.sums import convert
from porter.verdict.suite.variations.more_indices import Way
from porter.verdict.suite.variations.variation import Expectation, Variation

MANY = 512  # addends: half of what eight bits of digits can count, by ones, to
_EQUAL = 1024
_WINDOWS = ((1, 1024), (2, 24), (3, 9))  # dimensions that windows move over, and their size: many of them overlap
_KEPT = 2  # the size of other dimensions at most
_RESULT = 32  # the size of results that are read from one element
_MOST = 1 << 14  # elements of a result
_SAMPLES = 3  # that others are made of
_TRIES = 8  # samples of a kind that are computed

_Kind = Callable[[SampleInput], Iterator[SampleInput]]


def list_many(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """At most one sample of each kind that the CPU differentiates, and that adds up `MANY` elements to one."""
    if dtype not in opinfos.grad_dtypes and not opinfos.plans(dtype):
        return
    given = [sample for sample in opinfos.reaching_samples(op, dtype, requires_grad=True) if has_elements(sample.input)]
    linear = list(islice((sample for sample in take_spread(given) if is_linear(op, sample)), _SAMPLES))
    for label, vary in _KINDS.items():
        varied = (each for sample in linear for each in vary(sample))
        small = islice((each for each in varied if _is_small(op, each)), _TRIES)
        many = next((each for each in small if adds_many(op, each) and is_linear(op, each)), None)
        if many is not None:
            yield label, many


def _is_small(op: OpInfo, sample: SampleInput) -> bool:
    """Whether results have few elements, as ATen tells of meta tensors; not where it does not tell, or refuses."""
    try:
        results = pytree.tree_leaves(compute(op, put_on_meta(sample)))
    except Exception:  # of any kind: the operator, or what it calls, has no meta function
        return False
    return sum(each.numel() for each in results if isinstance(each, torch.Tensor)) <= _MOST


def is_linear(op: OpInfo, sample: SampleInput) -> bool:
    """Whether results are sums of elements, each times a number: of all floating operands together."""
    try:
        zero, one, other = (_compute(op, sample, fill) for fill in (torch.zeros_like, _draw(0), _draw(1)))
        first, second = _draw(0), _draw(1)
        both = _compute(op, sample, lambda value: first(value) + second(value))
    except REFUSALS:
        return False
    pairs = zip(zero, one, other, both, strict=True)
    return bool(one) and all(not z.any() and torch.allclose(a + b, c, equal_nan=False) for z, a, b, c in pairs)


def adds_many(op: OpInfo, sample: SampleInput) -> bool:
    """Whether some element of a result, or of a gradient, is the sum of many."""
    try:
        outputs, inputs = run_forward(op, _fill(sample, torch.ones_like))
    except REFUSALS:
        return False
    hot = [_mark_largest(output) for output in outputs]
    rows = torch.autograd.grad(outputs, inputs, hot, allow_unused=True, retain_graph=True)
    if any(_count(row) >= MANY for row in rows):
        return True
    slopes = torch.autograd.grad(outputs, inputs, list(map(torch.ones_like, outputs)), allow_unused=True)
    marks = iter([torch.zeros_like(x) if g is None else _mark_largest(g) for x, g in zip(inputs, slopes, strict=True)])
    marked = _fill(sample, lambda value: next(marks) if value.requires_grad else torch.zeros_like(value))
    return any(_count(output) >= MANY for output in run_forward(op, marked)[0])


def _compute(op: OpInfo, sample: SampleInput, fill: Callable[[torch.Tensor], torch.Tensor]) -> list[torch.Tensor]:
    return [output.detach() for output in run_forward(op, _fill(sample, fill))[0]]


def _fill(sample: SampleInput, fill: Callable[[torch.Tensor], torch.Tensor]) -> SampleInput:
    """The sample in float64 with other elements in its floating operands."""

    def change(value: torch.Tensor) -> torch.Tensor:
        return fill(value).detach().requires_grad_(value.requires_grad) if value.is_floating_point() else value

    return change_tensors(convert(sample, torch.float64), change)


def _draw(seed: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """Random elements, other ones for each operand."""
    generator = torch.Generator().manual_seed(seed)
    return lambda value: torch.rand(value.shape, generator=generator, dtype=value.dtype)


def _mark_largest(tensor: torch.Tensor) -> torch.Tensor:
    """One at the largest element, zeros elsewhere."""
    marked = torch.zeros_like(tensor, memory_format=torch.contiguous_format)
    if tensor.numel():
        marked.view(-1)[int(tensor.abs().argmax())] = 1
    return marked


def _count(tensor: torch.Tensor | None) -> int:
    return 0 if tensor is None else int((tensor != 0).sum())


def _lay_windows(sample: SampleInput) -> Iterator[SampleInput]:
    """Windows as large as half of what they move over, by one argument of whole numbers."""
    for dims, size in _WINDOWS:
        if sample.input.ndim >= dims:
            enlarged = _resize_last(sample, [2 * size - 1] * dims)
            yield from _replace_each(enlarged, size, dims)


def _enlarge_results(sample: SampleInput) -> Iterator[SampleInput]:
    """Sizes of a result by one argument of whole numbers, of few elements."""
    for dims in (1, 2):
        if sample.input.ndim > dims:
            yield from _replace_each(_resize_last(sample, [1] * dims), _RESULT ** (3 - dims), dims)


def _equal_indices(sample: SampleInput) -> Iterator[SampleInput]:
    """Many equal indices, with as many of what goes with them: rows of a vector of indices, or elements."""
    for place in list_indices(sample):
        index = read_argument(sample, place)
        for dim, nearest in product(range(index.ndim), (0, -1)):
            args, kwargs = pytree.tree_map(_Repeat(index, dim, nearest), (sample.args, sample.kwargs))
            yield SampleInput(sample.input, args=args, kwargs=kwargs)


class _Repeat(Way):
    """Makes an index tensor one of many equal indices in a dimension, and what goes with them as long."""

    def __call__(self, value: Any) -> Any:
        if value is self.index:
            shape = [_EQUAL if dim == self.dim else size for dim, size in enumerate(value.shape)]
            return value.flatten()[0].expand(shape).clone()
        axis = self.find_axis(value) if isinstance(value, torch.Tensor) else None
        return value if axis is None else _resize(value, axis, _EQUAL)


def _lengthen_rows(sample: SampleInput) -> Iterator[SampleInput]:
    """One dimension of the input that is long."""
    for dim in range(sample.input.ndim):
        shape = [_EQUAL if i == dim else min(size, _KEPT) for i, size in enumerate(sample.input.shape)]
        yield _replace_input(sample, shape)


_KINDS: dict[str, _Kind] = {
    "windows that overlap": _lay_windows,
    "a large result of few elements": _enlarge_results,
    "equal indices": _equal_indices,
    "long rows": _lengthen_rows,
}


def _replace_each(sample: SampleInput, size: int, dims: int) -> Iterator[SampleInput]:
    """The sample with one of its arguments of whole numbers replaced by another, or by a list of that."""
    for place, value in list_passed(sample):
        if isinstance(value, bool) or not _is_whole(value):
            continue
        other: Any = size if isinstance(value, int) else type(value)([size] * min(dims, len(value)))
        yield replace_argument(sample, place, other)


def _is_whole(value: Any) -> bool:
    several = value if isinstance(value, (list, tuple)) else [value]
    return bool(several) and all(isinstance(each, int) and not isinstance(each, bool) for each in several)


def _resize_last(sample: SampleInput, sizes: Sequence[int]) -> SampleInput:
    """The sample with the last dimensions of its input of some sizes, and few elements in the others."""
    kept = [min(size, _KEPT) for size in sample.input.shape[: -len(sizes)]]
    return _replace_input(sample, [*kept, *sizes])


def _replace_input(sample: SampleInput, shape: Sequence[int]) -> SampleInput:
    return replace_input(sample, _make(sample.input, shape))


def _resize(value: torch.Tensor, dim: int, size: int) -> torch.Tensor:
    return _make(value, [size if i == dim else each for i, each in enumerate(value.shape)])


def _make(like: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Elements between 0 and 1, which make sums that have no end in sight; of whole numbers ones."""
    if not like.is_floating_point():
        return like.new_ones(math.prod(shape)).view(*shape)
    return torch.rand(tuple(shape), dtype=torch.float32).to(like.dtype).requires_grad_(like.requires_grad)


MANY_ADDENDS = Variation(
    "many_addends", list_many, expectation=Expectation.SUMS, dtypes=(torch.float16, torch.bfloat16)
)
