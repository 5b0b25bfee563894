"""Reading bodies: words, declarations, subscripts and placeholders."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.kernels.signature import (
    blank_comments,
    call_subscripts,
    is_declared,
    replace_placeholder,
    subscripts,
    words,
)

TEXT = st.text(alphabet="AB ijk[](){},;/*\"'\n\\=+.", max_size=60)


def test_words_leave_comments_and_literals_out() -> None:
    text = 'a /* b */ c // d\ne "f \\" g" \'h\' i.j'
    assert words(text) == {"a", "c", "e", "i", "j"}


def test_subscripts_are_measured() -> None:
    text = "A[i, f(j, k)] = B[A[1, 2]]; // A[3]\n xA[4]; p.A[5];"
    assert [
        (name, text[opening : close + 1], count) for name, opening, close, count in subscripts(text, ("A", "B"))
    ] == [
        ("A", "[i, f(j, k)]", 2),
        ("B", "[A[1, 2]]", 1),
        ("A", "[1, 2]", 2),
    ]


def test_several_indices_become_a_call() -> None:
    assert call_subscripts("C[A[i, j], k] = A[i]; D[1, 2];", ("A", "C")) == "C(A(i, j), k) = A[i]; D[1, 2];"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("TYPE x; TYPE4 y; (TYPE)z", "half x; half4 y; (half)z"), ("TYPES MYTYPE TYPE5", "TYPES MYTYPE TYPE5")],
)
def test_placeholders(text: str, expected: str) -> None:
    assert replace_placeholder(text, "TYPE", "half") == expected


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("uint w = 1;", True), ("const device float* w = x;", True), ("float w[3];", True), ("vec<int, 2> w;", True),
        ("#define w 3", True), ("y = w(1);", True), ("return w;", False), ("a * w + 1;", False), ("a = w;", False),
        ("// uint w = 1;", False),
    ],
)  # fmt: skip
def test_declarations(text: str, declared: bool) -> None:
    assert is_declared(text, "w") is declared


@given(TEXT)
def test_blanking_keeps_every_line_and_column(text: str) -> None:
    blanked = blank_comments(text)
    assert len(blanked) == len(text)
    assert [i for i, c in enumerate(blanked) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]


@given(TEXT)
def test_rewriting_subscripts_changes_brackets_alone(text: str) -> None:
    rewritten = call_subscripts(text, ("A", "B"))
    assert len(rewritten) == len(text)
    assert re.sub(r"[\[\]()]", "", rewritten) == re.sub(r"[\[\]()]", "", text)
