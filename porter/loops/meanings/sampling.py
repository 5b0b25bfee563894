"""Samples of images at coordinates that a tensor gives. Source: Apple's documentation of MPSGraph (sample grid)."""

from __future__ import annotations

from porter.core.dtypes import FLOAT
from porter.loops.expressions import Expr, call, cast, number, select
from porter.loops.graph import Argument
from porter.loops.indices import add, both, clamp, integer, is_inside, read_index
from porter.loops.lowering import Element, as_int, means, refuse
from porter.loops.meanings.resizing import find_rows

_CONSTANT, _REFLECT, _SYMMETRIC, _CLAMP, _ZERO = 0, 1, 2, 3, 4  # MPSGraphPaddingMode
_BILINEAR, _TO_EVEN = 1, 4  # MPSGraphResizeMode, MPSGraphResizeNearestRoundingMode
_SAMPLE = "sampleGridWithSourceTensor:coordinateTensor:layout:normalizeCoordinates:relativeCoordinates:alignCorners"
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
        taps.append([(read_index(_float("rint", at)), _number(1))] if is_nearest else _weigh(at))
    total = _number(0)
    for row, by_row in taps[0]:
        for column, by_column in taps[1]:
            sampled = _read(element, images, first, (row, column))
            if is_nearest:
                return sampled
            weighted = _float("multiplication", sampled, _float("multiplication", by_row, by_column))
            total = _float("addition", total, weighted)
    return total


def _float(operation: str, *args: Expr) -> Expr:
    return call(operation, args, FLOAT)


def _number(value: float) -> Expr:
    return number(value, FLOAT)


def _place(given: Expr, size: int, is_aligned: bool) -> Expr:
    """A coordinate in pixels: -1 and 1 are the centers of the first and the last one if it is aligned, else edges."""
    half = _float("multiplication", _float("addition", given, _number(1)), _number(0.5))
    if is_aligned:
        return _float("multiplication", half, _number(size - 1))
    return _float("subtraction", _float("multiplication", half, _number(size)), _number(0.5))


def _pad(at: Expr, size: int, padding: int, is_aligned: bool) -> Expr:
    """A coordinate within the image, unless pixels outside of it are zero."""
    if padding in (_CONSTANT, _ZERO):
        return at
    if padding != _CLAMP:
        at = _reflect(at, size, is_aligned)
    return _float("minimum", _float("maximum", at, _number(0)), _number(size - 1))


def _reflect(at: Expr, size: int, is_aligned: bool) -> Expr:
    """A coordinate mirrored at the centers of the outermost pixels if they are aligned, else at their edges."""
    length = _number(size)
    if is_aligned:  # of one pixel, any length: what is made is cut to it
        length = _float("maximum", _number(size - 1), _number(0.5))
    way = at if is_aligned else _float("addition", at, _number(0.5))
    both_ways = _float("multiplication", length, _number(2))
    turns = _float("floor", _float("division", way, both_ways))
    past = _float("subtraction", way, _float("multiplication", turns, both_ways))
    mirrored = _float("minimum", past, _float("subtraction", both_ways, past))
    return mirrored if is_aligned else _float("subtraction", mirrored, _number(0.5))


def _weigh(at: Expr) -> _Taps:
    """The pixels around a coordinate, and their weights."""
    floor = _float("floor", at)
    low, share = read_index(floor), _float("subtraction", at, floor)
    return [(low, _float("subtraction", _number(1), share)), (add(low, 1), share)]


def _read(element: Element, images: Argument, first: int, place: tuple[Expr, Expr]) -> Expr:
    """A pixel; zero outside of the image."""
    sizes = element.of(images).shape[first : first + 2]
    at = (clamp(index, 0, size - 1) for index, size in zip(place, sizes, strict=True))
    value = element.read(images, (*element.indices[:first], *at, *element.indices[first + 2 :]))
    is_within = both(is_inside(index, size) for index, size in zip(place, sizes, strict=True))
    return select(is_within, cast(value, FLOAT), _number(0))
