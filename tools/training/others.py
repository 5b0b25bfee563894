"""Modules that PyTorch's module database leaves out, with arguments and inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Inputs = tuple[tuple[Any, ...], Mapping[str, Any]]


@dataclass(frozen=True)
class Other:
    """How to make a module, and what it is called with for a type of its numbers."""

    make: Callable[[], nn.Module]
    inputs: Callable[[torch.dtype], tuple[Any, ...]]


class Held(nn.Module):
    """A module around a list or dictionary of modules or parameters, which have no forward."""

    def __init__(self, held: nn.Module, use: Callable[[Any, torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.held = held
        self._use = use

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Whatever the list or dictionary is for."""
        return self._use(self.held, value)


class Pooled(nn.Module):
    """A maximum over windows and its way back, which needs the indices of the maxima."""

    def __init__(self, pool: nn.Module, back: nn.Module) -> None:
        super().__init__()
        self.pool, self.back = pool, back

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Zeros with the maxima where they were."""
        result: torch.Tensor = self.back(*self.pool(value))
        return result


def _floats(*shapes: Sequence[int]) -> Callable[[torch.dtype], tuple[Any, ...]]:
    return lambda dtype: tuple(torch.randn(*shape).to(dtype).requires_grad_() for shape in shapes)


def _one(make: Callable[[], nn.Module], *shapes: Sequence[int]) -> Other:
    return Other(make, _floats(*shapes))


def _classes(dtype: torch.dtype, shape: Sequence[int], below: int, *target: int) -> tuple[Any, ...]:
    return (*_floats(shape)(dtype), torch.randint(below, target))


def _pooled(dimensions: int) -> Other:
    pool = getattr(nn, f"MaxPool{dimensions}d")
    back = getattr(nn, f"MaxUnpool{dimensions}d")
    return _one(lambda: Pooled(pool(2, return_indices=True), back(2)), (2, 3, *[6] * dimensions))


def _bags(dtype: torch.dtype) -> tuple[Any, ...]:
    return torch.randint(9, (7,)), torch.tensor([0, 3, 5])


OTHERS: Mapping[str, tuple[Other, ...]] = {
    "AdaptiveLogSoftmaxWithLoss": (
        Other(lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 20, [5, 10]), lambda d: _classes(d, (6, 8), 20, 6)),
    ),
    "AlphaDropout": (_one(lambda: nn.AlphaDropout(0.4), (4, 9)),),
    "ChannelShuffle": (_one(lambda: nn.ChannelShuffle(2), (2, 6, 4, 4)),),
    "CosineSimilarity": (_one(nn.CosineSimilarity, (4, 9), (4, 9)),),
    "CrossMapLRN2d": (_one(lambda: nn.CrossMapLRN2d(3), (2, 6, 4, 4)),),
    "DataParallel": (_one(lambda: nn.DataParallel(nn.Linear(5, 3)), (4, 5)),),
    "Dropout": (_one(nn.Dropout, (4, 9)), _one(lambda: nn.Dropout(0.3, inplace=True), (4, 9))),
    "Dropout1d": (_one(nn.Dropout1d, (4, 6, 3)),),
    "Dropout2d": (_one(nn.Dropout2d, (4, 6, 3, 3)),),
    "Dropout3d": (_one(nn.Dropout3d, (4, 6, 3, 3, 2)),),
    "EmbeddingBag": tuple(
        Other(lambda mode=mode: nn.EmbeddingBag(9, 4, mode=mode), _bags)  # type: ignore[misc]
        for mode in ("sum", "mean", "max")
    ),
    "FeatureAlphaDropout": (_one(lambda: nn.FeatureAlphaDropout(0.4), (4, 6, 3, 3)),),
    "Flatten": (_one(nn.Flatten, (2, 3, 4)),),
    "Fold": (_one(lambda: nn.Fold((4, 5), (2, 2)), (2, 12, 12)),),
    "Hardsigmoid": (_one(nn.Hardsigmoid, (4, 9)), _one(lambda: nn.Hardsigmoid(inplace=True), (4, 9))),
    "Identity": (_one(nn.Identity, (4, 9)),),
    "LazyBatchNorm1d": (_one(nn.LazyBatchNorm1d, (4, 3, 5)),),
    "LazyBatchNorm2d": (_one(nn.LazyBatchNorm2d, (4, 3, 5, 5)),),
    "LazyBatchNorm3d": (_one(nn.LazyBatchNorm3d, (2, 3, 4, 4, 3)),),
    "LazyInstanceNorm1d": (_one(lambda: nn.LazyInstanceNorm1d(affine=True), (4, 3, 5)),),
    "LazyInstanceNorm2d": (_one(lambda: nn.LazyInstanceNorm2d(affine=True), (4, 3, 5, 5)),),
    "LazyInstanceNorm3d": (_one(lambda: nn.LazyInstanceNorm3d(affine=True), (2, 3, 4, 4, 3)),),
    "LazyLinear": (_one(lambda: nn.LazyLinear(3), (4, 9)),),
    "MaxUnpool1d": (_pooled(1),),
    "MaxUnpool2d": (_pooled(2),),
    "MaxUnpool3d": (_pooled(3),),
    "ModuleDict": (
        _one(lambda: Held(nn.ModuleDict({"a": nn.Linear(5, 5), "b": nn.GELU()}), lambda m, x: m["b"](m["a"](x))),
             (4, 5)),
    ),
    "ModuleList": (
        _one(lambda: Held(nn.ModuleList([nn.Linear(5, 5), nn.ReLU(inplace=True)]), lambda m, x: m[1](m[0](x))), (4, 5)),
    ),
    "NLLLoss2d": (Other(nn.NLLLoss2d, lambda d: _classes(d, (2, 5, 3, 3), 5, 2, 3, 3)),),
    "PairwiseDistance": (_one(nn.PairwiseDistance, (4, 9), (4, 9)),),
    "ParameterDict": (
        _one(lambda: Held(nn.ParameterDict({"w": torch.randn(5, 5)}), lambda p, x: x @ p["w"]), (4, 5)),
    ),
    "ParameterList": (
        _one(lambda: Held(nn.ParameterList([torch.randn(5, 5), torch.randn(5)]), lambda p, x: x @ p[0] + p[1]), (4, 5)),
    ),
    "PixelShuffle": (_one(lambda: nn.PixelShuffle(2), (2, 8, 3, 3)),),
    "PixelUnshuffle": (_one(lambda: nn.PixelUnshuffle(2), (2, 2, 6, 6)),),
    "RReLU": (_one(nn.RReLU, (4, 9)), _one(lambda: nn.RReLU(inplace=True), (4, 9))),
    "Sequential": (
        _one(lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Dropout(0.2),
                                   nn.Flatten(), nn.Linear(64, 5)), (2, 3, 6, 6)),
    ),
    "SyncBatchNorm": (_one(lambda: nn.SyncBatchNorm(3), (4, 3, 5)),),
    "TransformerDecoder": (
        _one(lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2), (5, 2, 8), (6, 2, 8)),
    ),
    "TripletMarginLoss": (_one(nn.TripletMarginLoss, (4, 9), (4, 9), (4, 9)),),
    "TripletMarginWithDistanceLoss": (_one(nn.TripletMarginWithDistanceLoss, (4, 9), (4, 9), (4, 9)),),
    "Unflatten": (_one(lambda: nn.Unflatten(1, (2, 3)), (4, 6)),),
    "Unfold": (_one(lambda: nn.Unfold((2, 2)), (2, 3, 4, 5)),),
    "Upsample": tuple(
        _one(lambda mode=mode: nn.Upsample(scale_factor=2, mode=mode), shape)  # type: ignore[misc]
        for mode, shape in (("nearest", (2, 3, 4)), ("bilinear", (2, 3, 4, 4)), ("bicubic", (2, 3, 4, 4)),
                            ("trilinear", (1, 2, 3, 3, 3)))
    ),
    "UpsamplingBilinear2d": (_one(lambda: nn.UpsamplingBilinear2d(scale_factor=2), (2, 3, 4, 4)),),
    "UpsamplingNearest2d": (_one(lambda: nn.UpsamplingNearest2d(scale_factor=2), (2, 3, 4, 4)),),
}  # fmt: skip
