"""Resizing and sampling of images. Source: Apple's documentation of MPSGraph (resize and sample grid operations)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from aten_overlay.apple.mpsgraph.layouts import channels_first, from_channels_first, rows
from aten_overlay.apple.mpsgraph.semantics import compute_gradient, implements, unsupported
from aten_overlay.apple.mpsgraph.types import Unknown

_NEAREST, _BILINEAR = 0, 1  # MPSGraphResizeMode
_CONSTANT, _REFLECT, _SYMMETRIC, _CLAMP, _ZERO = 0, 1, 2, 3, 4  # MPSGraphPaddingMode
_TO_EVEN = 4


def _to_odd(x: Tensor) -> Tensor:
    down = torch.floor(x)
    halfway = torch.where(down % 2 == 0, down + 1, down)
    return torch.where(x - down == 0.5, halfway, torch.round(x))


# MPSGraphResizeNearestRoundingMode
_ROUNDED: dict[int, Callable[[Tensor], Tensor]] = {
    0: lambda x: torch.floor(x + 0.5),
    1: lambda x: torch.ceil(x - 0.5),
    2: torch.ceil,
    3: torch.floor,
    _TO_EVEN: torch.round,
    5: _to_odd,
}


@dataclass(frozen=True)
class _Aligned:
    """Where a result's pixels lie in the source, from the two sizes."""

    center: bool
    corners: bool

    def coordinates(self, axis: int, source: int, result: int) -> Tensor:
        at = torch.arange(result, dtype=torch.float32)
        if self.corners:
            return at * ((source - 1) / (result - 1) if result > 1 else 0)
        scale = torch.tensor(source / result, dtype=torch.float32)
        return (at + 0.5) * scale - 0.5 if self.center else at * scale


@dataclass(frozen=True)
class _Scaled:
    """Where they lie by `result = source * scale + offset`: the scales of height and width, then the offsets."""

    scale_offset: Tensor

    def coordinates(self, axis: int, source: int, result: int) -> Tensor:
        scale, offset = self.scale_offset[axis], self.scale_offset[2 + axis]
        return (torch.arange(result, dtype=torch.float32) - offset) / scale


def _resized(images: Tensor, size: list[int], where: _Aligned | _Scaled, layout: int, rounding: int | None) -> Tensor:
    """By the nearest pixel with a rounding mode, else bilinear; beyond the edge lies the edge."""
    made, first = images, rows(layout) % images.ndim
    for axis in (0, 1):
        source = images.shape[first + axis]
        at = where.coordinates(axis, source, size[axis])
        if rounding is not None:
            index = _ROUNDED[rounding](at).clamp(0, source - 1).to(torch.int64)
            made = made.index_select(first + axis, index)
        else:
            made = _between(made, first + axis, at.clamp(0, source - 1))
    return made.to(images.dtype)


def _between(x: Tensor, dimension: int, at: Tensor) -> Tensor:
    low = torch.floor(at).to(torch.int64)
    high = (low + 1).clamp(max=x.shape[dimension] - 1)
    share = (at - low).reshape([-1 if d == dimension else 1 for d in range(x.ndim)])
    wide = x if x.dtype is torch.float64 else x.to(torch.float32)
    return wide.index_select(dimension, low) * (1 - share) + wide.index_select(dimension, high) * share


def _forward(
    images: Tensor, size: list[int] | Tensor, where: _Aligned | _Scaled, layout: int, rounding: int | None
) -> Tensor | Unknown:
    if isinstance(size, Tensor) and size.device.type == "meta":
        return Unknown(images.dtype)
    wanted = [int(v) for v in size]
    if images.device.type == "meta":
        first = rows(layout) % images.ndim
        return images.new_empty([*images.shape[:first], *wanted, *images.shape[first + 2 :]])
    return _resized(images, wanted, where, layout, rounding)


def _backward(gradient: Tensor, like: Tensor, where: _Aligned | _Scaled, layout: int, rounding: int | None) -> Tensor:
    if gradient.device.type == "meta" or like.device.type == "meta":
        return torch.empty_like(like, device="meta")
    first = rows(layout) % gradient.ndim
    size = list(gradient.shape[first : first + 2])
    return compute_gradient(lambda x: _resized(x, size, where, layout, rounding), like, gradient)


def _mode(mode: int) -> int | None:
    """The nearest of a plain resize rounds half a pixel up, as rounding mode 0 does."""
    if mode not in (_NEAREST, _BILINEAR):
        raise unsupported(f"MPSGraphResizeMode {mode}")
    return 0 if mode == _NEAREST else None


@implements(
    "resizeTensor:size:mode:centerResult:alignCorners:layout",
    "resizeTensor:sizeTensor:mode:centerResult:alignCorners:layout",
)
def resize(
    images: Tensor, size: list[int] | Tensor, mode: int, center: bool, align: bool, layout: int
) -> Tensor | Unknown:
    return _forward(images, size, _Aligned(center, align), layout, _mode(mode))


