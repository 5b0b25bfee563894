"""Transforms, such as Fourier's: each element of their only tensor has a share of either sign in several results.

What results are off by is as large as the rounding of all elements, also where these cancel each other, and what one
that is not finite makes of the others follows from the order in which a library adds them up.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.bounds import TIMES
from porter.verdict.suite.leaves import compute_unless_refused, list_operands, replace_input

_SHARES = 3  # results, at least, that the second element has a share in, along each dimension
_ULP = 8.0  # of a result, or of one as large as they are on average


def widen_alone(sample: SampleInput) -> SampleInput | None:
    """The sample in double precision, of what its type is converted to before; None if it has several tensors."""
    if len(list_operands(sample)) != 1 or not isinstance(sample.input, torch.Tensor) or not sample.input.numel():
        return None
    tensor = sample.input.detach()
    return replace_input(sample, tensor.to(torch.complex128) if tensor.is_complex() else tensor.float().double())


def is_transform(run: Callable[[SampleInput], Any], sample: SampleInput) -> bool:
    """Whether results are linear in the only tensor of a sample, whose second element has shares of either sign."""
    wide = widen_alone(sample)
    if wide is None:
        return False
    second = torch.zeros_like(wide.input, memory_format=torch.contiguous_format)
    second[tuple(min(1, size - 1) for size in second.shape)] = 1
    other = torch.linspace(-1, 1, second.numel(), dtype=torch.float64).view(second.shape).to(second.dtype)
    one, two, both, none = (run(replace_input(wide, each)) for each in (second, other, second + 3 * other, 0 * second))
    if not all(isinstance(each, torch.Tensor) and each.dtype in _WIDE for each in (one, two, both, none)):
        return False
    shares = torch.view_as_real(one.resolve_conj().resolve_neg()) if one.is_complex() else one
    has_signs = bool((shares > 0).any() and (shares < 0).any()) and int((one != 0).sum()) >= _SHARES
    return has_signs and not none.any() and torch.allclose(both, one + 3 * two)


def agrees(run: Callable[[SampleInput], Any], sample: SampleInput, mine: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Whether a result is one of a transform, and near enough to what it is in double precision, beside the CPU's."""
    wide = widen_alone(sample)
    if wide is None or not is_transform(run, sample):
        return False
    exact = run(wide)
    return isinstance(exact, torch.Tensor) and is_near(mine, theirs, exact.detach())


def is_near(mine: torch.Tensor, theirs: torch.Tensor, exact: torch.Tensor) -> bool:
    """Whether each result is as near to the exact one as a few roundings of it, or of one as large as the average; or
    as the CPU's are that are no larger.
    """
    if not mine.shape == theirs.shape == exact.shape or mine.dtype not in _WIDE.values() or not exact.numel():
        return False
    size, error = exact.abs(), (theirs.to(exact.dtype) - exact).abs()
    average = size.square().mean().sqrt()
    most = TIMES * torch.where(size <= average, error, 0.0).max()
    allowed = (_ULP * torch.finfo(torch.float32).eps * size.clamp(min=average)).clamp(min=most)
    return bool(((mine.to(exact.dtype) - exact).abs() <= allowed).all())


def mixes(op: Callable[..., Any], sample: SampleInput) -> bool:
    """Whether an operator is a transform of a sample, which the CPU may refuse in double precision."""
    return is_transform(lambda each: compute_unless_refused(op, each), sample)


_WIDE = {torch.float64: torch.float32, torch.complex128: torch.complex64}
