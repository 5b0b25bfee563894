"""Elementwise operations that the table of operations has no row for. Source: MPSGraph's arithmetic operations."""

from __future__ import annotations

from porter.core.dtypes import BOOL
from porter.loops.expressions import Expr, call, number, select
from porter.loops.graph import Argument
from porter.loops.lowering import Element, means

_BINARY = "WithPrimaryTensor:secondaryTensor"


def _name(selector: str) -> str:
    return selector.split("With")[0]


@means(
    f"modulo{_BINARY}", f"floorModulo{_BINARY}", f"bitwiseAND{_BINARY}", f"bitwiseOR{_BINARY}", f"bitwiseXOR{_BINARY}",
    f"bitwiseLeftShift{_BINARY}", f"bitwiseRightShift{_BINARY}", "bitwiseNOTWithTensor",
)  # fmt: skip
def apply(element: Element, *args: Argument) -> Expr:
    return element.call(_name(element.node.selector), *map(element.read, args))


@means(f"logicalNAND{_BINARY}", f"logicalNOR{_BINARY}", f"logicalXNOR{_BINARY}")
def apply_and_negate(element: Element, one: Argument, other: Argument) -> Expr:
    operation = _name(element.node.selector).replace("logicalXN", "logicalX").replace("logicalN", "logical")
    return element.call("not", element.call(operation, element.read(one), element.read(other)))


@means(f"divisionNoNaN{_BINARY}")
def divide_or_zero(element: Element, one: Argument, other: Argument) -> Expr:
    divisor = element.read(other)
    is_zero = call("equal", (divisor, element.number(0)), BOOL)
    return select(is_zero, element.number(0), element.call("division", element.read(one), divisor))


@means("absoluteSquareWithTensor")
def square(element: Element, x: Argument) -> Expr:
    return element.call("square", element.read(x))


@means("exponentBase10WithTensor")
def power_of_ten(element: Element, x: Argument) -> Expr:
    return element.call("power", element.number(10), element.read(x))


def _is_positive(x: Expr) -> Expr:
    assert x.dtype is not None
    return call("greaterThan", (x, number(0, x.dtype)), BOOL)


@means("leakyReLUWithTensor:alpha", "leakyReLUWithTensor:alphaTensor")
def leaky_relu(element: Element, x: Argument, alpha: Argument) -> Expr:
    value = element.read(x)
    slope = element.number(alpha) if isinstance(alpha, (int, float)) else element.read(alpha)
    return select(_is_positive(value), value, element.call("multiplication", value, slope))


@means("leakyReLUGradientWithIncomingGradient:sourceTensor:alphaTensor")
def leaky_relu_gradient(element: Element, gradient: Argument, source: Argument, alpha: Argument) -> Expr:
    value = element.read(gradient)
    scaled = element.call("multiplication", value, element.read(alpha))
    return select(_is_positive(element.read(source)), value, scaled)


@means("reLUGradientWithIncomingGradient:sourceTensor")
def relu_gradient(element: Element, gradient: Argument, source: Argument) -> Expr:
    return select(_is_positive(element.read(source)), element.read(gradient), element.number(0))


@means("sigmoidGradientWithIncomingGradient:sourceTensor")
def sigmoid_gradient(element: Element, gradient: Argument, source: Argument) -> Expr:
    value = element.call("sigmoid", element.read(source))
    rest = element.call("subtraction", element.number(1), value)
    return element.call("multiplication", element.call("multiplication", element.read(gradient), value), rest)
