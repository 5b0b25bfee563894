"""Element-wise operations. Source: Apple's documentation of MPSGraph (arithmetic operations)."""

# mypy: disable-error-code="arg-type, no-any-return"

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph.semantics import implements
from aten_overlay.apple.mpsgraph.types import torch_type


def _unary(name: str, function: Callable[[Tensor], Tensor], logical: bool = False) -> None:
    @implements(f"{name}WithTensor")
    def implementation(x: Tensor) -> Tensor:
        return function(x) if logical else function(x).to(x.dtype)


def _binary(name: str, function: Callable[[Tensor, Tensor], Tensor], logical: bool = False) -> None:
    @implements(f"{name}WithPrimaryTensor:secondaryTensor")
    def implementation(a: Tensor, b: Tensor) -> Tensor:
        return function(a, b) if logical else function(a, b).to(a.dtype)


for _name, _function in {
    "absolute": torch.abs, "acos": torch.acos, "acosh": torch.acosh, "asin": torch.asin, "asinh": torch.asinh,
    "atan": torch.atan, "atanh": torch.atanh, "ceil": torch.ceil, "conjugate": torch.conj_physical, "cos": torch.cos,
    "cosh": torch.cosh, "erf": torch.erf, "exponent": torch.exp, "exponentBase2": torch.exp2, "floor": torch.floor,
    "identity": torch.clone, "logarithm": torch.log, "logarithmBase2": torch.log2, "logarithmBase10": torch.log10,
    "negative": torch.neg, "reciprocal": torch.reciprocal, "reciprocalSquareRoot": torch.rsqrt,
    "reverseSquareRoot": torch.rsqrt, "rint": torch.round, "round": torch.round, "sigmoid": torch.sigmoid,
    "sign": torch.sgn, "sin": torch.sin, "sinh": torch.sinh, "square": torch.square, "squareRoot": torch.sqrt,
    "tan": torch.tan, "tanh": torch.tanh, "truncate": torch.trunc, "reLU": torch.relu, "bitwiseNOT": torch.bitwise_not,
    "exponentBase10": lambda x: torch.pow(10, x), "absoluteSquare": lambda x: torch.abs(x) ** 2,
}.items():  # fmt: skip
    _unary(_name, _function)
for _name, _function in {
    "isFinite": torch.isfinite, "isInfinite": torch.isinf, "isNaN": torch.isnan, "not": torch.logical_not,
    "signbit": torch.signbit,
}.items():  # fmt: skip
    _unary(_name, _function, logical=True)
for _name, _combine in {
    "addition": torch.add, "subtraction": lambda a, b: a ^ b if a.dtype is torch.bool else a - b,
    "multiplication": torch.mul, "power": torch.pow, "atan2": torch.atan2, "minimum": torch.fmin,
    "maximum": torch.fmax, "minimumWithNaNPropagation": torch.minimum, "maximumWithNaNPropagation": torch.maximum,
    "modulo": torch.fmod, "floorModulo": torch.remainder, "bitwiseAND": torch.bitwise_and,
    "bitwiseOR": torch.bitwise_or, "bitwiseXOR": torch.bitwise_xor, "bitwiseLeftShift": torch.bitwise_left_shift,
    "bitwiseRightShift": torch.bitwise_right_shift,
}.items():  # fmt: skip
    _binary(_name, _combine)
for _name, _combine in {
    "equal": torch.eq, "notEqual": torch.ne, "lessThan": torch.lt, "lessThanOrEqualTo": torch.le,
    "greaterThan": torch.gt, "greaterThanOrEqualTo": torch.ge, "logicalAND": torch.logical_and,
    "logicalOR": torch.logical_or, "logicalXOR": torch.logical_xor,
    "logicalNAND": lambda a, b: ~torch.logical_and(a, b), "logicalNOR": lambda a, b: ~torch.logical_or(a, b),
    "logicalXNOR": lambda a, b: ~torch.logical_xor(a, b),
}.items():  # fmt: skip
    _binary(_name, _combine, logical=True)


@implements("divisionWithPrimaryTensor:secondaryTensor")
def division(a: Tensor, b: Tensor) -> Tensor:
    """Of integers the quotient towards zero; a division by zero gives zero."""
    if a.dtype.is_floating_point or a.dtype.is_complex:
        return a / b
    quotient = torch.div(a, torch.where(b == 0, torch.ones_like(b), b), rounding_mode="trunc")
    return torch.where(b == 0, torch.zeros_like(quotient), quotient).to(a.dtype)


@implements("divisionNoNaNWithPrimaryTensor:secondaryTensor")
def division_no_nan(a: Tensor, b: Tensor) -> Tensor:
    return torch.where(b == 0, torch.zeros_like(a), a / b)


@implements("matrixMultiplicationWithPrimaryTensor:secondaryTensor")
def matrix_multiplication(a: Tensor, b: Tensor) -> Tensor:
    return torch.matmul(a, b)


@implements("inverseOfTensor")
def inverse(x: Tensor) -> Tensor:
    """Of the last two dimensions; a singular matrix is no error."""
    return torch.linalg.inv_ex(x.to(torch.float32)).inverse.to(x.dtype)


@implements("selectWithPredicateTensor:truePredicateTensor:falsePredicateTensor")
def select(predicate: Tensor, true: Tensor, false: Tensor) -> Tensor:
    return torch.where(predicate.to(torch.bool), true, false.to(true.dtype))


@implements("clampWithTensor:minValueTensor:maxValueTensor")
def clamp(x: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Lower bound first; a NaN stays, a bound's NaN is passed on."""
    return torch.minimum(torch.maximum(x, low.to(x.dtype)), high.to(x.dtype))


@implements("castTensor:toType")
def cast(x: Tensor, code: int) -> Tensor:
    return x.to(torch_type(code))


@implements("reinterpretCastTensor:toType")
def reinterpret_cast(x: Tensor, code: int) -> Tensor:
    return x.view(torch_type(code))


@implements("realPartOfTensor")
def real_part(x: Tensor) -> Tensor:
    return x.real.clone() if x.dtype.is_complex else x


@implements("imaginaryPartOfTensor")
def imaginary_part(x: Tensor) -> Tensor:
    return x.imag.clone() if x.dtype.is_complex else torch.zeros_like(x)


@implements("complexTensorWithRealTensor:imaginaryTensor")
def complex_tensor(real: Tensor, imaginary: Tensor) -> Tensor:
    return torch.complex(real, imaginary)


@implements("leakyReLUWithTensor:alpha")
def leaky_relu(x: Tensor, alpha: float) -> Tensor:
    return torch.where(x > 0, x, x * alpha)


@implements("leakyReLUWithTensor:alphaTensor")
def leaky_relu_tensor(x: Tensor, alpha: Tensor) -> Tensor:
    return torch.where(x > 0, x, x * alpha)


@implements("reLUGradientWithIncomingGradient:sourceTensor")
def relu_gradient(gradient: Tensor, source: Tensor) -> Tensor:
    return torch.where(source > 0, gradient, torch.zeros_like(gradient))


@implements("sigmoidGradientWithIncomingGradient:sourceTensor")
def sigmoid_gradient(gradient: Tensor, source: Tensor) -> Tensor:
    value = torch.sigmoid(source)
    return gradient * value * (1 - value)


@implements("leakyReLUGradientWithIncomingGradient:sourceTensor:alphaTensor")
def leaky_relu_gradient(gradient: Tensor, source: Tensor, alpha: Tensor) -> Tensor:
    return torch.where(source > 0, gradient, gradient * alpha)
