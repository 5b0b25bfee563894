"""Tensors of the same elements in other memory layouts, and tensors of fewer elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Transform = Callable[[torch.Tensor], torch.Tensor]

OFFSET = 3  # no multiple of what vectors have
APART, BEHIND, EXPANDED = "every second element", "storage offset", "expanded"
CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}  # by the number of dimensions


def transpose(t: torch.Tensor) -> torch.Tensor:
    return t.transpose(-1, -2).contiguous().transpose(-1, -2) if t.ndim > 1 else t


def take_every_second(t: torch.Tensor) -> torch.Tensor:
    return t.repeat_interleave(2, -1)[..., ::2] if t.ndim else t


def leave_gaps(t: torch.Tensor) -> torch.Tensor:
    """Part of a tensor that is larger in every dimension, so that no stride is a product of sizes."""
    whole = t.new_ones([size + 1 for size in t.shape])
    part = whole[tuple(slice(size) for size in t.shape)]
    return part.copy_(t) if t.ndim else t


def shift(t: torch.Tensor) -> torch.Tensor:
    storage = torch.cat([t.new_ones(OFFSET), t.flatten()])
    return storage[OFFSET:].view(t.shape)


def put_channels_last(t: torch.Tensor) -> torch.Tensor:
    """Channels beside each other in memory, where a tensor has as many dimensions as an image or a volume."""
    return t.contiguous(memory_format=CHANNELS_LAST[t.ndim]) if t.ndim in CHANNELS_LAST else t


def cut_channels_last(t: torch.Tensor) -> torch.Tensor:
    """Part of a larger tensor with channels last, which is not dense itself."""
    return put_channels_last(torch.cat([t, t[..., :1]], -1))[..., :-1] if t.ndim in CHANNELS_LAST else t


def make_dense(value: Any) -> Any:
    """A tensor with the same elements, one after the other in memory of its own."""
    return value.detach().clone(memory_format=torch.contiguous_format) if isinstance(value, torch.Tensor) else value


def expand(t: torch.Tensor) -> torch.Tensor:
    return t[..., :1].expand(t.shape) if t.ndim and t.shape[-1] else t


def empty(t: torch.Tensor) -> torch.Tensor:
    return t[:0] if t.ndim else t


def scalar(t: torch.Tensor) -> torch.Tensor:
    return t.flatten()[0].clone() if t.numel() else t


LAYOUTS: dict[str, Transform] = {
    "transposed": transpose,
    APART: take_every_second,
    BEHIND: shift,
    EXPANDED: expand,
}
POINTWISE: dict[str, Transform] = {"empty": empty, "0-d": scalar}
