"""One-hot tensors and losses. Source: Apple's documentation of MPSGraph (one-hot and loss operations)."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph.meanings import gradient_at, means, not_known
from aten_overlay.apple.mpsgraph.types import MPS, torch_type

_SUM, _MEAN = 1, 2  # MPSGraphLossReductionType
_FLOAT = MPS[torch.float32]


@means("oneHotWithIndicesTensor:depth:axis:dataType:onValue:offValue")
def one_hot(indices: Tensor, depth: int, axis: int, code: int, on: float = 1.0, off: float = 0.0) -> Tensor:
    """A new axis; an index beyond it is nowhere."""
    where = indices.unsqueeze(axis) == torch.arange(depth, device=indices.device).reshape(
        [depth if d == axis % (indices.ndim + 1) else 1 for d in range(indices.ndim + 1)]
    )
    return torch.where(where, on, off).to(torch_type(code))


@means("oneHotWithIndicesTensor:depth:dataType:onValue:offValue")
def one_hot_last(indices: Tensor, depth: int, code: int, on: float, off: float) -> Tensor:
    return one_hot(indices, depth, -1, code, on, off)


@means("oneHotWithIndicesTensor:depth:axis:dataType")
def one_hot_of_type(indices: Tensor, depth: int, axis: int, code: int) -> Tensor:
    return one_hot(indices, depth, axis, code)


@means("oneHotWithIndicesTensor:depth:dataType")
def one_hot_last_of_type(indices: Tensor, depth: int, code: int) -> Tensor:
    return one_hot(indices, depth, -1, code)


@means("oneHotWithIndicesTensor:depth:axis")
def one_hot_float(indices: Tensor, depth: int, axis: int) -> Tensor:
    return one_hot(indices, depth, axis, _FLOAT)


@means("oneHotWithIndicesTensor:depth")
def one_hot_last_float(indices: Tensor, depth: int) -> Tensor:
    return one_hot(indices, depth, -1, _FLOAT)


@means("softMaxCrossEntropyWithSourceTensor:labelsTensor:axis:reductionType")
def cross_entropy(source: Tensor, labels: Tensor, axis: int, reduction: int) -> Tensor:
    """A scalar: the loss of every row along the axis, summed or averaged. Raises PTR131 where it is not reduced.

    The shape of the losses before that is not documented.
    """
    if reduction not in (_SUM, _MEAN):
        raise not_known(f"MPSGraphLossReductionType {reduction}, whose result has no documented shape,")
    rows = -(labels.to(source.dtype) * torch.log_softmax(source, axis)).sum(axis)
    return rows.sum() if reduction == _SUM else rows.mean()


@means("softMaxCrossEntropyGradientWithIncomingGradientTensor:sourceTensor:labelsTensor:axis:reductionType")
def cross_entropy_gradient(gradient: Tensor, source: Tensor, labels: Tensor, axis: int, reduction: int) -> Tensor:
    """By the source."""
    return gradient_at(lambda x: cross_entropy(x, labels, axis, reduction), source, gradient.reshape(()))
