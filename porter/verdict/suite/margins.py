"""Tensors within larger memory, which shows that a kernel of the CPU reached beyond them.

Some kernels do not check the sizes of their operands. One that writes beyond a tensor then corrupts memory of others,
and one that reads beyond it computes what no call should.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import Any

import torch
from torch.utils import _pytree as pytree

_MARGIN = 4096  # elements on either side


@dataclass
class Margins:
    """The memory of the tensors of one call.

    What a kernel computes from NaN beyond a tensor and writes there is NaN again, so that nothing seems to be written:
    `plain` margins are of ones, or of zeros for bools.
    """

    plain: bool = False
    _wholes: list[tuple[torch.Tensor, int]] = field(default_factory=list)

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """A contiguous copy with margins: plain ones, or of NaN, and for other types of their greatest number."""
        count = prod(tensor.shape)
        whole = torch.full((count + 2 * _MARGIN,), self._fill(tensor.dtype), dtype=tensor.dtype)
        placed = whole[_MARGIN : _MARGIN + count].view(tensor.shape)
        placed.copy_(tensor)
        self._wholes.append((whole, count))
        return placed

    def are_intact(self) -> bool:
        """Whether nothing was written beyond a tensor."""
        return all(self._is_filled(side) for whole, count in self._wholes for side in _sides(whole, count))

    def _fill(self, dtype: torch.dtype) -> float | int | bool:
        return dtype is not torch.bool if self.plain else _filling(dtype)

    def _is_filled(self, side: torch.Tensor) -> bool:
        has_nan = not self.plain and (side.is_floating_point() or side.is_complex())
        return bool((side.isnan() if has_nan else side == self._fill(side.dtype)).all())


def has_nan(result: Any) -> bool:
    """Whether a result has NaN, which a kernel may have read beyond its operands."""
    found = (each for each in pytree.tree_leaves(result) if isinstance(each, torch.Tensor))
    return any(bool(each.isnan().any()) for each in found if each.is_floating_point() or each.is_complex())


def _sides(whole: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    return whole[:_MARGIN], whole[_MARGIN + count :]


def _filling(dtype: torch.dtype) -> float | int | bool:
    if dtype.is_floating_point or dtype.is_complex:
        return float("nan")
    return True if dtype is torch.bool else torch.iinfo(dtype).max
