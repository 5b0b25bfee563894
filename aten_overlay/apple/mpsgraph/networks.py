"""Padding, normalization and attention. Source: Apple's documentation of MPSGraph."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from aten_overlay.apple.mpsgraph.semantics import compute_gradient, implements, unsupported
from aten_overlay.errors import OverlayError

_CONSTANT, _REFLECT, _CLAMP, _ZERO = 0, 1, 3, 4  # MPSGraphPaddingMode
_MODES = {_REFLECT: "reflect", _CLAMP: "replicate"}


@implements("padTensor:withPaddingMode:leftPadding:rightPadding:constantValue")
def pad(x: Tensor, mode: int, left: list[int], right: list[int], value: float) -> Tensor:
    sizes = [size for pair in zip(reversed(left), reversed(right), strict=True) for size in pair]
    if mode in (_CONSTANT, _ZERO):
        return F.pad(x, sizes, value=value if mode == _CONSTANT else 0)
    if mode not in _MODES:
        raise unsupported(f"MPSGraphPaddingMode {mode}")
    for axis, (before, after) in enumerate(zip(left, right, strict=True)):
        if before or after:
            x = _padded(x, axis, before, after, mode)
    return x


def _padded(x: Tensor, axis: int, before: int, after: int, mode: int) -> Tensor:
    size = x.shape[axis]
    at = torch.arange(-before, size + after, device=x.device)
    index = at.clamp(0, size - 1) if mode == _CLAMP else (size - 1 - (size - 1 - at.abs()).abs())
    return x.index_select(axis, index)


@implements("padGradientWithIncomingGradientTensor:sourceTensor:paddingMode:leftPadding:rightPadding")
def pad_gradient(gradient: Tensor, source: Tensor, mode: int, left: list[int], right: list[int]) -> Tensor:
    """Of what was padded, which is the gradient's shape without the padding: host code may give a larger source.

    Raises PTR127 where nothing was, and the padding repeats what was.
    """
    sizes = [size - before - after for size, before, after in zip(gradient.shape, left, right, strict=True)]
    for axis, size in enumerate(sizes):
        if size < 1 and mode in _MODES:
            message = f"all {gradient.shape[axis]} elements along dimension {axis} are padding: none is left to repeat"
            raise OverlayError("PTR127", message, hint="Handle this case in the host code, without the graph.")
    return compute_gradient(lambda x: pad(x, mode, left, right, 0.0), source.new_zeros(sizes), gradient)


@implements("normalizationWithTensor:meanTensor:varianceTensor:gammaTensor:betaTensor:epsilon")
def normalization(
    x: Tensor, mean: Tensor, variance: Tensor, gamma: Tensor | None, beta: Tensor | None, epsilon: float
) -> Tensor:
    made = (x - mean) * torch.rsqrt(variance + epsilon)
    made = made if gamma is None else made * gamma
    return (made if beta is None else made + beta).to(x.dtype)


@implements("normalizationBetaGradientWithIncomingGradientTensor:sourceTensor:reductionAxes")
def normalization_beta_gradient(gradient: Tensor, source: Tensor, axes: list[int]) -> Tensor:
    return torch.sum(gradient, axes, keepdim=True)


@implements(
    "normalizationGammaGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:reductionAxes:epsilon"
)
def normalization_gamma_gradient(
    gradient: Tensor, source: Tensor, mean: Tensor, variance: Tensor, axes: list[int], epsilon: float
) -> Tensor:
    return torch.sum(gradient * (source - mean) * torch.rsqrt(variance + epsilon), axes, keepdim=True)


@implements(
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


@implements("scaledDotProductAttentionWithQueryTensor:keyTensor:valueTensor:maskTensor:scale")
def attention(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """The mask is added to the scaled products."""
    scores = query @ key.mT * scale
    return torch.softmax(scores if mask is None else scores + mask, -1).to(value.dtype) @ value
