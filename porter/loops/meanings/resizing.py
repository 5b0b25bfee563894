"""Resizing of images, its gradients, and samples at coordinates. Source: Apple's documentation of MPSGraph."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from porter.core.dtypes import FLOAT
from porter.loops.expressions import Expr, ReductionKind, call_float, cast, index_value, number, select
from porter.loops.graph import Argument, Tensor
from porter.loops.indices import add, both, clamp, equal, integer, is_inside, read_index
from porter.loops.lowering import Element, Indices, as_int, means, refuse

_ROWS = {0: -2, 1: -3, 4: -2, 5: -3, 6: -2}  # MPSGraphTensorNamedDataLayout: NCHW, NHWC, CHW, HWC, HW
_NEAREST, _BILINEAR = 0, 1  # MPSGraphResizeMode
_ALIGNED = "centerResult:alignCorners:layout"
_CONSTANT, _REFLECT, _SYMMETRIC, _CLAMP, _ZERO = 0, 1, 2, 3, 4  # MPSGraphPaddingMode
_TO_EVEN = 4  # MPSGraphResizeNearestRoundingMode
_SAMPLE = "sampleGridWithSourceTensor:coordinateTensor:layout:normalizeCoordinates:relativeCoordinates:alignCorners"


def find_rows(layout: int, rank: int) -> int:
    """The dimension of an image's height; that of its width follows it. Raises PTR345."""
    if layout not in _ROWS:
        raise refuse(f"data layout {layout} of an image")
    return _ROWS[layout] % rank


def _number(value: float) -> Expr:
    return number(value, FLOAT)


_ROUNDED: dict[int, Callable[[Expr], Expr]] = {  # MPSGraphResizeNearestRoundingMode
    0: lambda at: call_float("floor", call_float("addition", at, _number(0.5))),
    1: lambda at: call_float("ceil", call_float("subtraction", at, _number(0.5))),
    2: lambda at: call_float("ceil", at),
    3: lambda at: call_float("floor", at),
    4: lambda at: call_float("rint", at),
}


@dataclass(frozen=True)
class Resize:
    """How a resize samples: `rounding` is None if it is bilinear; `scales` are those of rows and columns, then their
    offsets, if they are given.
    """

    rows: int
    rounding: int | None
    is_centered: bool
    has_aligned_corners: bool
    scales: tuple[float, ...] | None

    def place(self, axis: int, index: Expr, source: int, result: int) -> Expr:
        """Where a result's pixel lies in the source."""
        at = index_value(index, FLOAT)
        if self.scales is not None:
            offset = call_float("subtraction", at, _number(self.scales[2 + axis]))
            return call_float("division", offset, _number(self.scales[axis]))
        if self.has_aligned_corners:
            return call_float("multiplication", at, _number((source - 1) / (result - 1) if result > 1 else 0))
        scale = _number(struct.unpack("f", struct.pack("f", source / result))[0])
        if not self.is_centered:
            return call_float("multiplication", at, scale)
        middle = call_float("multiplication", call_float("addition", at, _number(0.5)), scale)
        return call_float("subtraction", middle, _number(0.5))

    def taps(self, axis: int, index: Expr, source: int, result: int) -> list[tuple[Expr, Expr]]:
        """The source's indices that a result's pixel samples along an axis, and their weights."""
        at = self.place(axis, index, source, result)
        if self.rounding is not None:
            return [(clamp(read_index(_ROUNDED[self.rounding](at)), 0, source - 1), _number(1))]
        at = call_float("minimum", call_float("maximum", at, _number(0)), _number(source - 1))
        low = clamp(read_index(call_float("floor", at)), 0, source - 1)
        share = call_float("subtraction", at, index_value(low, FLOAT))
        high = clamp(add(low, 1), 0, source - 1)
        return [(low, call_float("subtraction", _number(1), share)), (high, share)]


