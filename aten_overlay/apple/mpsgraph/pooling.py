"""Maximum and average over windows. Source: Apple's documentation of MPSGraph (pooling operations)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from aten_overlay.apple.mpsgraph import layouts
from aten_overlay.apple.mpsgraph.semantics import compute_gradient, implements, unsupported
from aten_overlay.apple.mpsgraph.types import torch_type

_EXPLICIT = 0  # MPSGraphPaddingStyle
_NONE, _GLOBAL, _LOCAL = 0, (1, 2, 3, 4), (5, 6, 7, 8)  # MPSGraphPoolingReturnIndicesMode, flattening 1 to 4 dimensions


@dataclass(frozen=True)
class _Axis:
    """The windows along one dimension, in elements."""

    dimension: int
    size: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def span(self) -> int:
        return self.dilation * (self.size - 1) + 1


def _plane_axes(d: Any) -> list[_Axis]:
    rows = layouts.rows(d.dataLayout)
    height = (d.kernelHeight, d.strideInY, d.dilationRateInY, d.paddingTop, d.paddingBottom)
    width = (d.kernelWidth, d.strideInX, d.dilationRateInX, d.paddingLeft, d.paddingRight)
    return [_Axis(rows, *height), _Axis(rows + 1, *width)]


def _four_axes(d: Any) -> list[_Axis]:
    """The last four dimensions."""
    each = zip(d.kernelSizes, d.strides, d.dilationRates, d.paddingValues[::2], d.paddingValues[1::2], strict=True)
    return [_Axis(i - 4, *values) for i, values in enumerate(each)]


def _axes(d: Any) -> list[_Axis]:
    if d.paddingStyle != _EXPLICIT:
        raise unsupported(f"MPSGraphPaddingStyle {d.paddingStyle} of a pooling")
    return _four_axes(d) if d.name == "MPSGraphPooling4DOpDescriptor" else _plane_axes(d)


def _edges(x: Tensor, axes: list[_Axis], ceil: bool) -> list[int]:
    """Padding as torch wants it; rounding up, the last window may reach beyond the padding."""
    edges = [0] * (2 * x.ndim)
    for axis in axes:
        at = 2 * (x.ndim - 1 - axis.dimension % x.ndim)
        free = x.shape[axis.dimension] + axis.before + axis.after - axis.span
        missing = -free % axis.stride if ceil else 0
        edges[at : at + 2] = [axis.before, axis.after + missing]
    return edges


def _windows(x: Tensor, axes: list[_Axis], ceil: bool, fill: float) -> Tensor:
    """The elements of each window in one more, last dimension."""
    made = F.pad(x, _edges(x, axes, ceil), value=fill)
    for axis in axes:
        made = made.unfold(axis.dimension % x.ndim, axis.span, axis.stride)[..., :: axis.dilation]
    return made.flatten(x.ndim)


def _lowest(dtype: torch.dtype) -> float:
    return -math.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def _maximum(source: Tensor, d: Any) -> tuple[Tensor, Tensor]:
    """The largest element of each window and its position in it: a NaN, else the first of equals."""
    found = _windows(source, _axes(d), bool(d.ceilMode), _lowest(source.dtype)).max(-1)
    return found.values, found.indices


def _places(source: Tensor, local: Tensor, d: Any) -> Tensor:
    mode = d.returnIndicesMode
    if mode in _LOCAL:
        return local
    if mode not in _GLOBAL or (d.name == "MPSGraphPooling2DOpDescriptor" and d.dataLayout == layouts.NHWC):
        raise unsupported(f"MPSGraphPoolingReturnIndicesMode {mode} of this layout")
    flat = source.shape[-(mode - _GLOBAL[0] + 1) :]
    numbers = torch.arange(flat.numel(), device=source.device).reshape(flat).broadcast_to(source.shape)
    return _windows(numbers, _axes(d), bool(d.ceilMode), -1).gather(-1, local.unsqueeze(-1)).squeeze(-1)


def _average(source: Tensor, d: Any) -> Tensor:
    """Sums over counts: of all elements of a window, those rounded up to as well, or of those that are no padding."""
    axes, ceil = _axes(d), bool(d.ceilMode)
    wide = source if source.is_floating_point() else source.to(torch.float64)
    sums = _windows(wide, axes, ceil, 0).sum(-1)
    if d.includeZeroPadToAverage:
        return (sums / math.prod(axis.size for axis in axes)).to(source.dtype)
    return (sums / _windows(torch.ones_like(wide), axes, ceil, 0).sum(-1)).to(source.dtype)


def _family(name: str) -> None:
    @implements(f"maxPooling{name}WithSourceTensor:descriptor")
    def maximum(source: Tensor, d: Any) -> Tensor:
        return _maximum(source, d)[0]

    @implements(f"maxPooling{name}ReturnIndicesWithSourceTensor:descriptor")
    def maximum_with_indices(source: Tensor, d: Any) -> list[Tensor]:
        values, local = _maximum(source, d)
        return [values, _places(source, local, d).to(torch_type(d.returnIndicesDataType))]

    @implements(f"maxPooling{name}GradientWithGradientTensor:sourceTensor:descriptor")
    def maximum_gradient(gradient: Tensor, source: Tensor, d: Any) -> Tensor:
        return compute_gradient(lambda x: _maximum(x, d)[0], source, gradient)

    @implements(f"maxPooling{name}GradientWithGradientTensor:indicesTensor:outputShape:descriptor")
    def maximum_gradient_at(gradient: Tensor, indices: Tensor, shape: list[int], d: Any) -> Tensor:
        if d.returnIndicesMode not in _GLOBAL:
            raise unsupported(f"a gradient by MPSGraphPoolingReturnIndicesMode {d.returnIndicesMode}")
        count = d.returnIndicesMode - _GLOBAL[0] + 1
        made = torch.zeros(shape, dtype=gradient.dtype, device=gradient.device).flatten(-count)
        positions, values = indices.to(torch.int64).flatten(-count), gradient.flatten(-count)
        return made.scatter_add(-1, positions, values).reshape(shape)

    @implements(f"avgPooling{name}WithSourceTensor:descriptor")
    def average(source: Tensor, d: Any) -> Tensor:
        return _average(source, d)

    @implements(f"avgPooling{name}GradientWithGradientTensor:sourceTensor:descriptor")
    def average_gradient(gradient: Tensor, source: Tensor, d: Any) -> Tensor:
        return compute_gradient(lambda x: _average(x, d), source, gradient)


_family("2D")
_family("4D")
