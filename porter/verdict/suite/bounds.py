"""How far a result may be off: a bound for each function and dtype, from float64 and from what ATen's CPU reaches.

Nothing here knows an operator. Results are put into bins by their magnitude, because a function is often hard to
compute where it is near zero and easy elsewhere; in each bin a kernel may be a few times as far off as the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from porter.verdict.suite import compare

TIMES = 4.0
# ULP that no kernel is blamed for: Metal's own functions are off by up to 6; 16 bits are computed in 32.
FLOOR, FLOOR_OF_HALVES = 8.0, 2.0
_BINS = 2400
# Elements of a result for which one that the CPU misses speaks: of more, one in hundreds of thousands always is.
_MOST_TOGETHER = 1 << 15


def excess(
    mps: torch.Tensor,
    cpu: torch.Tensor,
    want: torch.Tensor,
    inputs: list[torch.Tensor],
    flushes: bool = False,
) -> str:
    """Where a floating result is off by more than its bound: `""` if nowhere.

    `want` is the result in double precision; all have one shape. The error of a complex number is relative to all of
    it, not to each part. Of those, and where the arithmetic `flushes`, what denormals give is not judged; of complex
    numbers whose arithmetic flushes, nothing is.
    """
    mine, theirs = ulp_with_denormals(mps, want), ulp_with_denormals(cpu, want)
    allowed = _bound(theirs, want, FLOOR_OF_HALVES if mps.dtype in compare.HALVES else FLOOR)
    over = (mine > allowed) & (mps != cpu) & ~(mps.isnan() & cpu.isnan())
    if mps.is_complex():  # which overflow on the way in more than one way
        over &= ~(mine.isinf() & theirs.isinf())
    if flushes and mps.is_complex():  # a part that is flushed inside may be the whole result's
        return ""
    if flushes or mps.is_complex():
        over &= _judged(mps, inputs)
    if not bool(over.any()):
        return ""
    at = int(torch.where(over, mine / allowed, 0.0).argmax())
    error, most = float(mine.flatten()[at]), float(allowed.flatten()[at])
    got, right = mps.flatten()[at].item(), want.flatten()[at].item()
    told = f"off by {error:.1f} ULP at {compare.describe_operands(inputs, at)}: {got} for {right}"
    return f"{told}; the bound is {most:.1f} ULP, from the CPU's"


def is_as_near(
    mps: torch.Tensor,
    known: Sequence[tuple[torch.Tensor, torch.Tensor]],
    flushes: bool = False,
    atol: float | None = None,
    rtol: float | None = None,
) -> bool:
    """Returns true if every element of the device is near enough.

    Near enough is what matches the CPU or double precision. If the CPU itself misses the tolerance, that is also what
    is within the CPU's own error bound, or overflows where double precision does; else so is an element alone whose
    exact result misses the tolerance where operands are a few units in the last place off: sums that cancel each other.
    Of many results, what the CPU misses for operands beside them excuses the same element alone.
    Of complex numbers the bound is the CPU's errors at such elements alone, and holds for zeros and denormals too.

    `known` are the CPU's results and those in double precision: first for the same operands, then for others beside
    them, which tell how far off the CPU may be.
    """
    is_each_alone = mps.numel() > _MOST_TOGETHER and len(known) > 1
    if is_each_alone and is_as_near(mps, known[:1], flushes, atol, rtol):
        return True
    cpu, want = (torch.cat([each.flatten() for each in several]) for several in zip(*known, strict=True))
    rounded = want.to(cpu.dtype)
    far = ~compare.is_close(cpu, rounded, atol, rtol)
    got = torch.cat([mps.flatten(), cpu[mps.numel() :]])
    left = ~compare.is_close(got, cpu, atol, rtol) & ~compare.is_close(got, rounded, atol, rtol)
    exact = rounded.view(len(known), mps.numel())
    moves = (~compare.is_close(exact, exact[:1].expand_as(exact), atol, rtol)).any(0).repeat(len(known))
    loose = far.view(len(known), mps.numel()).any(0).repeat(len(known)) | moves
    if (is_each_alone or not bool(far.any())) and not bool(loose[left].all()):
        return False
    judged = (want.abs() <= torch.finfo(mps.dtype).max) | (got == rounded)
    if mps.is_complex():
        errors = torch.where(far | moves, ulp_with_denormals(cpu, want), 0.0)
        return bool((judged & (ulp_with_denormals(got, want) <= _bound(errors, want, floor=0.0)))[left].all())
    return bool(judged[left].all()) and not excess(torch.where(left, got, cpu), cpu, want, [], flushes)


def find_as_near(
    mps: torch.Tensor,
    pairs: Sequence[tuple[torch.Tensor, torch.Tensor]],
    atol: float | None = None,
    rtol: float | None = None,
) -> torch.Tensor:
    """Where a result is at most `TIMES` as far from double precision as the CPU's of the same operands, or of those a
    few units in the last place beside them; nowhere if these all match it within the tolerance.

    `pairs` are the CPU's results and those in double precision, first for the operands themselves. The bound is of each
    element alone: where the CPU has no digits, nothing is excused elsewhere. Where one part of a number overflows on
    the CPU and here, the other one has as many digits as the CPU's.
    """
    far = [~compare.is_close(cpu, want.to(cpu.dtype), atol, rtol) for cpu, want in pairs]
    errors = torch.stack([ulp_with_denormals(cpu, want) for cpu, want in pairs])
    most = torch.where(errors.isfinite(), errors, 0.0).amax(0)
    cpu, want = pairs[0]
    judged = mps.isfinite() & (want.abs() <= torch.finfo(mps.dtype).max)
    near = judged & (ulp_with_denormals(mps, want) <= TIMES * most)
    if mps.is_complex():
        near |= ~cpu.isfinite() & _is_as_near_in_parts(mps, pairs)
    return near & torch.stack(far).any()


def _is_as_near_in_parts(mps: torch.Tensor, pairs: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """Where each part of a number is an infinity of the CPU's there or beside, or at most `TIMES` as far off as the
    CPU's.
    """
    parts = [[torch.view_as_real(each.resolve_conj().resolve_neg()) for each in pair] for pair in pairs]
    off = torch.stack([(cpu - want).abs() for cpu, want in parts])
    most, mine = torch.where(off.isfinite(), off, 0.0).amax(0), torch.view_as_real(mps)
    cpu, want = parts[0]
    is_near = mine.isfinite() & cpu.isfinite() & ((mine - want).abs() <= TIMES * most)
    overflows = torch.stack([mine == theirs for theirs, _ in parts]).any(0) & mine.isinf()
    return (is_near | overflows).all(-1)


def ulp_with_denormals(got: torch.Tensor, want: torch.Tensor) -> torch.Tensor:
    """The distance of `got` from the float64 `want` in the spacing of got's dtype at `want`, denormals included.

    0 where `want` is NaN or out of range; infinite where `got` alone is.
    """
    info = torch.finfo(got.dtype)
    size = want.abs()
    counted = size <= info.max
    got = got.to(want.dtype)
    spacing = torch.exp2(_exponent(torch.where(counted, size, 1.0)).clamp(min=_least_exponent(info))) * info.eps
    off = ((got - want).abs() / spacing).nan_to_num(nan=torch.inf, posinf=torch.inf)
    return torch.where(counted, off, 0.0)


def _bound(theirs: torch.Tensor, want: torch.Tensor, floor: float) -> torch.Tensor:
    """What each result may be off by: `TIMES` the CPU's largest finite error among results of its magnitude, or
    `floor`.
    """
    theirs = torch.where(theirs.isinf(), 0.0, theirs)
    bins = (_exponent(want.abs().nan_to_num(nan=1.0)) + _BINS // 2).clamp(1, _BINS - 2).long()
    most = torch.zeros(_BINS, dtype=torch.float64).scatter_reduce_(0, bins.flatten(), theirs.flatten(), "amax")
    around = torch.stack([most.roll(step) for step in (-1, 0, 1)]).amax(0)
    return (TIMES * around[bins]).clamp(min=floor)


def _judged(result: torch.Tensor, inputs: list[torch.Tensor]) -> torch.Tensor:
    """Where neither the result nor an operand is a denormal or a zero."""
    kept = _normal(result)
    for each in inputs:
        if each.shape == result.shape and each.dtype == result.dtype:
            kept = kept & _normal(each)
    return kept


def _normal(value: torch.Tensor) -> torch.Tensor:
    return value.abs() >= torch.finfo(value.dtype).smallest_normal


def _exponent(size: torch.Tensor) -> torch.Tensor:
    return torch.floor(torch.log2(size)).clamp(-_BINS, _BINS)


def _least_exponent(info: torch.finfo) -> float:
    return float(torch.log2(torch.tensor(info.smallest_normal, dtype=torch.float64)))