def _read_resize(element: Element, arguments: tuple[Argument, ...]) -> Resize:
    selector = element.node.selector
    given = dict(zip(selector.split(":"), arguments, strict=True))
    rounding: int | None = as_int(given.get("nearestRoundingMode", 0))
    if "Bilinear" in selector or given.get("mode") == _BILINEAR:
        rounding = None
    if rounding is not None and rounding not in _ROUNDED:
        raise refuse(f"MPSGraphResizeNearestRoundingMode {rounding}")
    scales = given.get("scaleOffsetTensor")
    return Resize(
        find_rows(as_int(given["layout"]), len(element.shape)), rounding, bool(given.get("centerResult")),
        bool(given.get("alignCorners")), None if scales is None else _floats(element, scales),
    )  # fmt: skip


def _floats(element: Element, argument: Argument) -> tuple[float, ...]:
    elements = element.of(argument).elements
    if elements is None:
        raise refuse(f"`{element.node.selector}` with scales that are computed")
    return tuple(map(float, elements))


@means(
    f"resizeTensor:size:mode:{_ALIGNED}", f"resizeTensor:sizeTensor:mode:{_ALIGNED}",
    f"resizeNearestWithTensor:sizeTensor:nearestRoundingMode:{_ALIGNED}",
    "resizeNearestWithTensor:sizeTensor:scaleOffsetTensor:nearestRoundingMode:layout",
    f"resizeBilinearWithTensor:sizeTensor:{_ALIGNED}", "resizeBilinearWithTensor:sizeTensor:scaleOffsetTensor:layout",
)  # fmt: skip
def resize(element: Element, images: Argument, *rest: Argument) -> Expr:
    made = _read_resize(element, (images, *rest))
    first, shape = made.rows, element.of(images).shape
    rows, columns = (
        made.taps(k, element.indices[first + k], shape[first + k], element.shape[first + k]) for k in (0, 1)
    )
    total: Expr | None = None
    for row, by_row in rows:
        for column, by_column in columns:
            value = element.read(images, (*element.indices[:first], row, column, *element.indices[first + 2 :]))
            if made.rounding is not None:
                return value
            weighted = call_float("multiplication", cast(value, FLOAT), call_float("multiplication", by_row, by_column))
            total = weighted if total is None else call_float("addition", total, weighted)
    assert total is not None
    return total


@means(
    f"resizeWithGradientTensor:input:mode:{_ALIGNED}",
    f"resizeNearestWithGradientTensor:input:nearestRoundingMode:{_ALIGNED}",
    "resizeNearestWithGradientTensor:input:scaleOffsetTensor:nearestRoundingMode:layout",
    f"resizeBilinearWithGradientTensor:input:{_ALIGNED}",
    "resizeBilinearWithGradientTensor:input:scaleOffsetTensor:layout",
)
def resize_gradient(element: Element, gradient: Argument, *rest: Argument) -> Expr:
    """Every element searches the results that sample it."""
    assert isinstance(gradient, Tensor)
    made = _read_resize(element, (gradient, *rest))
    first, results = made.rows, element.of(gradient).shape

    def weigh(turn: Indices) -> Expr:
        at = (*element.indices[:first], *turn, *element.indices[first + 2 :])
        weights = []
        for k in (0, 1):
            own = element.indices[first + k]
            taps = made.taps(k, turn[k], element.shape[first + k], results[first + k])
            shares = [select(equal(index, own), weight, _number(0)) for index, weight in taps]
            weights.append(shares[0] if len(shares) == 1 else call_float("addition", *shares))
        value = cast(element.read(gradient, at), FLOAT)
        return call_float("multiplication", value, call_float("multiplication", *weights))

    return element.reduce(ReductionKind.SUM, list(results[first : first + 2]), weigh, FLOAT)


_Taps = list[tuple[Expr, Expr]]


