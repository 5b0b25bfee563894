"""Padding, convolution, pooling and normalisation. Source: Apple's documentation of MPSGraph."""

# mypy: disable-error-code="no-untyped-call, no-any-return"

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from aten_overlay.apple.mpsgraph.meanings import means
from porter.errors import PorterError

_NCHW, _NHWC, _OIHW, _HWIO = 0, 1, 2, 3  # MPSGraphTensorNamedDataLayout
_CONSTANT, _REFLECT, _CLAMP, _ZERO = 0, 1, 3, 4  # MPSGraphPaddingMode
_MODES = {_REFLECT: "reflect", _CLAMP: "replicate"}


def _unknown(what: str) -> PorterError:
    return PorterError("PTR131", f"{what} is not known here", hint="Report it with the operator.")


@means("padTensor:withPaddingMode:leftPadding:rightPadding:constantValue")
def pad(x: Tensor, mode: int, left: list[int], right: list[int], value: float) -> Tensor:
    sizes = [size for pair in zip(reversed(left), reversed(right), strict=True) for size in pair]
    if mode in (_CONSTANT, _ZERO):
        return F.pad(x, sizes, value=value if mode == _CONSTANT else 0)
    if mode not in _MODES:
        raise _unknown(f"MPSGraphPaddingMode {mode}")
    for axis, (before, after) in enumerate(zip(left, right, strict=True)):
        if before or after:
            x = _padded(x, axis, before, after, mode)
    return x


def _padded(x: Tensor, axis: int, before: int, after: int, mode: int) -> Tensor:
    size = x.shape[axis]
    at = torch.arange(-before, size + after, device=x.device)
    index = at.clamp(0, size - 1) if mode == _CLAMP else (size - 1 - (size - 1 - at.abs()).abs())
    return x.index_select(axis, index)


@means("padGradientWithIncomingGradientTensor:sourceTensor:paddingMode:leftPadding:rightPadding")
def pad_gradient(gradient: Tensor, source: Tensor, mode: int, left: list[int], right: list[int]) -> Tensor:
    return _gradient(lambda x: pad(x, mode, left, right, 0.0), source, gradient)


def _gradient(function: Any, source: Tensor, incoming: Tensor) -> Tensor:
    """The gradient of a function at a point, by autograd on the CPU."""
    if source.device.type == "meta":
        return torch.empty_like(source)
    with torch.enable_grad():
        at = source.detach().clone().requires_grad_()
        return torch.autograd.grad(function(at), at, incoming.to(source.dtype))[0]


def _plane(x: Tensor, layout: int) -> Tensor:
    if layout not in (_NCHW, _NHWC):
        raise _unknown(f"data layout {layout}")
    return x.permute(0, 3, 1, 2) if layout == _NHWC else x


def _from_plane(x: Tensor, layout: int) -> Tensor:
    return x.permute(0, 2, 3, 1) if layout == _NHWC else x


def _convolved(source: Tensor, weights: Tensor, d: Any) -> Tensor:
    x = F.pad(_plane(source, d.dataLayout), (d.paddingLeft, d.paddingRight, d.paddingTop, d.paddingBottom))
    w = weights.permute(3, 2, 0, 1) if d.weightsLayout == _HWIO else weights
    made = F.conv2d(
        x, w, stride=(d.strideInY, d.strideInX), dilation=(d.dilationRateInY, d.dilationRateInX), groups=d.groups
    )
    return _from_plane(made, d.dataLayout)


@means("convolution2DWithSourceTensor:weightsTensor:descriptor")
def convolution(source: Tensor, weights: Tensor, descriptor: Any) -> Tensor:
    return _convolved(source, weights, descriptor)


@means("convolution2DDataGradientWithIncomingGradientTensor:weightsTensor:outputShape:forwardConvolutionDescriptor")
def convolution_data_gradient(gradient: Tensor, weights: Tensor, shape: list[int], descriptor: Any) -> Tensor:
    start = torch.zeros(shape, dtype=gradient.dtype, device=gradient.device)
    return _gradient(lambda x: _convolved(x, weights, descriptor), start, gradient)


@means("convolution2DWeightsGradientWithIncomingGradientTensor:sourceTensor:outputShape:forwardConvolutionDescriptor")
def convolution_weights_gradient(gradient: Tensor, source: Tensor, shape: list[int], descriptor: Any) -> Tensor:
    start = torch.zeros(shape, dtype=gradient.dtype, device=gradient.device)
    return _gradient(lambda w: _convolved(source, w, descriptor), start, gradient)


