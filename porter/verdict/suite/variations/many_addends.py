"""Sums of many elements, of factors of zero beside NaN and infinity, and of squares of small deviations from a mean.

Of a linear operator one element is the sum of many, in results or in gradients: windows that lie over one element,
indices that are equal, a result that is read from one element, long rows. In 16 bits a sum of hundreds of elements that
are added up one by one loses its last digits, or no longer grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, product
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, keep_computed, list_arguments
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.gradients import run_forward
from porter.verdict.suite.indices import list_indices
from porter.verdict.suite.leaves import (
    change_tensors,
    compute,
    compute_unless_refused,
    has_elements,
    list_operands,
    list_passed,
    list_tensors,
    put_on_meta,
    read_argument,
    replace_argument,
    replace_input,
)
from porter.verdict.suite.opinfos import OpInfos, take_spread
from porter.verdict.suite.refusals import REFUSALS
from porter.verdict.suite.resizing import resize_along
from porter.verdict.suite.samples import copy_sample
from porter.verdict.suite.sums import convert
from porter.verdict.suite.torch_tools import Decomposing
from porter.verdict.suite.variations.choice import choose_samples, list_flags, list_words, varies_in
from porter.verdict.suite.variations.combines import has_other_tensors, is_finite
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


SAMPLES = 3


def list_zero_factors(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with an input of NaN, beside other tensors, and a number of 0 by which the CPU ignores it."""
    for sample in choose_samples(opinfos, op, dtype, SAMPLES):
        if not has_other_tensors(sample):
            continue
        unread = replace_input(sample, torch.full_like(sample.input.detach(), torch.nan))
        numbers = dict.fromkeys(place for place, value in list_arguments(op, sample) if type(value) in (int, float))
        varied = keep_computed(op, [(f"NaN with {at}=0", replace_argument(unread, at, 0)) for at in numbers])
        yield from ((label, ignored) for label, ignored in varied if is_finite(op, ignored))


ZERO_FACTORS = Variation("zero_factors", list_zero_factors)

_WEIGHTED = 4  # samples that differ in words, flags and ranks
_FACTORS = 3  # tensors of a sample that are infinite in turn