@means(f"{_SAMPLE}:paddingMode:samplingMode:constantValue", f"{_SAMPLE}:paddingMode:nearestRoundingMode:constantValue")
def sample_grid(
    element: Element, images: Argument, grid: Argument, layout: Argument, normalized: Argument, relative: Argument,
    aligned: Argument, padding: Argument, mode: Argument, value: Argument,
) -> Expr:  # fmt: skip
    """A coordinate is (x, y), from -1 to 1 across an image."""
    is_nearest = "nearestRoundingMode" in element.node.selector
    if not normalized or relative or as_int(mode) != (_TO_EVEN if is_nearest else _BILINEAR):
        raise refuse(f"`{element.node.selector}` in mode {mode}, or of pixels")
    if value and as_int(padding) == _CONSTANT:
        raise refuse("a grid's samples outside of which there is no zero")
    shape = element.of(images).shape
    first = find_rows(as_int(layout), len(shape))
    own = (element.indices[0], element.indices[first], element.indices[first + 1])
    taps: list[_Taps] = []
    for axis in (0, 1):
        given = cast(element.read(grid, (*own, integer(1 - axis))), FLOAT)
        size = shape[first + axis]
        at = _pad(_place(given, size, bool(aligned)), size, as_int(padding), bool(aligned))
        taps.append([(read_index(call_float("rint", at)), _number(1))] if is_nearest else _weigh(at))
    total = _number(0)
    for row, by_row in taps[0]:
        for column, by_column in taps[1]:
            sampled = _read(element, images, first, (row, column))
            if is_nearest:
                return sampled
            weighted = call_float("multiplication", sampled, call_float("multiplication", by_row, by_column))
            total = call_float("addition", total, weighted)
    return total


def _place(given: Expr, size: int, is_aligned: bool) -> Expr:
    """A coordinate in pixels: -1 and 1 are the centers of the first and the last one if it is aligned, else edges."""
    half = call_float("multiplication", call_float("addition", given, _number(1)), _number(0.5))
    if is_aligned:
        return call_float("multiplication", half, _number(size - 1))
    return call_float("subtraction", call_float("multiplication", half, _number(size)), _number(0.5))


def _pad(at: Expr, size: int, padding: int, is_aligned: bool) -> Expr:
    """A coordinate within the image, unless pixels outside of it are zero."""
    if padding in (_CONSTANT, _ZERO):
        return at
    if padding != _CLAMP:
        # A coordinate mirrored at the centers of the outermost pixels if they are aligned, else at their edges
        length = _number(size)
        if is_aligned:  # of one pixel, any length: what is made is cut to it
            length = call_float("maximum", _number(size - 1), _number(0.5))
        way = at if is_aligned else call_float("addition", at, _number(0.5))
        both_ways = call_float("multiplication", length, _number(2))
        turns = call_float("floor", call_float("division", way, both_ways))
        past = call_float("subtraction", way, call_float("multiplication", turns, both_ways))
        mirrored = call_float("minimum", past, call_float("subtraction", both_ways, past))
        at = mirrored if is_aligned else call_float("subtraction", mirrored, _number(0.5))
    return call_float("minimum", call_float("maximum", at, _number(0)), _number(size - 1))


def _weigh(at: Expr) -> _Taps:
    """The pixels around a coordinate, and their weights."""
    floor = call_float("floor", at)
    low, share = read_index(floor), call_float("subtraction", at, floor)
    return [(low, call_float("subtraction", _number(1), share)), (add(low, 1), share)]


def _read(element: Element, images: Argument, first: int, place: tuple[Expr, Expr]) -> Expr:
    """A pixel; zero outside of the image."""
    sizes = element.of(images).shape[first : first + 2]
    at = (clamp(index, 0, size - 1) for index, size in zip(place, sizes, strict=True))
    value = element.read(images, (*element.indices[:first], *at, *element.indices[first + 2 :]))
    is_within = both(is_inside(index, size) for index, size in zip(place, sizes, strict=True))
    return select(is_within, cast(value, FLOAT), _number(0))
