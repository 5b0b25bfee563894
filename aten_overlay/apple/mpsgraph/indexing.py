"""Gathers and scatters. Source: Apple's documentation of MPSGraph (gather, scatter and indexing operations)."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph.meanings import means
from porter.errors import PorterError

_ADD, _MUL, _MIN, _MAX, _SET = 0, 2, 4, 5, 6  # MPSGraphScatterMode
_REDUCE = {_ADD: "sum", _MUL: "prod", _MIN: "amin", _MAX: "amax"}


def _scattered(data: Tensor, axis: int, index: Tensor, updates: Tensor, mode: int) -> Tensor:
    if mode == _SET:
        return data.scatter(axis, index, updates)
    if mode not in _REDUCE:
        raise PorterError("PTR131", f"MPSGraphScatterMode {mode} is not known here", hint="Report it.")
    return data.scatter_reduce(axis, index, updates, _REDUCE[mode], include_self=True)


def _start(shape: list[int], like: Tensor, mode: int) -> Tensor:
    """What a scatter without data starts from."""
    return torch.full(shape, 1 if mode == _MUL else 0, dtype=like.dtype, device=like.device)


@means("gatherAlongAxis:withUpdatesTensor:indicesTensor")
def gather_along(axis: int, updates: Tensor, indices: Tensor) -> Tensor:
    return torch.gather(updates, axis, indices.to(torch.int64))


@means("gatherWithUpdatesTensor:indicesTensor:axis:batchDimensions")
def gather(updates: Tensor, indices: Tensor, axis: int, batch: int) -> Tensor:
    """Whole slices at the indices; without batch dimensions."""
    if batch:
        raise PorterError("PTR131", "a gather with batch dimensions is not known here", hint="Report it.")
    picked = updates.index_select(axis, indices.to(torch.int64).flatten())
    return picked.reshape(*updates.shape[:axis], *indices.shape, *updates.shape[axis + 1 :])


@means("gatherNDWithUpdatesTensor:indicesTensor:batchDimensions")
def gather_nd(updates: Tensor, indices: Tensor, batch: int) -> Tensor:
    if batch:
        raise PorterError("PTR131", "a gather with batch dimensions is not known here", hint="Report it.")
    return updates[tuple(indices.to(torch.int64).unbind(-1))]


@means("scatterAlongAxis:withDataTensor:updatesTensor:indicesTensor:mode")
def scatter_along(axis: int, data: Tensor, updates: Tensor, indices: Tensor, mode: int) -> Tensor:
    return _scattered(data, axis, indices.to(torch.int64), updates, mode)


@means("scatterAlongAxis:withUpdatesTensor:indicesTensor:shape:mode")
def scatter_along_new(axis: int, updates: Tensor, indices: Tensor, shape: list[int], mode: int) -> Tensor:
    return _scattered(_start(shape, updates, mode), axis, indices.to(torch.int64), updates, mode)


def _slices(index: Tensor, updates: Tensor, axis: int) -> Tensor:
    """One index for each slice along an axis, as one for each element."""
    sizes = [-1 if d == axis % updates.ndim else 1 for d in range(updates.ndim)]
    return index.to(torch.int64).reshape(sizes).broadcast_to(updates.shape)


@means("scatterWithDataTensor:updatesTensor:indicesTensor:axis:mode")
def scatter(data: Tensor, updates: Tensor, indices: Tensor, axis: int, mode: int) -> Tensor:
    return _scattered(data, axis, _slices(indices, updates, axis), updates, mode)


@means("scatterWithUpdatesTensor:indicesTensor:shape:axis:mode")
def scatter_new(updates: Tensor, indices: Tensor, shape: list[int], axis: int, mode: int) -> Tensor:
    return _scattered(_start(shape, updates, mode), axis, _slices(indices, updates, axis), updates, mode)


@means("scatterNDWithDataTensor:updatesTensor:indicesTensor:batchDimensions:mode")
def scatter_nd(data: Tensor, updates: Tensor, indices: Tensor, batch: int, mode: int) -> Tensor:
    if batch or mode not in (_ADD, _SET):
        raise PorterError("PTR131", "this form of scatterND is not known here", hint="Report it.")
    if data.device.type == "meta":
        return torch.empty_like(data)
    places = tuple(indices.to(torch.int64).unbind(-1))
    return data.index_put(places, updates, accumulate=mode == _ADD)


@means("scatterNDWithUpdatesTensor:indicesTensor:shape:batchDimensions:mode")
def scatter_nd_new(updates: Tensor, indices: Tensor, shape: list[int], batch: int, mode: int) -> Tensor:
    return scatter_nd(_start(shape, updates, mode), updates, indices, batch, mode)


@means("scatterNDWithUpdatesTensor:indicesTensor:shape:batchDimensions")
def scatter_nd_added(updates: Tensor, indices: Tensor, shape: list[int], batch: int) -> Tensor:
    return scatter_nd_new(updates, indices, shape, batch, _ADD)
