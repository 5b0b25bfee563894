"""An expression is its skeleton and its leaves."""

from __future__ import annotations

from hypothesis import given

from porter.core import dtypes
from porter.mpsgraph.graph import Call, Constant, Expr, Input, leaves, replace_leaves, size, skeleton
from tests.porter.mpsgraph.test_storing import expressions


@given(expressions)
def test_leaves_put_back_give_the_expression(expr: Expr) -> None:
    assert replace_leaves(expr, iter(leaves(expr))) == expr


def test_the_skeleton_leaves_numbers_out() -> None:
    x = Input("x", dtypes.FLOAT)
    one, two = (Call("addition", (x, Constant(value, dtypes.FLOAT)), dtypes.FLOAT) for value in (1.0, 2.0))
    assert skeleton(one) == skeleton(two) == "addition(x, _)"
    assert skeleton(one) != skeleton(Call("subtraction", one.args, dtypes.FLOAT))


def test_size_counts_shared_nodes_at_every_use_up_to_a_limit() -> None:
    expr: Expr = Input("x", dtypes.FLOAT)
    for _ in range(200):
        expr = Call("addition", (expr, expr), dtypes.FLOAT)
    assert size(expr, 1000) == 1000
    assert size(Call("addition", (Input("x", dtypes.FLOAT),) * 2, dtypes.FLOAT), 1000) == 3
