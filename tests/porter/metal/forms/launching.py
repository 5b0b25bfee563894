"""Tensors of memory with gaps."""

from __future__ import annotations

import torch


def with_gaps(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements, every second of memory, the last dimension outermost."""
    moved = tensor.movedim(-1, 0)
    return torch.stack((moved, moved), -1)[..., 0].movedim(0, -1)