@implements("resizeWithGradientTensor:input:mode:centerResult:alignCorners:layout")
def resize_gradient(gradient: Tensor, like: Tensor, mode: int, center: bool, align: bool, layout: int) -> Tensor:
    return _backward(gradient, like, _Aligned(center, align), layout, _mode(mode))


@implements("resizeNearestWithTensor:sizeTensor:nearestRoundingMode:centerResult:alignCorners:layout")
def nearest(images: Tensor, size: Tensor, rounding: int, center: bool, align: bool, layout: int) -> Tensor | Unknown:
    return _forward(images, size, _Aligned(center, align), layout, rounding)


@implements("resizeNearestWithTensor:sizeTensor:scaleOffsetTensor:nearestRoundingMode:layout")
def nearest_scaled(images: Tensor, size: Tensor, scale: Tensor, rounding: int, layout: int) -> Tensor | Unknown:
    return _forward(images, size, _Scaled(scale), layout, rounding)


@implements("resizeBilinearWithTensor:sizeTensor:centerResult:alignCorners:layout")
def bilinear(images: Tensor, size: Tensor, center: bool, align: bool, layout: int) -> Tensor | Unknown:
    return _forward(images, size, _Aligned(center, align), layout, None)


@implements("resizeBilinearWithTensor:sizeTensor:scaleOffsetTensor:layout")
def bilinear_scaled(images: Tensor, size: Tensor, scale: Tensor, layout: int) -> Tensor | Unknown:
    return _forward(images, size, _Scaled(scale), layout, None)


@implements("resizeNearestWithGradientTensor:input:nearestRoundingMode:centerResult:alignCorners:layout")
def nearest_gradient(gradient: Tensor, like: Tensor, rounding: int, center: bool, align: bool, layout: int) -> Tensor:
    return _backward(gradient, like, _Aligned(center, align), layout, rounding)


@implements("resizeNearestWithGradientTensor:input:scaleOffsetTensor:nearestRoundingMode:layout")
def nearest_gradient_scaled(gradient: Tensor, like: Tensor, scale: Tensor, rounding: int, layout: int) -> Tensor:
    return _backward(gradient, like, _Scaled(scale), layout, rounding)


@implements("resizeBilinearWithGradientTensor:input:centerResult:alignCorners:layout")
def bilinear_gradient(gradient: Tensor, like: Tensor, center: bool, align: bool, layout: int) -> Tensor:
    return _backward(gradient, like, _Aligned(center, align), layout, None)


@implements("resizeBilinearWithGradientTensor:input:scaleOffsetTensor:layout")
def bilinear_gradient_scaled(gradient: Tensor, like: Tensor, scale: Tensor, layout: int) -> Tensor:
    return _backward(gradient, like, _Scaled(scale), layout, None)


@implements(
    "sampleGridWithSourceTensor:coordinateTensor:layout:normalizeCoordinates:relativeCoordinates:alignCorners:"
    "paddingMode:samplingMode:constantValue"
)
def sample_grid(
    source: Tensor, grid: Tensor, layout: int, normalize: bool, relative: bool, align: bool, padding: int,
    mode: int, value: float,
) -> Tensor:  # fmt: skip
    if mode != _BILINEAR:
        raise unsupported("a grid's nearest sample without a rounding mode")
    return _sampled(source, grid, layout, (normalize, relative, align), _beyond(padding, align, value), "bilinear")


@implements(
    "sampleGridWithSourceTensor:coordinateTensor:layout:normalizeCoordinates:relativeCoordinates:alignCorners:"
    "paddingMode:nearestRoundingMode:constantValue"
)
def sample_grid_nearest(
    source: Tensor, grid: Tensor, layout: int, normalize: bool, relative: bool, align: bool, padding: int,
    rounding: int, value: float,
) -> Tensor:  # fmt: skip
    if rounding != _TO_EVEN:
        raise unsupported(f"MPSGraphResizeNearestRoundingMode {rounding} of a grid's samples")
    return _sampled(source, grid, layout, (normalize, relative, align), _beyond(padding, align, value), "nearest")


def _beyond(padding: int, align: bool, value: float) -> str:
    """What lies outside of the source, as torch names it: it mirrors at a pixel's center or at its edge."""
    if padding == _ZERO or (padding == _CONSTANT and value == 0):
        return "zeros"
    if padding == _CLAMP:
        return "border"
    if padding == (_REFLECT if align else _SYMMETRIC):
        return "reflection"
    raise unsupported(f"MPSGraphPaddingMode {padding} of a grid's samples")


def _sampled(
    source: Tensor, grid: Tensor, layout: int, flags: tuple[bool, bool, bool], padding: str, mode: str
) -> Tensor:
    """A coordinate is (x, y), in -1 to 1 across the source."""
    normalize, relative, align = flags
    if not normalize or relative:
        raise unsupported("a grid of coordinates in pixels, or relative ones")
    x = channels_first(source, layout).to(torch.float32)
    made = F.grid_sample(x, grid.to(torch.float32), mode, padding, align_corners=align)
    return from_channels_first(made, layout).to(source.dtype)
