"""Compares what a kernel wrote with what was expected."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from porter.core.dtypes import Kind
from porter.kernels.call import describe

_RELATIVE = {torch.float32: 1.3e-6, torch.float16: 1e-3, torch.bfloat16: 1.6e-2, torch.complex64: 1.3e-6}
_ABSOLUTE = 1e-5
# Rounding errors of sums grow with what is summed, not with the sum.
_UNITS_OF_LARGEST = 4


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be off; by its type unless given."""

    relative: float | None = None
    absolute: float | None = None


BY_TYPE = Tolerance()


@dataclass(frozen=True)
class Difference:
    """The first element that differs, and how many do."""

    output: str
    index: tuple[int, ...]
    expected: str
    got: str
    count: int
    total: int

    def __str__(self) -> str:
        many = f"{self.count} of {self.total} elements"
        return f"{self.output}{list(self.index)} is {self.got}, not {self.expected} ({many} differ)"


def compare(
    name: str, got: torch.Tensor, expected: torch.Tensor, tolerance: Tolerance, summed: float = 0.0
) -> tuple[float, Difference | None]:
    """The largest error of `got` in units of what is allowed, and the first difference if it is above 1.

    `expected` may be of a wider type: it is rounded to the type of `got` first. `summed` is the size of what results
    are sums of, where they cancel.
    """
    wanted = expected.to(got.dtype)
    if wanted.shape != got.shape:
        return float("inf"), Difference(name, (), str(tuple(wanted.shape)), str(tuple(got.shape)), 1, 1)
    if got.numel() == 0:
        return 0.0, None
    errors = _errors(got, wanted, tolerance, summed)
    wrong = errors > 1
    if not bool(wrong.any()):
        return float(errors.max()), None
    first = tuple(int(i) for i in wrong.nonzero()[0])
    return float(errors.max()), Difference(
        name, first, str(wanted[first].item()), str(got[first].item()), int(wrong.sum()), got.numel()
    )


def largest_of(values: torch.Tensor) -> float:
    """The largest finite magnitude; 0 if there is none."""
    size = values.abs()
    finite = size[size.isfinite()]
    return float(finite.max()) if finite.numel() else 0.0


def _errors(got: torch.Tensor, wanted: torch.Tensor, tolerance: Tolerance, summed: float) -> torch.Tensor:
    kind = describe(got.dtype).kind
    if kind in (Kind.INTEGRAL, Kind.BOOL):
        return torch.where(got == wanted, 0.0, float("inf")).double()
    wide = torch.complex128 if kind is Kind.COMPLEX else torch.float64
    a, b = got.to(wide), wanted.to(wide)
    off = (a - b).abs()
    same = (a == b) | (a.isnan() & b.isnan())
    size = b.abs()
    largest = max(summed, largest_of(size))
    absolute = tolerance.absolute
    if absolute is None:
        absolute = max(_ABSOLUTE, _UNITS_OF_LARGEST * torch.finfo(got.dtype).eps * largest)
    relative = _RELATIVE[got.dtype] if tolerance.relative is None else tolerance.relative
    return torch.where(same, 0.0, off / (absolute + relative * size)).nan_to_num(nan=float("inf"))
