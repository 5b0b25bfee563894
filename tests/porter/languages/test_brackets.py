"""Bracket pairs, and the macro expander that stands on them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.languages import brackets
from porter.languages.directives import Macro, expand_uses
from porter.languages.lexer import TokenKind, directives, lex
from porter.languages.source import Source

PIECES = st.sampled_from(
    ["(", ")", "[", "]", "{", "}", ",", " ", "x", "1'000", "'('", '"{"', "// )\n", "/* ] */", 'R"(})"', "u8'a'", "#"]
)
TEXTS = st.lists(PIECES, max_size=14).map(" ".join)


@given(TEXTS)
def test_the_end_of_a_pair_is_that_of_the_lexed_file(text: str) -> None:
    whole = f"({text})"
    depth, end = 0, len(whole)
    for token in lex(whole, directives=False):
        if token.kind is TokenKind.PUNCTUATION:
            depth += (token.text in "([{") - (token.text in ")]}")
            if depth == 0:
                end = token.end
                break
    assert brackets.find_closing_end(whole, 0) == end


@given(st.lists(st.sampled_from(["a", "f(a, b)", "x[1, 2]", "{1, 2}", '","', "','", "/* , */ b"]), min_size=2))
def test_a_split_is_at_the_commas_outside(parts: list[str]) -> None:
    assert brackets.split_at_commas(" , ".join(parts)) == parts


def test_nothing_splits_into_nothing() -> None:
    assert brackets.split_at_commas("  ") == []
    assert brackets.split_at_commas("std::map<int, float> a, T b", "<>()") == ["std::map<int, float> a", "T b"]


@pytest.mark.parametrize(
    ("text", "bare"),
    [("((a + b))", "a + b"), ("(a) + (b)", "(a) + (b)"), ("f(a)", "f(a)"), ('("(")', '"("'), ("()", "")],
)
def test_brackets_around_all_of_a_text_go(text: str, bare: str) -> None:
    assert brackets.strip_parentheses(text) == bare


def test_what_stands_in_brackets_is_not_outside() -> None:
    assert not brackets.has_outside("f(a + b)[c + d]", " ")
    assert brackets.has_outside("f(a) + b", " ")
    assert not brackets.has_outside('f"a b"', " ")


def test_directives_are_those_of_the_lexed_file() -> None:
    text = "#if A\n  #define F(x) \\\n  x /* # */ // y\nint a = b # c;\n#endif"
    expected = [token for token in lex(text) if token.kind is TokenKind.DIRECTIVE]
    assert list(directives(text)) == expected
    assert len(expected) == 3


def macros(text: str) -> dict[str, Macro]:
    return {macro.name: macro for macro in Source.parse("a.cpp", text).function_macros}


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("TWICE(f(1, 2))", "(f(1, 2) + f(1, 2))"),
        ("TWICE(TWICE(a))", "((a + a) + (a + a))"),
        ("CALL(b)", "call_b((b + b))"),
        ('NAME(c) "TWICE(d)" /* TWICE(e) */', '"c" "TWICE(d)" /* TWICE(e) */'),
        ("AGAIN(a)", "AGAIN(a)"),
        ("TWICE(a, b) TWICE", "TWICE(a, b) TWICE"),
    ],
)
def test_a_use_is_expanded_as_the_preprocessor_does(text: str, made: str) -> None:
    defined = macros(
        "#define TWICE(x) (x + x)\n#define CALL(x) call_##x(TWICE(x))\n#define NAME(x) #x\n#define AGAIN(x) AGAIN(x)\n"
    )
    assert expand_uses(text, defined) == made


def test_a_use_keeps_the_lines_of_what_follows() -> None:
    defined = macros("#define BOTH(x, y) x; \\\n y;\n")
    assert expand_uses("BOTH(a,\n b)\nc", defined, keep_lines=True) == "a;   b;\n\nc"
