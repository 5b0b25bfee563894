"""Gathers and scatters. Source: Apple's documentation of MPSGraph (gather, scatter and indexing operations)."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph.semantics import implements, unsupported
from aten_overlay.apple.mpsgraph.types import Unknown

_ADD, _SUB, _MUL, _DIV, _MIN, _MAX, _SET = range(7)  # MPSGraphScatterMode
_REDUCE = {_ADD: "sum", _SUB: "sum", _MUL: "prod", _DIV: "prod", _MIN: "amin", _MAX: "amax"}


def _scattered(data: Tensor, axis: int, index: Tensor, updates: Tensor, mode: int) -> Tensor:
    """An update whose index is out of bounds is skipped."""
    size = data.shape[axis]
    outside = (index < 0) | (index >= size)
    if not data.is_meta and bool(outside.any()):
        beyond = [1 if d == axis % data.ndim else n for d, n in enumerate(data.shape)]
        longer = torch.cat([data, data.new_zeros(beyond)], axis)
        return _set_or_reduced(longer, axis, torch.where(outside, size, index), updates, mode).narrow(axis, 0, size)
    return _set_or_reduced(data, axis, index, updates, mode)


def _set_or_reduced(data: Tensor, axis: int, index: Tensor, updates: Tensor, mode: int) -> Tensor:
    if mode == _SET:
        return data.scatter(axis, index, updates)
    if mode not in _REDUCE or (mode == _DIV and not data.is_floating_point()):
        raise unsupported(f"MPSGraphScatterMode {mode} of this type")
    if mode == _SUB:
        updates = -updates
    elif mode == _DIV:
        updates = 1 / updates
    return data.scatter_reduce(axis, index, updates, _REDUCE[mode], include_self=True)


def _start(shape: list[int], like: Tensor, mode: int) -> Tensor:
    """What a scatter without data starts from."""
    return torch.full(shape, 1 if mode == _MUL else 0, dtype=like.dtype, device=like.device)


def _gathered(updates: Tensor, axis: int, index: Tensor) -> Tensor:
    """Zero where an index is out of bounds."""
    size = updates.shape[axis]
    outside = (index < 0) | (index >= size)
    if updates.is_meta or not bool(outside.any()):
        return torch.gather(updates, axis, index)
    beyond = [1 if d == axis % updates.ndim else n for d, n in enumerate(updates.shape)]
    longer = torch.cat([updates, updates.new_zeros(beyond)], axis)
    return torch.gather(longer, axis, torch.where(outside, size, index))


@implements("gatherAlongAxis:withUpdatesTensor:indicesTensor")
def gather_along(axis: int, updates: Tensor, indices: Tensor) -> Tensor:
    return _gathered(updates, axis, indices.to(torch.int64))


@implements("gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions")
def gather(updates: Tensor, indices: Tensor, axis: int, batch: int) -> Tensor:
    """Whole slices at the indices; the first `batch` dimensions of both go together."""
    axis %= updates.ndim
    source = updates.movedim(axis, batch)
    rest = source.shape[batch + 1 :]
    count = source.shape[:batch].numel()
    index = indices.to(torch.int64).reshape(count, -1, 1).expand(-1, -1, rest.numel())
    slices = source.reshape(count, source.shape[batch], rest.numel())
    made = _gathered(slices, 1, index).reshape(*source.shape[:batch], *indices.shape[batch:], *rest)
    positions = range(indices.ndim - batch)
    return made.movedim([batch + i for i in positions], [axis + i for i in positions])


@implements("gatherNDWithUpdatesTensor:indicesTensor:batchDimensions")
def gather_nd(updates: Tensor, indices: Tensor, batch: int) -> Tensor:
    """At the positions that the last dimension of the indices gives; the first `batch` dimensions are shared."""
    positions = indices.to(torch.int64).unbind(-1)
    rank = indices.ndim - 1
    lead = [
        torch.arange(size, device=updates.device).reshape([-1 if d == i else 1 for d in range(rank)])
        for i, size in enumerate(updates.shape[:batch])
    ]
    return updates[(*lead, *positions)]


@implements("nonZeroIndicesOfTensor")
def non_zero(x: Tensor) -> Tensor | Unknown:
    """The positions of what is not zero, one a row, in their order."""
    return Unknown(torch.int32) if x.device.type == "meta" else torch.nonzero(x).to(torch.int32)


@implements("scatterAlongAxis:withDataTensor:updatesTensor:indicesTensor:mode")
def scatter_along(axis: int, data: Tensor, updates: Tensor, indices: Tensor, mode: int) -> Tensor:
    return _scattered(data, axis, indices.to(torch.int64), updates, mode)


@implements("scatterAlongAxis:withUpdatesTensor:indicesTensor:shape:mode")
def scatter_along_new(axis: int, updates: Tensor, indices: Tensor, shape: list[int], mode: int) -> Tensor:
    return _scattered(_start(shape, updates, mode), axis, indices.to(torch.int64), updates, mode)


def _slices(index: Tensor, updates: Tensor, axis: int) -> Tensor:
    """One index for each slice along an axis, as one for each element."""
    sizes = [-1 if d == axis % updates.ndim else 1 for d in range(updates.ndim)]
    return index.to(torch.int64).reshape(sizes).broadcast_to(updates.shape)


@implements("scatterWithDataTensor:updatesTensor:indicesTensor:axis:mode")
def scatter(data: Tensor, updates: Tensor, indices: Tensor, axis: int, mode: int) -> Tensor:
    return _scattered(data, axis, _slices(indices, updates, axis), updates, mode)


@implements("scatterWithUpdatesTensor:indicesTensor:shape:axis:mode")
def scatter_new(updates: Tensor, indices: Tensor, shape: list[int], axis: int, mode: int) -> Tensor:
    return _scattered(_start(shape, updates, mode), axis, _slices(indices, updates, axis), updates, mode)


@implements("scatterNDWithDataTensor:updatesTensor:indicesTensor:batchDimensions:mode")
def scatter_nd(data: Tensor, updates: Tensor, indices: Tensor, batch: int, mode: int) -> Tensor:
    """At the positions that the last dimension of the indices gives; without batch dimensions."""
    if batch:
        raise unsupported("a scatterND with batch dimensions")
    depth = indices.shape[-1]
    sizes, rest = data.shape[:depth], data.shape[depth:]
    position = torch.zeros(indices.shape[:-1], dtype=torch.int64, device=indices.device)
    inside = torch.ones_like(position, dtype=torch.bool)
    for size, part in zip(sizes, indices.to(torch.int64).unbind(-1), strict=True):
        position = position * size + part
        inside &= (part >= 0) & (part < size)
    position = torch.where(inside, position, -1)
    index = position.reshape(-1, 1).expand(-1, rest.numel())
    flat = data.reshape(sizes.numel(), rest.numel())
    return _scattered(flat, 0, index, updates.reshape(index.shape), mode).reshape(data.shape)


@implements("scatterNDWithUpdatesTensor:indicesTensor:shape:batchDimensions:mode")
def scatter_nd_new(updates: Tensor, indices: Tensor, shape: list[int], batch: int, mode: int) -> Tensor:
    start = _start(shape, updates, mode)
    return start if start.is_meta else scatter_nd(start, updates, indices, batch, mode)  # its shape is given


@implements("scatterNDWithUpdatesTensor:indicesTensor:shape:batchDimensions")
def scatter_nd_added(updates: Tensor, indices: Tensor, shape: list[int], batch: int) -> Tensor:
    return scatter_nd_new(updates, indices, shape, batch, _ADD)
