"""Loops, arrays and array parameters of C++ functions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.languages import cpp
from porter.languages.cpp_parser import parse_function


def parse_body(statements: str, parameters: str = "") -> tuple[cpp.Stmt, ...]:
    return parse_function("f.cpp", f"void f({parameters}) {{ {statements} }}").body.statements


def test_a_loop_with_a_counter_has_its_four_parts() -> None:
    [loop] = parse_body("for (int64_t k = 2; k <= n; k++) { q = r; }")
    assert isinstance(loop, cpp.For)
    [counter] = loop.initial.statements
    assert isinstance(counter, cpp.Declaration)
    assert (counter.type, counter.name) == ("int64_t", "k")
    assert isinstance(loop.test, cpp.Binary) and loop.test.op == "<="
    assert isinstance(loop.step.value, cpp.Postfix)
    assert loop.text == "for (int64_t k = 2; k <= n; k++) { q = r; }"


@pytest.mark.parametrize(
    "loop",
    [
        "for (const auto i : c10::irange(n)) { a = b; }",
        "for (int i = 0, j = 1; i < n; i++) { a = b; }",
        "for (;;) { a = b; }",
    ],
)
def test_any_other_loop_is_opaque_with_all_of_its_text(loop: str) -> None:
    first, last = parse_body(f"{loop} c = d;")
    assert isinstance(first, cpp.Opaque)
    assert first.text == loop
    assert isinstance(last, cpp.ExpressionStatement)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30), st.booleans(), st.booleans()
)
def test_an_array_has_the_values_that_are_written(values: list[float], sized: bool, comma: bool) -> None:
    size = str(len(values)) if sized else ""
    [array] = parse_body(f"static const T A[{size}] = {{{', '.join(map(repr, values))}{',' if comma else ''}}};")
    assert isinstance(array, cpp.ArrayDeclaration)
    assert (array.type, array.name, array.size is not None) == ("T", "A", sized)
    assert [_value(each) for each in array.values] == [abs(value) for value in values]


def _value(node: cpp.Expr) -> float:
    inner = node.value if isinstance(node, cpp.Unary) else node
    assert isinstance(inner, cpp.Literal)
    return float(inner.text)


def test_a_parameter_may_be_an_array() -> None:
    function = parse_function("f.h", "T f(const T x, const T A[], size_t len) { return x; }")
    assert [(each.type, each.name) for each in function.parameters] == [("T", "x"), ("T[]", "A"), ("size_t", "len")]
