"""Convolutions and their gradients. Source: Apple's documentation of MPSGraph (convolution operations)."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from aten_overlay.apple.mpsgraph.layouts import channels_first, from_channels_first
from aten_overlay.apple.mpsgraph.semantics import compute_gradient, implements, unsupported

_EXPLICIT = 0  # MPSGraphPaddingStyle
_OIHW, _HWIO, _OIDHW, _DHWIO = 2, 3, 9, 10  # MPSGraphTensorNamedDataLayout


def _weights(weights: Tensor, layout: int) -> Tensor:
    """The weights with the features first: of the result, then of the source."""
    if layout in (_OIHW, _OIDHW):
        return weights
    if layout not in (_HWIO, _DHWIO):
        raise unsupported(f"weights layout {layout}")
    last = weights.ndim - 1
    return weights.permute(last, last - 1, *range(last - 1))


def _explicit(d: Any) -> None:
    if d.paddingStyle != _EXPLICIT:
        raise unsupported(f"MPSGraphPaddingStyle {d.paddingStyle} of a convolution")


def _plane(source: Tensor, weights: Tensor, d: Any) -> Tensor:
    _explicit(d)
    edges = (d.paddingLeft, d.paddingRight, d.paddingTop, d.paddingBottom)
    made = F.conv2d(
        F.pad(channels_first(source, d.dataLayout), edges), _weights(weights, d.weightsLayout),
        stride=(d.strideInY, d.strideInX), dilation=(d.dilationRateInY, d.dilationRateInX), groups=d.groups,
    )  # fmt: skip
    return from_channels_first(made, d.dataLayout)


def _volume(source: Tensor, weights: Tensor, d: Any) -> Tensor:
    _explicit(d)
    edges = (d.paddingLeft, d.paddingRight, d.paddingTop, d.paddingBottom, d.paddingFront, d.paddingBack)
    made = F.conv3d(
        F.pad(channels_first(source, d.dataLayout), edges), _weights(weights, d.weightsLayout),
        stride=(d.strideInZ, d.strideInY, d.strideInX),
        dilation=(d.dilationRateInZ, d.dilationRateInY, d.dilationRateInX), groups=d.groups,
    )  # fmt: skip
    return from_channels_first(made, d.dataLayout)


def _depthwise(source: Tensor, weights: Tensor, d: Any) -> Tensor:
    """Each channel by itself; of the last four dimensions one counts the channels, the others are space."""
    _explicit(d)
    x, w = source.movedim(d.channelDimensionIndex, -4), weights.movedim(d.channelDimensionIndex, -4)
    batch = x.reshape(-1, *x.shape[-4:])
    edges = [size for pair in reversed(list(zip(*[iter(d.paddingValues)] * 2, strict=True))) for size in pair]
    made = F.conv3d(
        F.pad(batch, edges), w.unsqueeze(1), stride=d.strides, dilation=d.dilationRates, groups=x.shape[-4]
    )  # fmt: skip
    return made.reshape(*x.shape[:-4], *made.shape[1:]).movedim(-4, d.channelDimensionIndex)


def _family(name: str, convolved: Any, descriptor: str) -> None:
    """The operation, and its gradients by the source and by the weights: it is linear in each."""

    @implements(f"{name}WithSourceTensor:weightsTensor:descriptor")
    def forward(source: Tensor, weights: Tensor, d: Any) -> Tensor:
        return convolved(source, weights, d)

    @implements(f"{name}DataGradientWithIncomingGradientTensor:weightsTensor:outputShape:{descriptor}")
    def data_gradient(gradient: Tensor, weights: Tensor, shape: list[int], d: Any) -> Tensor:
        return compute_gradient(
            lambda x: _as_far(convolved(x, weights, d), gradient), _zeros(shape, gradient), gradient
        )

    @implements(f"{name}WeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:{descriptor}")
    def weights_gradient(gradient: Tensor, source: Tensor, shape: list[int], d: Any) -> Tensor:
        return compute_gradient(lambda w: _as_far(convolved(source, w, d), gradient), _zeros(shape, gradient), gradient)


def _as_far(result: Tensor, gradient: Tensor) -> Tensor:
    """The part of a result that has a gradient: the source's shape may leave room for more."""
    return result[tuple(slice(size) for size in gradient.shape)]


def _zeros(shape: list[int], like: Tensor) -> Tensor:
    return torch.zeros(shape, dtype=like.dtype, device=like.device)


_family("convolution2D", _plane, "forwardConvolutionDescriptor")
_family("convolution3D", _volume, "forwardConvolutionDescriptor")
_family("depthwiseConvolution3D", _depthwise, "descriptor")
