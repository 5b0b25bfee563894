"""Calls become cases: by the operations they ran, and by the options that tell their numbers."""

from __future__ import annotations

from expecttest import assert_expected_inline

from porter.core.dtypes import FLOAT, HALF, DType
from porter.mpsgraph.graph import Call, Constant, Expr, Graph, Input, Value, graph_lines
from porter.recording.cases import RecordedCall, build_cases, find_unknown_numbers

X = Input("self", FLOAT)


def filled(value: float) -> Expr:
    return Call("select", (Call("isNaN", (X,), FLOAT), Constant(value, FLOAT), X), FLOAT)


def seen(expr: Expr, dtype: DType = FLOAT, **arguments: Value) -> RecordedCall:
    return RecordedCall(dtype, arguments, expr)


def describe(*observed: RecordedCall) -> str:
    return "\n".join(graph_lines(Graph(("self",), (), build_cases(observed)[0])))


def test_a_default_for_an_option_that_is_left_out() -> None:
    """The number is the argument where it is given, and another where it is not: one graph, two cases."""
    calls = [seen(filled(value), nan=value) for value in (2.0, 3.5, -1.0)] + [seen(filled(0.25), nan=None)] * 2
    assert_expected_inline(
        describe(*calls),
        """\
float if nan.has_value(): select(isNaN(self), nan, self)
float if !(nan.has_value()): select(isNaN(self), 0.25, self)""",
    )


def test_every_call_knows_its_case() -> None:
    plain = Call("negative", (X,), FLOAT)
    calls = [seen(plain, flag=True), seen(X, flag=False), seen(plain, HALF, flag=True), seen(plain, flag=True)]
    ordered = sorted(calls, key=lambda each: each.dtype.metal)
    cases, taken = build_cases(ordered)
    for call, case in zip(ordered, taken, strict=True):
        assert (cases[case].dtype, cases[case].expr) == (call.dtype, call.expr)


def test_a_number_no_option_determines_stays_unknown() -> None:
    calls = [seen(filled(value), n=n, flag=bool(n % 2)) for n, value in enumerate((0.1, 7.0, 0.3, 55.0, 2.2, 8.1))]
    cases, _ = build_cases(calls)
    assert [len(list(find_unknown_numbers(case.expr))) for case in cases] == [1]
