"""Rows whose elements are close to their mean: the variance is far below one, and so is what is added to it.

A kernel that takes the mean of squares less the square of the mean loses such a variance, and one that takes a small
one for zero makes 990 of 1 (pytorch#190491).
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite.arguments import Varied, keep_computed, list_arguments
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.leaves import compute_unless_refused, list_tensors, replace_argument
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.sums import convert
from porter.verdict.suite.variations.choice import choose_samples
from porter.verdict.suite.variations.variation import Variation

SAMPLES = 4
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
