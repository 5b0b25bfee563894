"""Reductions, which keep a reduced dimension with size 1; what is normalized by them; scans as reductions.

Source: Apple's documentation of MPSGraph.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from porter.core.dtypes import FLOAT, INT, DType, Kind
from porter.loops.expressions import Expr, ReductionKind, call, call_float, cast, index_value, number, select
from porter.loops.graph import Argument
from porter.loops.host_values import Number
from porter.loops.indices import add, integer, less
from porter.loops.lowering import Element, Indices, as_int, means
from porter.loops.meanings.views import replace

ReadAt = Callable[[Indices], Expr]
_KINDS = {
    "Sum": ReductionKind.SUM, "Product": ReductionKind.PRODUCT, "Maximum": ReductionKind.MAX,
    "Minimum": ReductionKind.MIN, "MaximumPropagateNaN": ReductionKind.MAX_NAN,
    "MinimumPropagateNaN": ReductionKind.MIN_NAN, "And": ReductionKind.ALL, "Or": ReductionKind.ANY,
}  # fmt: skip
_SCANS = {
    "Sum": ReductionKind.SUM, "Product": ReductionKind.PRODUCT, "Maximum": ReductionKind.MAX_NAN,
    "Minimum": ReductionKind.MIN_NAN,
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
    """The mean over axes, in float, or of both parts of complex numbers."""
    dtype = element.dtype if element.dtype.kind is Kind.COMPLEX else FLOAT
    total = reduce_axes(element, ReductionKind.SUM, x, axes, lambda at: cast(body(at), dtype), dtype)
    return call("division", (total, count(element, x, axes)), dtype)


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
    return call_float("square", call_float("subtraction", cast(value, FLOAT), cast(middle, FLOAT)))


def _softmax_of(element: Element, x: Argument, axis: int) -> ReadAt:
    """The softmax along an axis, at any indices of a row."""

    def read(at: Indices) -> Expr:
        return cast(element.read(x, at), FLOAT)

    top = reduce_axes(element, ReductionKind.MAX_NAN, x, [axis], read, FLOAT)

    def power(at: Indices) -> Expr:
        return call_float("exponent", call_float("subtraction", read(at), top))

    total = reduce_axes(element, ReductionKind.SUM, x, [axis], power, FLOAT)
    return lambda at: call_float("division", power(at), total)


@means("softMaxWithTensor:axis")
def softmax(element: Element, x: Argument, axis: Argument) -> Expr:
    if not element.shape:
        return element.number(1)
    return _softmax_of(element, x, as_int(axis) % len(element.shape))(element.indices)


@means("softMaxGradientWithIncomingGradient:sourceTensor:axis")
def softmax_gradient(element: Element, gradient: Argument, x: Argument, axis: Argument) -> Expr:
    at = as_int(axis) % len(element.shape)
    value = _softmax_of(element, x, at)

    def weigh(indices: Indices) -> Expr:
        return call_float("multiplication", cast(element.read(gradient, indices), FLOAT), value(indices))

    total = reduce_axes(element, ReductionKind.SUM, x, [at], weigh, FLOAT)
    rest = call_float("subtraction", cast(element.read(gradient), FLOAT), total)
    return call_float("multiplication", value(element.indices), rest)


def _read(element: Element, x: Argument, at: Indices | None = None) -> Expr:
    return cast(element.read(x, at), FLOAT)


def _scale(element: Element, variance: Argument, epsilon: Argument, at: Indices | None = None) -> Expr:
    """1 / sqrt(variance + epsilon)."""
    assert isinstance(epsilon, (int, float))
    positive = call_float("addition", _read(element, variance, at), number(epsilon, FLOAT))
    return call_float("reciprocalSquareRoot", positive)


@means("normalizationWithTensor:meanTensor:varianceTensor:gammaTensor:betaTensor:epsilon")
def normalize(
    element: Element,
    x: Argument,
    mean: Argument,
    variance: Argument,
    gamma: Argument,
    beta: Argument,
    epsilon: Argument,
) -> Expr:
    normal = call_float("subtraction", _read(element, x), _read(element, mean))
    normal = call_float("multiplication", normal, _scale(element, variance, epsilon))
    normal = normal if gamma is None else call_float("multiplication", normal, _read(element, gamma))
    return normal if beta is None else call_float("addition", normal, _read(element, beta))


@means("normalizationBetaGradientWithIncomingGradientTensor:sourceTensor:reductionAxes")
def beta_gradient(element: Element, gradient: Argument, _: Argument, axes: Argument) -> Expr:
    return _sum_gradient(element, gradient, find_axes(element, gradient, axes))


def _sum_gradient(element: Element, gradient: Argument, axes: list[int]) -> Expr:
    return reduce_axes(element, ReductionKind.SUM, gradient, axes, lambda at: _read(element, gradient, at), FLOAT)


def _sum_slope(
    element: Element, gradient: Argument, x: Argument, mean: Argument, variance: Argument, axes: list[int],
    epsilon: Argument,
) -> Expr:  # fmt: skip
    """The sum of the gradient times the normalized source."""

    def weigh(at: Indices) -> Expr:
        centered = call_float("subtraction", _read(element, x, at), _read(element, mean, at))
        weighted = call_float("multiplication", _read(element, gradient, at), centered)
        return call_float("multiplication", weighted, _scale(element, variance, epsilon, at))

    return reduce_axes(element, ReductionKind.SUM, gradient, axes, weigh, FLOAT)


@means(
    "normalizationGammaGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:reductionAxes:epsilon"
)
def gamma_gradient(
    element: Element, gradient: Argument, x: Argument, mean: Argument, variance: Argument, axes: Argument,
    epsilon: Argument,
) -> Expr:  # fmt: skip
    return _sum_slope(element, gradient, x, mean, variance, find_axes(element, gradient, axes), epsilon)


@means(
    "normalizationGradientWithIncomingGradientTensor:sourceTensor:meanTensor:varianceTensor:gammaTensor:"
    "gammaGradientTensor:betaGradientTensor:reductionAxes:epsilon"
)
def normalization_gradient(
    element: Element, gradient: Argument, x: Argument, mean: Argument, variance: Argument, gamma: Argument,
    slopes: Argument, sums: Argument, axes: Argument, epsilon: Argument,
) -> Expr:  # fmt: skip
    reduced = find_axes(element, x, axes)
    scale = _scale(element, variance, epsilon)
    normal = call_float("multiplication", call_float("subtraction", _read(element, x), _read(element, mean)), scale)
    total = _sum_gradient(element, gradient, reduced) if sums is None else _read(element, sums)
    given = slopes is not None
    slope = _read(element, slopes) if given else _sum_slope(element, gradient, x, mean, variance, reduced, epsilon)
    shared = call_float("addition", total, call_float("multiplication", normal, slope))
    shared = call_float("division", shared, count(element, x, reduced))
    result = call_float("multiplication", scale, call_float("subtraction", _read(element, gradient), shared))
    return result if gamma is None else call_float("multiplication", result, _read(element, gamma))


def neutral(element: Element, kind: ReductionKind) -> Number:
    """What a reduction of this element's type starts from."""
    if kind in (ReductionKind.SUM, ReductionKind.ANY):
        return 0
    if kind in (ReductionKind.PRODUCT, ReductionKind.ALL):
        return 1
    is_max = kind in (ReductionKind.MAX, ReductionKind.MAX_NAN)
    if element.dtype.kind is Kind.FLOATING:
        return -math.inf if is_max else math.inf
    least, greatest = integer_range(element)
    return least if is_max else greatest


def integer_range(element: Element) -> tuple[int, int]:
    """The least and the greatest value of this element's type."""
    if element.dtype.kind is Kind.BOOL:
        return 0, 1
    bits = 8 * element.dtype.size
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if element.dtype.is_signed else (0, (1 << bits) - 1)


@means(*(f"cumulative{name}WithTensor:axis{more}" for name in _SCANS for more in ("", ":exclusive:reverse")))
def scan(element: Element, x: Argument, axis: Argument, exclusive: Argument = 0, reverse: Argument = 0) -> Expr:
    if not element.shape:
        return element.read(x)
    at = as_int(axis) % len(element.shape)
    kind = _SCANS[element.node.selector.removeprefix("cumulative").split("With")[0]]
    last, otherwise = element.indices[at], element.number(neutral(element, kind))

    def take(turn: Indices) -> Expr:
        own = 0 if exclusive else 1
        is_before = less(last, add(turn[0], own)) if reverse else less(turn[0], add(last, own))
        return select(is_before, cast(element.read(x, replace(element.indices, at, turn[0])), element.dtype), otherwise)

    return element.reduce(kind, [element.shape[at]], take)
