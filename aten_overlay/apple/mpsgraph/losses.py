"""One-hot tensors and losses. Source: Apple's documentation of MPSGraph (one-hot and loss operations)."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph.semantics import compute_gradient, implements, unsupported
from aten_overlay.apple.mpsgraph.types import MPS, torch_type

_SUM, _MEAN = 1, 2  # MPSGraphLossReductionType
_FLOAT = MPS[torch.float32]


@implements("oneHotWithIndicesTensor:depth:axis:dataType:onValue:offValue")
def one_hot(indices: Tensor, depth: int, axis: int, code: int, on: float = 1.0, off: float = 0.0) -> Tensor:
    """A new axis; an index beyond it is nowhere."""
    where = indices.unsqueeze(axis) == torch.arange(depth, device=indices.device).reshape(
        [depth if d == axis % (indices.ndim + 1) else 1 for d in range(indices.ndim + 1)]
    )
    return torch.where(where, on, off).to(torch_type(code))


@implements("oneHotWithIndicesTensor:depth:dataType:onValue:offValue")
def one_hot_last(indices: Tensor, depth: int, code: int, on: float, off: float) -> Tensor:
    return one_hot(indices, depth, -1, code, on, off)


@implements("oneHotWithIndicesTensor:depth:axis:dataType")
def one_hot_of_type(indices: Tensor, depth: int, axis: int, code: int) -> Tensor:
    return one_hot(indices, depth, axis, code)


@implements("oneHotWithIndicesTensor:depth:dataType")
def one_hot_last_of_type(indices: Tensor, depth: int, code: int) -> Tensor:
    return one_hot(indices, depth, -1, code)


@implements("oneHotWithIndicesTensor:depth:axis")
def one_hot_float(indices: Tensor, depth: int, axis: int) -> Tensor:
    return one_hot(indices, depth, axis, _FLOAT)


@implements("oneHotWithIndicesTensor:depth")
def one_hot_last_float(indices: Tensor, depth: int) -> Tensor:
    return one_hot(indices, depth, -1, _FLOAT)


@implements("softMaxCrossEntropyWithSourceTensor:labelsTensor:axis:reductionType")
def cross_entropy(source: Tensor, labels: Tensor, axis: int, reduction: int) -> Tensor:
    """A scalar: the loss of every row along the axis, summed or averaged. Raises PTR131 where it is not reduced.

    The shape of the losses before that is not documented.
    """
    if reduction not in (_SUM, _MEAN):
        raise unsupported(f"MPSGraphLossReductionType {reduction}, whose result has no documented shape,")
    rows = -(labels.to(source.dtype) * torch.log_softmax(source, axis)).sum(axis)
    return rows.sum() if reduction == _SUM else rows.mean()


@implements("softMaxCrossEntropyGradientWithIncomingGradientTensor:sourceTensor:labelsTensor:axis:reductionType")
def cross_entropy_gradient(gradient: Tensor, source: Tensor, labels: Tensor, axis: int, reduction: int) -> Tensor:
    """By the source."""
    return compute_gradient(lambda x: cross_entropy(x, labels, axis, reduction), source, gradient.reshape(()))