def list_infinite_inputs(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples in which each third element of one tensor is infinite, and each second one of the other tensors is zero.

    Zero times infinity is NaN: a kernel that leaves such an addend out as nothing has a number for the CPU's NaN. Left
    out are samples of which double precision has NaN or infinity elsewhere: a transform spreads them over all results.
    """
    if not varies_in(opinfos, op, dtype) or not dtype.is_floating_point:
        return
    unlike: dict[str, SampleInput] = {}
    for sample in opinfos.reaching_samples(op, dtype):
        if has_elements(sample.input) and len(_list_factors(sample)) > 1:
            unlike.setdefault(f"{sample.input.ndim} {list_words(sample)} {list_flags(sample)}", sample)
    for sample in islice(unlike.values(), _WEIGHTED):
        yield from _list_infinite(op, sample, dtype, "")
        # A product of a matrix and a vector has a kernel of its own.
        for _, row in resize_along(op, sample, 0, (1,), max(sample.input.shape)) if len(sample.input) > 1 else ():
            yield from _list_infinite(op, row, dtype, ", with one row")


def _list_infinite(op: OpInfo, sample: SampleInput, dtype: torch.dtype, label: str) -> Iterator[Varied]:
    for at, factor in enumerate(_list_factors(sample)[:_FACTORS]):
        zeroed = change_tensors(sample, partial(_zero_half, sample=sample, factor=factor))
        infinite = _replace_tensor(zeroed, factor, _fill_third(factor, torch.inf))
        if is_affine(op, zeroed, factor) and has_nan_of_its_own(op, infinite, dtype):
            yield f"infinite elements of operand {at} times zeros{label}", infinite


def _list_factors(sample: SampleInput) -> list[torch.Tensor]:
    return [tensor for tensor in list_operands(sample) if tensor.is_floating_point() and tensor.numel()]


def _zero_half(tensor: torch.Tensor, sample: SampleInput, factor: torch.Tensor) -> torch.Tensor:
    if tensor is factor or not any(tensor is other for other in _list_factors(sample)):
        return tensor
    zeroed = tensor.detach().clone(memory_format=torch.contiguous_format)
    zeroed.view(-1)[::2] = 0
    return zeroed


def _fill_third(tensor: torch.Tensor, number: float) -> torch.Tensor:
    filled = tensor.detach().clone(memory_format=torch.contiguous_format)
    filled.view(-1)[::3] = number
    return filled


def _replace_tensor(sample: SampleInput, replaced: torch.Tensor, other: torch.Tensor) -> SampleInput:
    return change_tensors(sample, lambda tensor: other if tensor is replaced else tensor)


def is_affine(op: OpInfo, sample: SampleInput, factor: torch.Tensor) -> bool:
    """Whether results are sums of this tensor's elements, each times a number, beside what does not depend on these."""
    one, other = (_draw(seed)(factor.detach().double()) for seed in (0, 1))
    sources = (torch.zeros_like(one), one, other, one + other)
    computed = [_compute_floats(op, _replace_tensor(sample, factor, source), torch.float64) for source in sources]
    if not computed[0] or len({str([result.shape for result in results]) for results in computed}) > 1:
        return False
    every = list(zip(*computed, strict=True))
    depends = any(not torch.allclose(zero, first) for zero, first, _, _ in every)
    return depends and all(torch.allclose(first + second - zero, both) for zero, first, second, both in every)


def has_nan_of_its_own(op: OpInfo, sample: SampleInput, dtype: torch.dtype) -> bool:
    """Whether a result has NaN, and double precision and torch's decomposition have NaN and infinities where it has."""
    results, exact = (_compute_floats(op, sample, each) for each in (dtype, torch.float64))
    with Decomposing():
        decomposed = _compute_floats(op, sample, dtype)
    alike = all(
        torch.equal(one.isnan(), other.isnan()) and torch.equal(one.isinf(), other.isinf())
        for others in (exact, decomposed)
        for one, other in zip(results, others, strict=True)
    )
    return alike and any(bool(result.isnan().any()) for result in results)


INFINITE_INPUTS = Variation("infinite_inputs", list_infinite_inputs)


SAMPLES_OF_SPREADS = 4
# The first has a variance below 1e-6. Sums of the second are exact in any order, and beside the square of its mean a
# float has nothing of its variance.
SPREADS = ((0.0, 9.9e-4), (1.0, 2.0**-12))
_SMALLEST = 1e-12  # what vision transformers add to a variance
_EXACT = 1e-6
_SHIFT = 0.5


def list_small_spreads(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples of an operator that takes the mean away, with small deviations from it; again with each fraction tiny.

    Rows whose elements are close to their mean: the variance is far below one, and so is what is added to it. A kernel
    that takes the mean of squares less the square of the mean loses such a variance, and one that takes a small one for
    zero makes 990 of 1 (pytorch#190491).
    """
    varied: list[Varied] = []
    for sample in choose_samples(opinfos, op, dtype, SAMPLES_OF_SPREADS):
        if not ignores_shift(op, sample):
            continue
        numbers = list_arguments(op, sample)
        fractions = dict.fromkeys(place for place, value in numbers if type(value) is float and 0 < value < 1)
        for center, spread in SPREADS:
            label = f"elements of {center:g} +- {spread:g}"
            small = replace_argument(sample, "input", _fill_spread(sample.input, center, spread))
            calls = [(f"{label} with {p}={_SMALLEST}", replace_argument(small, p, _SMALLEST)) for p in fractions]
            varied += [(told, call) for told, call in ((label, small), *calls) if is_exact(op, call)]
    yield from keep_computed(stay_inside(op), varied)


def ignores_shift(op: OpInfo, sample: SampleInput) -> bool:
    """Whether a result follows the input, and is the same for an input that is larger by a number all over."""
    source = sample.input.detach().double()
    plain, shifted, squared = (_compute_spread(op, sample, x) for x in (source, source + _SHIFT, source * source))
    triples = zip(plain, shifted, squared, strict=False)
    return any(
        torch.allclose(a, b) and not torch.allclose(a, c) for a, b, c in triples if a.shape == b.shape == c.shape
    )


def is_exact(op: OpInfo, sample: SampleInput) -> bool:
    """Whether the CPU's results are those of double precision: the mean itself does not round."""
    results, expected = (
        _compute_spread(op, sample, sample.input.detach().to(dtype)) for dtype in (torch.float32, torch.float64)
    )
    return len(results) > 0 and all(
        torch.allclose(one.double(), other, rtol=_EXACT, atol=_EXACT)
        for one, other in zip(results, expected, strict=True)
    )


def _compute_spread(op: OpInfo, sample: SampleInput, source: torch.Tensor) -> list[torch.Tensor]:
    """The floating results on the CPU for another input, in its precision; none where the call is refused."""
    return _compute_floats(op, replace_input(sample, source), source.dtype)


def _compute_floats(op: OpInfo, sample: SampleInput, dtype: torch.dtype) -> list[torch.Tensor]:
    """The floating results on the CPU in a precision; none where the call is refused."""
    results = compute_unless_refused(op, copy_sample(convert(sample, dtype)))
    return [value for value in list_tensors(results) if value.is_floating_point()]


def _fill_spread(like: torch.Tensor, center: float, spread: float) -> torch.Tensor:
    """Elements above and below a number by turns along each dimension."""
    turns = sum(torch.arange(size).view(-1, *[1] * (like.ndim - 1 - dim)) for dim, size in enumerate(like.shape))
    signs = 1 - 2 * (torch.as_tensor(turns) % 2)
    return (center + spread * signs).to(like.dtype).requires_grad_(like.requires_grad)


SMALL_SPREADS = Variation("small_spreads", list_small_spreads)
