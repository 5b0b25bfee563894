"""Tensors of memory with gaps."""

from __future__ import annotations

from math import ceil

import torch

from porter.metal.codegen.schedule import PLACES


def count_threads(result: torch.Tensor, dim: int = -1) -> int:
    """How many threads a tensor has, of which each has several places of a row, which goes along a dimension."""
    columns = result.shape[dim] if result.ndim else 1
    return result.numel() // columns * ceil(columns / PLACES)


def count_pad_threads(result: torch.Tensor) -> int:
    """How many threads a tensor has, of which each has several places of two rows."""
    rows = result.shape[-2] if result.ndim > 1 else 1
    return count_threads(result) // rows * ceil(rows / 2)


def with_gaps(tensor: torch.Tensor) -> torch.Tensor:
    """The same elements, every second of memory, the last dimension outermost."""
    moved = tensor.movedim(-1, 0)
    return torch.stack((moved, moved), -1)[..., 0].movedim(0, -1)
