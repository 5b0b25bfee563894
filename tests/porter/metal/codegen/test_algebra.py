"""Values in fewer operations."""

from __future__ import annotations

from porter.core.dtypes import FLOAT
from porter.loops.expressions import Expr, Op, call, intern, number
from porter.loops.host_values import Apply, Constant, Named, Size
from porter.metal.codegen.canonicalize import simplify_call
from tests.porter.plan.recorded.fork import integer, read

X, Y = read(integer(0)), read(integer(1))
COUNT = Named("count", Size("self", Constant(0)), 4)
COUNTED = intern(Op.NUMBER, (), FLOAT, COUNT)


def made(operation: str, *args: Expr) -> Expr:
    return simplify_call(call(operation, args, FLOAT))


def test_a_factor_of_one_goes() -> None:
    assert made("multiplication", number(1, FLOAT), X) is X
    assert made("multiplication", X, number(1, FLOAT)) is X
    assert made("multiplication", number(2, FLOAT), X).attribute == "multiplication"
    assert made("multiplication", COUNTED, X).attribute == "multiplication"


def test_what_is_subtracted_and_added_goes() -> None:
    less = call("subtraction", (X, COUNTED), FLOAT)
    assert made("addition", less, COUNTED) is X
    assert made("addition", less, number(4, FLOAT)).attribute == "addition"
    assert made("addition", call("subtraction", (X, Y), FLOAT), Y).attribute == "addition"  # not for infinite ones


def test_the_reciprocal_of_a_number_is_one() -> None:
    inverse = Named("inverse_count", Apply("/", (Constant(1), COUNT.value)), 0.25)
    assert made("reciprocal", COUNTED).attribute == inverse
    assert made("reciprocal", X).attribute == "reciprocal"


def test_the_root_of_the_square_of_a_reciprocal() -> None:
    inverse = call("reciprocal", (X,), FLOAT)
    for square in (call("square", (inverse,), FLOAT), call("multiplication", (inverse, inverse), FLOAT)):
        assert made("reciprocalSquareRoot", square) is call("absolute", (X,), FLOAT)
    product = call("multiplication", (inverse, X), FLOAT)
    assert made("reciprocalSquareRoot", product).attribute == "reciprocalSquareRoot"