def _window(d: Any) -> dict[str, Any]:
    return {
        "kernel_size": (d.kernelHeight, d.kernelWidth),
        "stride": (d.strideInY, d.strideInX),
        "ceil_mode": bool(d.ceilMode),
    }


def _edges(d: Any) -> tuple[int, int, int, int]:
    return d.paddingLeft, d.paddingRight, d.paddingTop, d.paddingBottom


def _max_pooled(source: Tensor, d: Any) -> tuple[Tensor, Tensor]:
    x = _plane(source, d.dataLayout)
    values, indices = F.max_pool2d(
        x, padding=(d.paddingTop, d.paddingLeft), dilation=(d.dilationRateInY, d.dilationRateInX), return_indices=True,
        **_window(d),
    )  # fmt: skip
    return _from_plane(values, d.dataLayout), _from_plane(indices, d.dataLayout)


@means("maxPooling2DWithSourceTensor:descriptor")
def max_pooling(source: Tensor, descriptor: Any) -> Tensor:
    return _max_pooled(source, descriptor)[0]


@means("maxPooling2DReturnIndicesWithSourceTensor:descriptor")
def max_pooling_indices(source: Tensor, descriptor: Any) -> list[Tensor]:
    values, indices = _max_pooled(source, descriptor)
    return [values, indices.to(torch.int32)]


@means("maxPooling2DGradientWithGradientTensor:sourceTensor:descriptor")
def max_pooling_gradient(gradient: Tensor, source: Tensor, descriptor: Any) -> Tensor:
    return _gradient(lambda x: max_pooling(x, descriptor), source, gradient)


@means("avgPooling2DWithSourceTensor:descriptor")
def average_pooling(source: Tensor, descriptor: Any) -> Tensor:
    d = descriptor
    x = _plane(source, d.dataLayout)
    made = F.avg_pool2d(
        x, padding=(d.paddingTop, d.paddingLeft), count_include_pad=bool(d.includeZeroPadToAverage), **_window(d)
    )
    return _from_plane(made, d.dataLayout)


@means("avgPooling2DGradientWithGradientTensor:sourceTensor:descriptor")
def average_pooling_gradient(gradient: Tensor, source: Tensor, descriptor: Any) -> Tensor:
    return _gradient(lambda x: average_pooling(x, descriptor), source, gradient)


@means("normalizationWithTensor:meanTensor:varianceTensor:gammaTensor:betaTensor:epsilon")
def normalization(
    x: Tensor, mean: Tensor, variance: Tensor, gamma: Tensor | None, beta: Tensor | None, epsilon: float
) -> Tensor:
    made = (x - mean) * torch.rsqrt(variance + epsilon)
    made = made if gamma is None else made * gamma
    return (made if beta is None else made + beta).to(x.dtype)


@means("normalizationBetaGradientWithIncomingGradientTensor:sourceTensor:reductionAxes")
def normalization_beta_gradient(gradient: Tensor, source: Tensor, axes: list[int]) -> Tensor:
    return torch.sum(gradient, axes, keepdim=True)


@means(
    "normalizationGammaGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:reductionAxes:epsilon"
)
def normalization_gamma_gradient(
    gradient: Tensor, source: Tensor, mean: Tensor, variance: Tensor, axes: list[int], epsilon: float
) -> Tensor:
    return torch.sum(gradient * (source - mean) * torch.rsqrt(variance + epsilon), axes, keepdim=True)


@means(
    "normalizationGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:gammaTensor:"
    "gammaGradientTensor:betaGradientTensor:reductionAxes:epsilon"
)
def normalization_gradient(
    gradient: Tensor, source: Tensor, mean: Tensor, variance: Tensor, gamma: Tensor | None,
    gamma_gradient: Tensor | None, beta_gradient: Tensor | None, axes: list[int], epsilon: float,
) -> Tensor:  # fmt: skip
    count = 1
    for axis in axes:
        count *= source.shape[axis]
    scale = torch.rsqrt(variance + epsilon)
    normal = (source - mean) * scale
    beta = torch.sum(gradient, axes, keepdim=True) if beta_gradient is None else beta_gradient
    slope = torch.sum(gradient * normal, axes, keepdim=True) if gamma_gradient is None else gamma_gradient
    made = scale * (gradient - (beta + normal * slope) / count)
    return made if gamma is None else made * gamma
