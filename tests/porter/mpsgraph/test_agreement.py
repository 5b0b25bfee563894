"""Two readings agree when every call that was run took the case that the source has for it."""

from __future__ import annotations

import pytest

from porter.aten.branches import Condition
from porter.core.dtypes import FLOAT, INT
from porter.mpsgraph.agreement import compare_readings
from porter.mpsgraph.graph import (
    RESULTS,
    Call,
    CallSummary,
    Case,
    Cast,
    Constant,
    Expr,
    Graph,
    Input,
    Recording,
    Scalar,
)

X = Input("self", FLOAT)
ALPHA = Scalar("alpha", FLOAT)
SCALED = Call("multiplication", (X, ALPHA), FLOAT)
ONE = Condition("alpha == 1.0", True)
OTHER = Condition("alpha == 1.0", False)


def source(one: Expr, other: Expr) -> Graph:
    return Graph(("self",), ("alpha",), (Case(FLOAT, (ONE,), one), Case(FLOAT, (OTHER,), other)))


def recording(*seen: CallSummary) -> Recording:
    cases = (Case(FLOAT, (OTHER,), SCALED), Case(FLOAT, (ONE,), X), Case(INT, (), X))
    return Recording("scale", Graph(("self",), ("alpha",), cases), seen)


def test_each_call_is_compared_with_its_case() -> None:
    seen = (CallSummary(FLOAT, {"alpha": 0.5}, 0), CallSummary(FLOAT, {"alpha": 1.0}, 1))
    assert compare_readings(source(X, SCALED), recording(*seen), False).differences == ()
    [told] = compare_readings(source(X, X), recording(*seen), False).differences
    assert told == "float: the source has self, the run multiplication(self, alpha)"


def test_every_result_is_compared() -> None:
    both = Call(RESULTS, (X, SCALED), FLOAT)
    made = Recording("pair", Graph(("self",), (), (Case(FLOAT, (), both),)), (CallSummary(FLOAT, {}, 0),))
    assert compare_readings(Graph(("self",), (), (Case(FLOAT, (), both),)), made, False).differences == ()
    for other in (SCALED, Call(RESULTS, (SCALED, X), FLOAT)):
        assert compare_readings(Graph(("self",), (), (Case(FLOAT, (), other),)), made, False).differences


@pytest.mark.parametrize(("number", "calls"), [({"isFloatingPoint": True}, 1), ({}, 0), ({"isBoolean": True}, 0)])
def test_promotion_of_wrapped_numbers_is_no_disagreement(number: dict[str, bool], calls: int) -> None:
    wrapped = Call("multiplication", (X, Scalar("alpha", FLOAT, wrapped=True)), FLOAT)
    seen = CallSummary(FLOAT, {"alpha": 0.5, **{f"alpha.{name}()": holds for name, holds in number.items()}}, 0)
    assert compare_readings(source(X, wrapped), recording(seen), False).calls == calls
    assert compare_readings(source(X, SCALED), recording(seen), False).calls == 1


def test_a_copy_made_before_a_stub_call_is_ignored() -> None:
    seen = CallSummary(FLOAT, {"alpha": 1.0}, 1)
    wrong = source(SCALED, SCALED)
    assert compare_readings(wrong, recording(seen), through_stub=False).differences
    assert compare_readings(wrong, recording(seen), through_stub=True).calls == 0


def test_a_type_of_one_reading_only_is_not_compared() -> None:
    judged = compare_readings(source(X, SCALED), recording(CallSummary(INT, {"alpha": 1.0}, 2)), False)
    assert judged.calls == 0
    assert str(judged) == "nothing was run that the source's reading speaks of"


def test_host_conversions_count_as_graph_casts() -> None:
    read = Call("not", (Input("self", INT),), INT)
    ran = Call("not", (Cast(X, INT),), INT)
    made = Recording("not", Graph(("self",), (), (Case(FLOAT, (), ran),)), (CallSummary(FLOAT, {}, 0),))
    assert compare_readings(Graph(("self",), (), (Case(FLOAT, (), read),)), made, False).differences == ()
    unconverted = Call("not", (X,), INT)
    assert compare_readings(Graph(("self",), (), (Case(FLOAT, (), unconverted),)), made, False).differences


def test_a_category_of_the_fork_selects_per_type() -> None:
    read = Call("maximumOrInt", (X, X), FLOAT)
    for op, agrees in (("maximumWithNaNPropagation", True), ("maximum", False)):
        made = Recording(
            "max", Graph(("self",), (), (Case(FLOAT, (), Call(op, (X, X), FLOAT)),)), (CallSummary(FLOAT, {}, 0),)
        )
        judged = compare_readings(Graph(("self",), (), (Case(FLOAT, (), read),)), made, False)
        assert (judged.differences == ()) is agrees


def test_mixed_types_are_compared_where_the_source_reads_them() -> None:
    mixed = {"self.scalar_type() == other.scalar_type()": False}
    flag = Call("select", (Input("other", INT), X, X), FLOAT)
    for read, calls in ((X, 0), (flag, 1)):
        made = Recording("op", Graph(("self", "other"), (), (Case(FLOAT, (), flag),)), (CallSummary(FLOAT, mixed, 0),))
        assert compare_readings(Graph(("self", "other"), (), (Case(FLOAT, (), read),)), made, False).calls == calls


def test_a_call_without_an_optional_tensor_is_not_compared() -> None:
    judged = compare_readings(source(X, X), recording(CallSummary(FLOAT, {"alpha": 0.5, "self": None}, 0)), False)
    assert judged.calls == 0


def test_equivalent_spellings_are_no_difference() -> None:
    """Whole numbers as floats, a cast to the type there is, a copy."""
    told = Call("addition", (Cast(X, FLOAT), Constant(1, FLOAT)), FLOAT)
    read = Call("identity", (Call("addition", (X, Constant(1.0, FLOAT)), FLOAT),), FLOAT)
    made = Recording("scale", Graph(("self",), (), (Case(FLOAT, (), told),)), (CallSummary(FLOAT, {}, 0),))
    assert compare_readings(Graph(("self",), (), (Case(FLOAT, (), read),)), made, False).differences == ()
