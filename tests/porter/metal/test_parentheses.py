"""Parentheses that tidying removes change nothing: the syntax tree without them stays the same."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porter.core.dtypes import Kind
from porter.languages import cpp
from porter.languages.cpp_parser import parse_expression
from porter.metal.functor import Body, Provenance
from porter.metal.tidy import tidy_body
from tests.porter.metal.test_lambda_body import subject

OPERATORS = ("*", "-", "<<", "<", "==", "&", "^", "|", "&&", "||")  # of each precedence
NAMES = st.sampled_from(["x", "flags", "order", "1", "2.5f"])


def join(left: str, operator: str, right: str) -> str:
    return f"({left}) {operator} ({right})"


def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return (
        st.builds(join, inner, st.sampled_from(OPERATORS), inner)
        | st.builds("({}) ? ({}) : ({})".format, inner, inner, inner)
        | st.builds("!({})".format, inner)
        | st.builds("metal::max(({}), ({}))".format, inner, inner)
    )


EXPRESSIONS = st.recursive(NAMES, extend, max_leaves=6)


def without_parentheses(value: Any) -> Any:
    """The syntax tree without positions and parentheses."""
    if isinstance(value, cpp.Paren):
        return without_parentheses(value.value)
    if isinstance(value, tuple):
        return tuple(map(without_parentheses, value))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    given = {each.name: without_parentheses(getattr(value, each.name)) for each in fields(value)}
    places: dict[str, Any] = {name: 0 for name in ("start", "end") if name in given}
    return replace(value, **{**given, **places})


def tidy(text: str) -> str:
    """The expression after tidying, with the names of its parts replaced by the parts."""
    *named, line = tidy_body(
        Body((f"return {text};",), "bool", Provenance("a test")), Kind.INTEGRAL, subject()
    ).statements
    for local in reversed(named):
        _, _, name, _, part = local.removesuffix(";").split(" ", 4)
        line = f"({part})".join(re.split(rf"\b{name}\b", line))
    return line.removeprefix("return ").removesuffix(";")


@settings(max_examples=500)
@given(EXPRESSIONS)
def test_removing_parentheses_keeps_the_expression(text: str) -> None:
    found, wanted = (parse_expression("made up", each) for each in (tidy(text), text))
    assert without_parentheses(found) == without_parentheses(wanted)


@pytest.mark.parametrize("text", ["(flags & 1) == 0", "(flags | 1) < 2", "(flags ^ 1) != x", "(x == 1) == flags"])
def test_what_binds_less_tightly_than_a_comparison_stays_in_parentheses(text: str) -> None:
    assert tidy(text) == text


def test_sums_on_a_side_of_a_comparison_need_none() -> None:
    assert tidy("(x + 1) < (order)") == "x + 1 < order"
