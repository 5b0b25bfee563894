"""Reductions; a reduced dimension stays, with size 1. Source: Apple's documentation of MPSGraph (reductions)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from porter.core.dtypes import FLOAT, INT, DType
from porter.loops.expressions import Expr, ReductionKind, call, cast, index_value, number
from porter.loops.graph import Argument
from porter.loops.indices import integer
from porter.loops.lowering import Element, Indices, means

ReadAt = Callable[[Indices], Expr]
_KINDS = {
    "Sum": ReductionKind.SUM, "Product": ReductionKind.PRODUCT, "Maximum": ReductionKind.MAX,
    "Minimum": ReductionKind.MIN, "MaximumPropagateNaN": ReductionKind.MAX_NAN,
    "MinimumPropagateNaN": ReductionKind.MIN_NAN, "And": ReductionKind.ALL, "Or": ReductionKind.ANY,
}  # fmt: skip


def find_axes(element: Element, x: Argument, axes: Argument) -> list[int]:
    """The dimensions that are reduced: all, if none is given."""
    rank = len(element.of(x).shape)
    return list(range(rank)) if axes is None else sorted({each % max(rank, 1) for each in element.numbers(axes)})


def place(indices: Indices, axes: Sequence[int], turn: Indices) -> Indices:
    """The indices with those of loops along the axes."""
    made = list(indices)
    for axis, index in zip(axes, turn, strict=True):
        made[axis] = index
    return tuple(made)


def reduce_axes(
    element: Element, kind: ReductionKind, x: Argument, axes: Sequence[int], body: ReadAt, dtype: DType | None = None
) -> Expr:
    """Reduces over these axes of `x`; `body` gives an operand from its indices."""
    shape = element.of(x).shape
    return element.reduce(
        kind, [shape[axis] for axis in axes], lambda turn: body(place(element.indices, axes, turn)), dtype
    )


@means(*(f"reduction{name}WithTensor:{axis}" for name in _KINDS for axis in ("axis", "axes")))
def reduce(element: Element, x: Argument, axes: Argument = None) -> Expr:
    found = find_axes(element, x, axes)
    if not element.of(x).shape or not found:
        return element.read(x, element.indices if element.of(x).shape else ())
    kind = _KINDS[element.node.selector.removeprefix("reduction").split("With")[0]]
    return reduce_axes(element, kind, x, found, lambda at: cast(element.read(x, at), element.dtype))


@means("reductionArgMaximumWithTensor:axis", "reductionArgMinimumWithTensor:axis")
def find_extreme(element: Element, x: Argument, axis: Argument) -> Expr:
    shape = element.of(x).shape
    if not shape:
        return index_value(integer(0), INT)
    (at,) = find_axes(element, x, axis)
    kind = ReductionKind.ARG_MAX if "Max" in element.node.selector else ReductionKind.ARG_MIN

    def pair(turn: Indices) -> tuple[Expr, Expr]:
        return element.read(x, place(element.indices, [at], turn)), index_value(turn[0], INT)

    return element.lowering.reduce(kind, [shape[at]], pair, INT)


def count(element: Element, x: Argument, axes: Sequence[int]) -> Expr:
    """How many elements are reduced, as a float."""
    size = 1
    for axis in axes:
        size *= element.of(x).shape[axis]
    return number(size, FLOAT)


def average(element: Element, x: Argument, axes: Sequence[int], body: ReadAt) -> Expr:
    """The mean over axes, in float."""
    total = reduce_axes(element, ReductionKind.SUM, x, axes, lambda at: cast(body(at), FLOAT), FLOAT)
    return call("division", (total, count(element, x, axes)), FLOAT)


@means("meanOfTensor:axes")
def mean(element: Element, x: Argument, axes: Argument) -> Expr:
    found = find_axes(element, x, axes or None)
    return average(element, x, found, lambda at: element.read(x, at)) if found else element.read(x)


@means("varianceOfTensor:axes")
def variance(element: Element, x: Argument, axes: Argument) -> Expr:
    found = find_axes(element, x, axes or None)
    if not found:
        return element.number(0)
    middle = average(element, x, found, lambda at: element.read(x, at))
    return average(element, x, found, lambda at: _square_distance(element.read(x, at), middle))


@means("varianceOfTensor:meanTensor:axes")
def variance_of_mean(element: Element, x: Argument, middle: Argument, axes: Argument) -> Expr:
    given = element.read(middle)
    return average(element, x, find_axes(element, x, axes), lambda at: _square_distance(element.read(x, at), given))


def _square_distance(value: Expr, middle: Expr) -> Expr:
    return call("square", (call("subtraction", (cast(value, FLOAT), cast(middle, FLOAT)), FLOAT),), FLOAT)
