"""Small tensors placed in large sparse storages on the device: offsets pass 32 bits, and few pages exist.

A storage here is addresses alone; a page of it exists once it is touched. The device knows which bytes hold elements,
so that a kernel that touches others is caught, and the offset that it meant found (PTR270).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from aten_overlay.device import load
from aten_overlay.device.large import SPARSE_FROM

# Elements between what an offset means and what is left of it in 32 bits: no element of the tensor lies there.
GAP = (1 << 20) + 64
MOST_STRETCHES = 64  # that count as separate in a tensor

Layout = tuple[tuple[int, ...], int]  # strides and storage offset, in elements


@dataclass(frozen=True)
class Boundary:
    """An offset that is too large for a type: `elements(itemsize)` is where it lies."""

    name: str
    elements: Callable[[int], int]


BOUNDARIES = (
    Boundary("2^32 bytes", lambda itemsize: (1 << 32) // itemsize),
    Boundary("2^31 elements", lambda itemsize: 1 << 31),
    Boundary("2^32 elements", lambda itemsize: 1 << 32),
)


@dataclass(frozen=True)
class Placement:
    """Where elements lie: `lay_out(shape, elements)` are strides and offset, None for a shape that it leaves."""

    name: str
    lay_out: Callable[[Sequence[int], int], Layout | None]


def shift(shape: Sequence[int], elements: int) -> Layout:
    """Dense, behind `elements` that are not its own."""
    return _dense(shape), elements + GAP


def spread_first(shape: Sequence[int], elements: int) -> Layout | None:
    """The first dimension with more than one row strided, so that its last row lies past `elements`."""
    return _spread(shape, elements, range(len(shape)))


def spread_last(shape: Sequence[int], elements: int) -> Layout | None:
    """The last dimension with more than one element strided likewise, where that is another than the first."""
    several = [d for d, size in enumerate(shape) if size > 1]
    return _spread(shape, elements, range(len(shape) - 1, -1, -1)) if len(several) > 1 else None


PLACEMENTS = (
    Placement("storage offset", shift),
    Placement("stride of the first dimension", spread_first),
    Placement("stride of the last dimension", spread_last),
)


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def _spread(shape: Sequence[int], elements: int, dimensions: Sequence[int]) -> Layout | None:
    chosen = next((d for d in dimensions if shape[d] > 1), None)
    if chosen is None or shape[chosen] > MOST_STRETCHES:
        return None
    others = [1 if d == chosen else size for d, size in enumerate(shape)]
    strides = list(_dense(others))
    strides[chosen] = -(-elements // (shape[chosen] - 1)) + GAP
    return tuple(strides), 0


def place(tensor: torch.Tensor, placement: Placement, boundary: Boundary) -> torch.Tensor | None:
    """The tensor's values on the device, placed; None if the placement leaves its shape."""
    found = lay_out(tensor.shape, tensor.element_size(), placement, boundary)
    if found is None:
        return None
    placed = allocate(tensor.shape, tensor.dtype, found)
    placed.copy_(tensor.detach())
    return placed


def lay_out(shape: Sequence[int], itemsize: int, placement: Placement, boundary: Boundary) -> Layout | None:
    """Strides and offset of a tensor of this shape; None if the placement leaves it."""
    return placement.lay_out(shape, boundary.elements(itemsize)) if 0 not in shape else None


def allocate(shape: Sequence[int], dtype: torch.dtype, layout: Layout) -> torch.Tensor:
    """A tensor of the device in a storage of its own, whose bytes without elements no kernel may touch."""
    device = load.started()
    assert device is not None
    strides, offset = layout
    last = offset + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    flat = torch.empty(last + 1, dtype=dtype, device="mps")
    view = flat.as_strided(tuple(shape), strides, offset)
    if flat.untyped_storage().nbytes() >= SPARSE_FROM:
        device.set_extents(flat.untyped_storage().data_ptr(), find_extents(shape, layout, dtype.itemsize))
    return view


def find_extents(shape: Sequence[int], layout: Layout, itemsize: int) -> list[tuple[int, int]]:
    """The stretches of bytes between which no element lies for long, from the storage's start."""
    strides, offset = layout
    far = [(size, stride) for size, stride in zip(shape, strides, strict=True) if stride >= GAP and size > 1]
    near = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if (n, s) not in far)
    starts = [offset]
    for size, stride in far:
        starts = [start + i * stride for start in starts for i in range(size)]
    return [(start * itemsize, (start + near + 1) * itemsize) for start in sorted(starts)]
