"""The values where kernels go wrong: at the ends of a type, where it gets coarse, and where a branch may lie."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import torch

# Powers of two beyond which a float type (16-bit, 32-bit, 64-bit) skips integers, and those where integers end.
_COARSE = (8, 11, 24, 53)
_ENDS = (7, 15, 16, 31, 32, 62)
_BASES = (2.0, math.e, 10.0)


def edge_values(dtype: torch.dtype, literals: Iterable[float] = ()) -> torch.Tensor:
    """The values at the edges of a type, 1-d: signed zeros, infinities, NaN, denormals, extremes, and where the type
    gets coarse; `literals` (numbers that a kernel's text compares with), and what is one ULP beside each.
    """
    if dtype == torch.bool:
        return torch.tensor([False, True])
    if dtype.is_complex:
        return _complex(dtype, literals)
    if dtype.is_floating_point:
        return _floating(dtype, literals)
    whole = torch.iinfo(dtype)
    around = [2**power + step for power in (*_COARSE, *_ENDS) for step in (-1, 0, 1)]
    near = [int(literal) + step for literal in literals if abs(literal) < 2**62 for step in (-1, 0, 1)]
    small = [0, 1, 2, 3, 7, 100, *sorted({abs(each) for each in near})]
    wanted = dict.fromkeys([*small, *sorted(around), 2**24 + 3, whole.max - 1, whole.max])
    # The lowest value is left out: dividing it by -1 traps on the CPU that answers for the reference.
    signs = (1, -1) if whole.min else (1,)
    return torch.tensor([s * v for v in wanted if v <= whole.max for s in signs], dtype=dtype)


def _floating(dtype: torch.dtype, literals: Iterable[float]) -> torch.Tensor:
    info = torch.finfo(dtype)
    least = info.smallest_normal * info.eps
    small = [info.smallest_normal, info.smallest_normal - least, info.smallest_normal / 4, least, info.eps]
    # From 1 / eps on there are no fractions; beyond the square roots of the ends, squares leave the type.
    large = [1 / info.eps, 0.5 / info.eps - 0.5, math.sqrt(info.max) * 1.5, info.max]
    ends = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.25, 100.0, *small, *large, *_range_of_powers(info)]
    near = [v for literal in literals for v in values_beside(literal, dtype)]
    ends += [v for v in (*values_beside(1.0, dtype), *near) if v not in ends]
    both = [s * v for v in (*ends, math.inf) for s in (1, -1)]
    return torch.tensor([*both, math.nan], dtype=torch.float64).to(dtype)


def _range_of_powers(info: torch.finfo) -> Iterator[float]:
    """Exponents, of the usual bases, whose powers are the last finite one, and one in the middle of the denormals."""
    for base in _BASES:
        yield math.log(info.max, base) * (1 - info.eps)
        yield -math.log(info.smallest_normal * math.sqrt(info.eps), base)


def values_beside(value: float, dtype: torch.dtype) -> Iterator[float]:
    """A value in a type, and its neighbors."""
    here = torch.tensor(value, dtype=dtype)
    yield from (float(each) for each in (here, *(torch.nextafter(here, here.new_tensor(e)) for e in (-1e4, 1e4))))


def _complex(dtype: torch.dtype, literals: Iterable[float]) -> torch.Tensor:
    """Both sides of the axes, on which the branch cuts lie, at every size; infinities beside what is finite and each
    other; absolute values that are literals, and what is beside them.
    """
    info = torch.finfo(torch.float32)
    small = info.smallest_normal
    ends = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 7.25, 100.0, small, info.max, small / 4, info.eps, math.inf]
    part = torch.tensor([*(s * v for v in ends for s in (1, -1)), math.nan])
    axis = torch.tensor([s * v for v in (0.0, 1e-5, 0.5, 1.0, 2.5, math.inf) for s in (1, -1)])
    real, imaginary = torch.meshgrid(axis, axis, indexing="ij")
    sizes = torch.tensor([v for literal in literals for v in values_beside(literal, torch.float32)])
    sides = [torch.complex(sizes, torch.zeros_like(sizes)), torch.complex(sizes * 0.6, sizes * -0.8)]
    return torch.cat([torch.complex(real, imaginary).flatten(), torch.complex(part, part.flip(0)), *sides]).to(dtype)
