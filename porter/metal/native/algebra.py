"""Values of programs in fewer operations: what undoes another, a factor of one, the reciprocal of a number."""

from __future__ import annotations

from porter.loops.expressions import Expr, Op, call, intern
from porter.loops.host_values import Binary, Constant, Named, Operator


def simplify_call(value: Expr) -> Expr:
    """A value without operations that change nothing but its rounding."""
    match value.op, value.attribute, value.args:
        case Op.CALL, "multiplication", (left, right) if 1 in (_constant(left), _constant(right)):
            return right if _constant(left) == 1 else left
        case Op.CALL, "addition", (left, right) if _undoes(left, right):
            return left.args[0]
        case Op.CALL, "reciprocal", (operand,) if (made := _inverse(operand)) is not None:
            return made
        case Op.CALL, "reciprocalSquareRoot", (square,) if (root := _root(square)) is not None:
            assert value.dtype is not None
            if root.op is Op.CALL and root.attribute == "reciprocal":
                return call("absolute", root.args, value.dtype)
    return value


def _constant(value: Expr) -> float | None:
    is_number = value.op is Op.NUMBER and isinstance(value.attribute, (int, float))
    return float(value.attribute) if is_number and not isinstance(value.attribute, bool) else None  # type: ignore[arg-type]


def _undoes(left: Expr, right: Expr) -> bool:
    """Whether what is added was subtracted before."""
    is_subtraction = left.op is Op.CALL and left.attribute == "subtraction"
    return is_subtraction and right.op is Op.NUMBER and left.args[1] is right


def _inverse(operand: Expr) -> Expr | None:
    """The reciprocal of a number that host code computes."""
    number = operand.attribute
    if operand.op is not Op.NUMBER or not isinstance(number, Named) or not number.example:
        return None
    value = Binary(Operator.DIVIDE, Constant(1), number.value)
    return intern(Op.NUMBER, (), operand.dtype, Named(f"inverse_{number.name}", value, 1 / number.example))


def _root(square: Expr) -> Expr | None:
    """What a value is the square of."""
    if square.op is not Op.CALL:
        return None
    if square.attribute == "square":
        return square.args[0]
    is_square = square.attribute == "multiplication" and square.args[0] is square.args[1]
    return square.args[0] if is_square else None
