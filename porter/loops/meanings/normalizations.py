"""Row-wise operations: softmax and normalization, with their gradients. Source: Apple's documentation of MPSGraph."""

from __future__ import annotations

from porter.core.dtypes import FLOAT
from porter.loops.expressions import Expr, ReductionKind, call, cast, number
from porter.loops.graph import Argument
from porter.loops.lowering import Element, Indices, as_int, means
from porter.loops.meanings.reductions import ReadAt, count, find_axes, reduce_axes


def _float(operation: str, *args: Expr) -> Expr:
    return call(operation, args, FLOAT)


def _softmax_of(element: Element, x: Argument, axis: int) -> ReadAt:
    """The softmax along an axis, at any indices of a row."""

    def read(at: Indices) -> Expr:
        return cast(element.read(x, at), FLOAT)

    top = reduce_axes(element, ReductionKind.MAX_NAN, x, [axis], read, FLOAT)

    def power(at: Indices) -> Expr:
        return _float("exponent", _float("subtraction", read(at), top))

    total = reduce_axes(element, ReductionKind.SUM, x, [axis], power, FLOAT)
    return lambda at: _float("division", power(at), total)


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
        return _float("multiplication", cast(element.read(gradient, indices), FLOAT), value(indices))

    total = reduce_axes(element, ReductionKind.SUM, x, [at], weigh, FLOAT)
    rest = _float("subtraction", cast(element.read(gradient), FLOAT), total)
    return _float("multiplication", value(element.indices), rest)


def _read(element: Element, x: Argument, at: Indices | None = None) -> Expr:
    return cast(element.read(x, at), FLOAT)


def _scale(element: Element, variance: Argument, epsilon: Argument, at: Indices | None = None) -> Expr:
    """1 / sqrt(variance + epsilon)."""
    assert isinstance(epsilon, (int, float))
    return _float("reciprocalSquareRoot", _float("addition", _read(element, variance, at), number(epsilon, FLOAT)))


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
    made = _float("subtraction", _read(element, x), _read(element, mean))
    made = _float("multiplication", made, _scale(element, variance, epsilon))
    made = made if gamma is None else _float("multiplication", made, _read(element, gamma))
    return made if beta is None else _float("addition", made, _read(element, beta))


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
        centered = _float("subtraction", _read(element, x, at), _read(element, mean, at))
        weighted = _float("multiplication", _read(element, gradient, at), centered)
        return _float("multiplication", weighted, _scale(element, variance, epsilon, at))

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
    normal = _float("multiplication", _float("subtraction", _read(element, x), _read(element, mean)), scale)
    total = _sum_gradient(element, gradient, reduced) if sums is None else _read(element, sums)
    given = slopes is not None
    slope = _read(element, slopes) if given else _sum_slope(element, gradient, x, mean, variance, reduced, epsilon)
    shared = _float("addition", total, _float("multiplication", normal, slope))
    shared = _float("division", shared, count(element, x, reduced))
    made = _float("multiplication", scale, _float("subtraction", _read(element, gradient), shared))
    return made if gamma is None else _float("multiplication", made, _read(element, gamma))
