"""A GPU's results beside others': of the same kernels on the host and in other launches, of torch's CUDA kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from porter.core.dtypes import name_torch
from porter.verdict.result import Beside
from porter.verdict.suite.compare import HALVES, ulp

HOST, TORCH = "the host", "torch's CUDA"
SCHEDULES, FAR = "other groups and orders", "elements past 2^32 bytes"
# How far two machines' results may lie apart, relative and absolute: two roundings of the type, and of functions that
# both compute in a few operations.
TOLERANCES: Mapping[torch.dtype, float] = {
    torch.float32: 2e-5, torch.complex64: 2e-5, torch.float16: 2e-3, torch.complex32: 2e-3, torch.bfloat16: 1.6e-2,
}  # fmt: skip


@dataclass
class Comparisons:
    """What was compared so far, by whom it was compared with and dtype."""

    rows: dict[tuple[str, torch.dtype], Beside] = field(default_factory=dict)

    def add(self, other: str, name: str, found: torch.Tensor, wanted: torch.Tensor) -> str:
        """Counts one result; how it differs, by more than both may round: "" if it does not."""
        row = self._row(other, found.dtype)
        row = replace(row, calls=row.calls + 1)
        wrong = ""
        if has_same_bits(found, wanted):
            row = replace(row, equal=row.equal + 1)
        elif wrong := find_difference(found, wanted):
            first = row.first or f"{name} {wrong} on {other}"
            row = replace(row, different=row.different + 1, first=first)
        else:
            row = replace(row, close=row.close + 1, max_ulp=_larger(row.max_ulp, measure_distance(found, wanted)))
        self.rows[other, found.dtype] = row
        return wrong

    def require_agreement(self, other: str, name: str, found: torch.Tensor, wanted: torch.Tensor) -> None:
        """Counts one result. Raises AssertionError where it differs by more than both may round."""
        wrong = self.add(other, name, found, wanted)
        if wrong:
            raise AssertionError(f"{name}: {other} change the result: it {wrong}")

    def require_same(self, other: str, name: str, found: torch.Tensor, wanted: torch.Tensor) -> None:
        """Counts one result that has to be the same in every bit. Raises AssertionError where it is not."""
        self.require_agreement(other, name, found, wanted)
        if not has_same_bits(found, wanted):
            raise AssertionError(f"{name}: {other} change the result's last bits")

    def leave_out(self, other: str, dtype: torch.dtype, reason: str) -> None:
        """Counts a result that has nothing to stand beside."""
        row = self._row(other, dtype)
        self.rows[other, dtype] = replace(row, left_out=row.left_out + 1, reason=row.reason or reason)

    def list(self) -> tuple[Beside, ...]:
        """All counts, those of one comparison together."""
        return tuple(self.rows[key] for key in sorted(self.rows, key=lambda key: (key[0], str(key[1]))))

    def _row(self, other: str, dtype: torch.dtype) -> Beside:
        return self.rows.get((other, dtype)) or Beside(other, name_torch(dtype))


def has_same_bits(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Whether two results of one type and shape are equal; NaN equals NaN, and zeros have signs."""
    found, wanted = _real(found), _real(wanted)
    same = found == wanted
    if found.dtype.is_floating_point:
        same = (same & (found.signbit() == wanted.signbit())) | (found.isnan() & wanted.isnan())
    return bool(same.all())


def find_difference(found: torch.Tensor, wanted: torch.Tensor) -> str:
    """The first element that differs by more than both may round; "" if none does."""
    most = TOLERANCES.get(found.dtype, 0.0)
    found, wanted = _wide(found), _wide(wanted)
    far = ~torch.isclose(found, wanted, rtol=most, atol=most, equal_nan=True)
    if not far.any():
        return ""
    at = int(far.flatten().nonzero()[0])
    return f"gives {found.flatten()[at].item()} at element {at}, {wanted.flatten()[at].item()}"


def measure_distance(found: torch.Tensor, wanted: torch.Tensor) -> float | None:
    """The largest distance in units in the last place; None for whole numbers and empty results."""
    found, wanted = _real(found), _real(wanted)
    return float(ulp(found, wanted.double()).max()) if found.dtype.is_floating_point and found.numel() else None


def _larger(one: float | None, other: float | None) -> float | None:
    return max((each for each in (one, other) if each is not None), default=None)


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _wide(tensor: torch.Tensor) -> Any:
    if tensor.dtype is torch.complex32:
        return tensor.to(torch.complex64)
    return tensor.float() if tensor.dtype in HALVES else tensor
