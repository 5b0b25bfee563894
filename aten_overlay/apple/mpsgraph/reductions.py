"""Reductions, scans and sorts. Source: Apple's documentation of MPSGraph; a reduced dimension stays, with size 1."""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph.semantics import implements

Axes = list[int] | int | None


def _each(x: Tensor, axes: Axes) -> list[int]:
    """The axes, none given meaning all."""
    if axes is None:
        return list(range(x.ndim))
    return sorted({a % max(x.ndim, 1) for a in (axes if isinstance(axes, list) else [axes])})


def _reduction(name: str, function: Callable[[Tensor, list[int]], Tensor]) -> None:
    @implements(f"reduction{name}WithTensor:axis", f"reduction{name}WithTensor:axes")
    def implementation(x: Tensor, axes: Axes) -> Tensor:
        each = _each(x, axes)
        return function(x, each) if each and x.ndim else x


def _one_by_one(function: Callable[[Tensor, int], Tensor]) -> Callable[[Tensor, list[int]], Tensor]:
    def reduce(x: Tensor, axes: list[int]) -> Tensor:
        for axis in axes:
            x = function(x, axis)
        return x

    return reduce


def _without_nan(fill: float, function: Callable[[Tensor, list[int]], Tensor]) -> Callable[[Tensor, list[int]], Tensor]:
    """Metal's own maximum and minimum take the number beside a NaN; of nothing but NaN they are NaN."""

    def reduce(x: Tensor, axes: list[int]) -> Tensor:
        if not x.dtype.is_floating_point:
            return function(x, axes)
        made = function(torch.where(x.isnan(), torch.full_like(x, fill), x), axes)
        return torch.where(x.isnan().all(dim=axes, keepdim=True), torch.nan, made)

    return reduce


def _sum(x: Tensor, axes: list[int]) -> Tensor:
    """In the type of the elements; truth values are counted."""
    return torch.sum(x, axes, keepdim=True).to(torch.int32 if x.dtype is torch.bool else x.dtype)


_reduction("Sum", _sum)
_reduction("Product", _one_by_one(lambda x, axis: torch.prod(x, axis, keepdim=True).to(x.dtype)))
_reduction("Maximum", _without_nan(-torch.inf, lambda x, axes: torch.amax(x, axes, keepdim=True)))
_reduction("Minimum", _without_nan(torch.inf, lambda x, axes: torch.amin(x, axes, keepdim=True)))
_reduction("MaximumPropagateNaN", lambda x, axes: torch.amax(x, axes, keepdim=True))
_reduction("MinimumPropagateNaN", lambda x, axes: torch.amin(x, axes, keepdim=True))
_reduction("And", _one_by_one(lambda x, axis: torch.all(x, axis, keepdim=True).to(x.dtype)))
_reduction("Or", _one_by_one(lambda x, axis: torch.any(x, axis, keepdim=True).to(x.dtype)))


@implements("reductionArgMaximumWithTensor:axis")
def arg_maximum(x: Tensor, axis: int) -> Tensor:
    return torch.argmax(x, axis, keepdim=True).to(torch.int32)


@implements("reductionArgMinimumWithTensor:axis")
def arg_minimum(x: Tensor, axis: int) -> Tensor:
    return torch.argmin(x, axis, keepdim=True).to(torch.int32)


@implements("meanOfTensor:axes")
def mean(x: Tensor, axes: list[int]) -> Tensor:
    each = _each(x, axes or None)
    return torch.mean(x, each, keepdim=True) if each else x


@implements("varianceOfTensor:axes")
def variance(x: Tensor, axes: list[int]) -> Tensor:
    each = _each(x, axes or None)
    return torch.var(x, each, correction=0, keepdim=True) if each else torch.zeros_like(x)


@implements("varianceOfTensor:meanTensor:axes")
def variance_of_mean(x: Tensor, middle: Tensor, axes: list[int]) -> Tensor:
    return torch.mean((x - middle) ** 2, _each(x, axes), keepdim=True)


@implements("softMaxWithTensor:axis")
def softmax(x: Tensor, axis: int) -> Tensor:
    return torch.softmax(x, axis)


@implements("softMaxGradientWithIncomingGradient:sourceTensor:axis")
def softmax_gradient(gradient: Tensor, source: Tensor, axis: int) -> Tensor:
    value = torch.softmax(source, axis)
    return value * (gradient - torch.sum(gradient * value, axis, keepdim=True))


def _cumulative(name: str, function: Callable[[Tensor, int], Tensor], start: Callable[[torch.dtype], float]) -> None:
    """A scan; exclusive, an element's own value is left out, and the first result is `start`."""

    @implements(f"cumulative{name}WithTensor:axis", f"cumulative{name}WithTensor:axis:exclusive:reverse")
    def implementation(x: Tensor, axis: int, exclusive: bool = False, reverse: bool = False) -> Tensor:
        given = x.flip(axis) if reverse else x
        made = function(given, axis).to(x.dtype)
        if exclusive and x.shape[axis]:
            first = torch.full_like(made.narrow(axis, 0, 1), start(x.dtype))
            made = torch.cat((first, made.narrow(axis, 0, x.shape[axis] - 1)), axis)
        return made.flip(axis) if reverse else made


def _least(dtype: torch.dtype) -> float:
    return -torch.inf if dtype.is_floating_point else torch.iinfo(dtype).min


def _greatest(dtype: torch.dtype) -> float:
    return torch.inf if dtype.is_floating_point else torch.iinfo(dtype).max


_cumulative("Sum", torch.cumsum, lambda _: 0)
_cumulative("Product", torch.cumprod, lambda _: 1)
_cumulative("Maximum", lambda x, axis: torch.cummax(x, axis).values, _least)
_cumulative("Minimum", lambda x, axis: torch.cummin(x, axis).values, _greatest)


def _sorted(x: Tensor, axis: int | Tensor, descending: bool) -> torch.return_types.sort:
    return torch.sort(x, stable=True, dim=int(axis), descending=descending)


@implements("sortWithTensor:axis", "sortWithTensor:axisTensor")
def sort(x: Tensor, axis: int | Tensor) -> Tensor:
    return _sorted(x, axis, descending=False).values


@implements("sortWithTensor:axis:descending", "sortWithTensor:axisTensor:descending")
def sort_in_order(x: Tensor, axis: int | Tensor, descending: bool) -> Tensor:
    return _sorted(x, axis, descending).values


@implements("argSortWithTensor:axis", "argSortWithTensor:axisTensor")
def arg_sort(x: Tensor, axis: int | Tensor) -> Tensor:
    return _sorted(x, axis, descending=False).indices.to(torch.int32)


@implements("argSortWithTensor:axis:descending", "argSortWithTensor:axisTensor:descending")
def arg_sort_in_order(x: Tensor, axis: int | Tensor, descending: bool) -> Tensor:
    return _sorted(x, axis, descending).indices.to(torch.int32)


@implements("topKWithSourceTensor:k")
def top_k(x: Tensor, k: int) -> list[Tensor]:
    return top_k_along(x, -1, k)


@implements("topKWithSourceTensor:axis:k")
def top_k_along(x: Tensor, axis: int, k: int) -> list[Tensor]:
    values, indices = torch.topk(x, k, axis)
    return [values, indices.to(torch.int32)]
