"""Elements that are not finite, and equal extremes, in rows that are not dense, or that vectors are read of.

A kernel has one loop for neighboring elements, which it reads as vectors, and another for those of several strides:
what one knows of NaN, or of which of two equal elements is the first, the other may not.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, keep_computed, list_arguments
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.layouts import take_every_second, transpose
from porter.verdict.suite.leaves import compute_unless_refused, list_tensors, replace_argument, replace_input
from porter.verdict.suite.long_rows import ignores_order, makes_nan, put_ends
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.resizing import resize_along
from porter.verdict.suite.sums import convert
from porter.verdict.suite.variations.choice import FEW, VECTOR, choose_samples
from porter.verdict.suite.variations.combines import has_other_tensors, is_finite
from porter.verdict.suite.variations.variation import Variation

SAMPLES = 4
_ENDS = ("nan last", "inf last")


def list_strided_ends(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples of two dimensions or more with such elements, transposed and of every second element; dense ones of rows
    that vectors are read of.
    """
    for sample in choose_samples(opinfos, op, dtype, SAMPLES):
        if sample.input.ndim > 1 and sample.input.layout is torch.strided:
            for size, dense in resize_along(op, sample, sample.input.ndim - 1, (VECTOR,), FEW):
                ends = ((f"{label}, rows of {size}", varied) for label, varied in put_ends(dense) if label in _ENDS)
                yield from ((label, varied) for label, varied in ends if _follows_elements(op, varied))
            labeled = [("equal extremes", replace_input(sample, tie_extremes(sample.input.detach())))]
            ends = (varied for varied in put_ends(sample) if varied[0] in _ENDS)
            labeled += [varied for varied in ends if _follows_elements(op, varied[1])]
            yield from keep_computed(op, [turned for label, varied in labeled for turned in _turn(label, varied)])


def _follows_elements(op: OpInfo, sample: SampleInput) -> bool:
    return ignores_order(op, sample) and not makes_nan(op, sample)


def tie_extremes(tensor: torch.Tensor) -> torch.Tensor:
    """The largest element in the second place of the first row and in the first of the second row, which comes before
    the other in memory where the tensor is transposed; the least one in the third place and the third row.
    """
    tied, row = tensor.clone(memory_format=torch.contiguous_format), tensor.shape[-1]
    for at, extreme in enumerate((tensor.max(), tensor.min()), 1):
        if at * row < tensor.numel():
            tied.view(-1)[[at, at * row]] = extreme
    return tied


def _turn(label: str, sample: SampleInput) -> list[Varied]:
    changes = {"transposed": transpose, "every second element": take_every_second}
    return [(f"{label}, {told}", replace_input(sample, change(sample.input))) for told, change in changes.items()]


STRIDED_ENDS = Variation("strided_ends", list_strided_ends)


# Rows whose elements are close to their mean: the variance is far below one, and so is what is added to it.
#
# A kernel that takes the mean of squares less the square of the mean loses such a variance, and one that takes a small
# one for zero makes 990 of 1 (pytorch#190491).


# The first has a variance below 1e-6. Sums of the second are exact in any order, and beside the square of its mean a
# float has nothing of its variance.
SPREADS = ((0.0, 9.9e-4), (1.0, 2.0**-12))
_SMALLEST = 1e-12  # what vision transformers add to a variance
_EXACT = 1e-6
_SHIFT = 0.5


def list_small_spreads(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples of an operator that takes the mean away, with small deviations from it; again with each fraction tiny."""
    varied: list[Varied] = []
    for sample in choose_samples(opinfos, op, dtype, SAMPLES):
        if not ignores_shift(op, sample):
            continue
        numbers = list_arguments(op, sample)
        fractions = dict.fromkeys(place for place, value in numbers if type(value) is float and 0 < value < 1)
        for center, spread in SPREADS:
            label = f"elements of {center:g} +- {spread:g}"
            small = replace_argument(sample, "input", _fill(sample.input, center, spread))
            calls = [(f"{label} with {p}={_SMALLEST}", replace_argument(small, p, _SMALLEST)) for p in fractions]
            varied += [(told, call) for told, call in ((label, small), *calls) if is_exact(op, call)]
    yield from keep_computed(stay_inside(op), varied)


def ignores_shift(op: OpInfo, sample: SampleInput) -> bool:
    """Whether a result follows the input, and is the same for an input that is larger by a number all over."""
    source = sample.input.detach().double()
    plain, shifted, squared = (_compute(op, sample, x) for x in (source, source + _SHIFT, source * source))
    triples = zip(plain, shifted, squared, strict=False)
    return any(
        torch.allclose(a, b) and not torch.allclose(a, c) for a, b, c in triples if a.shape == b.shape == c.shape
    )


def is_exact(op: OpInfo, sample: SampleInput) -> bool:
    """Whether the CPU's results are those of double precision: the mean itself does not round."""
    results, expected = (
        _compute(op, sample, sample.input.detach().to(dtype)) for dtype in (torch.float32, torch.float64)
    )
    return len(results) > 0 and all(
        torch.allclose(one.double(), other, rtol=_EXACT, atol=_EXACT)
        for one, other in zip(results, expected, strict=True)
    )


def _compute(op: OpInfo, sample: SampleInput, source: torch.Tensor) -> list[torch.Tensor]:
    """The floating results on the CPU for another input, in its precision; none where the call is refused."""
    call = convert(replace_argument(sample, "input", source), source.dtype)
    tensors, spec = pytree.tree_flatten((call.input, call.args, call.kwargs))
    copies = [value.detach().clone() if isinstance(value, torch.Tensor) else value for value in tensors]
    copied, args, kwargs = pytree.tree_unflatten(copies, spec)
    results = compute_unless_refused(op, SampleInput(copied, args=args, kwargs=kwargs))
    return [value for value in list_tensors(results) if value.is_floating_point()]


def _fill(like: torch.Tensor, center: float, spread: float) -> torch.Tensor:
    """Elements above and below a number by turns along each dimension."""
    turns = sum(torch.arange(size).view(-1, *[1] * (like.ndim - 1 - dim)) for dim, size in enumerate(like.shape))
    signs = 1 - 2 * (torch.as_tensor(turns) % 2)
    return (center + spread * signs).to(like.dtype).requires_grad_(like.requires_grad)


SMALL_SPREADS = Variation("small_spreads", list_small_spreads)


# Factors of zero, of whose tensor nothing is read: with a `beta` of 0, NaN in what `addmm` adds to is ignored.


SAMPLES_OF_ZERO = 3


def list_zero_factors(opinfos: OpInfos, op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples with an input of NaN, beside other tensors, and a number of 0 by which the CPU ignores it."""
    for sample in choose_samples(opinfos, op, dtype, SAMPLES_OF_ZERO):
        if not has_other_tensors(sample):
            continue
        unread = replace_input(sample, torch.full_like(sample.input.detach(), torch.nan))
        numbers = dict.fromkeys(place for place, value in list_arguments(op, sample) if type(value) in (int, float))
        varied = keep_computed(op, [(f"NaN with {at}=0", replace_argument(unread, at, 0)) for at in numbers])
        yield from ((label, ignored) for label, ignored in varied if is_finite(op, ignored))


ZERO_FACTORS = Variation("zero_factors", list_zero_factors)
