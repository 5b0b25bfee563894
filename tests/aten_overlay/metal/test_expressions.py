"""Constant expressions, against Python's own arithmetic, and the names that declarations declare."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aten_overlay.metal.source.declarations import parse
from aten_overlay.metal.source.expressions import NotConstant, evaluate
from aten_overlay.metal.source.lexer import read

NAMES = {"SIZE": 8, "ZERO": 0}
CASES = {
    "1200 + 0": 1200,
    "01": 1,
    "010": 8,
    "0x1F & 0xf": 15,
    "SIZE * SIZE / 3": 21,
    "-7 / 2": -3,
    "-7 % 2": -1,
    "1 << 3 | 1": 9,
    "SIZE > 4 ? 2 : 3": 2,
    "!ZERO && SIZE != 7": 1,
    "uint(SIZE) + (int)2 + sizeof(float4) * 0": None,
    "uint(SIZE) + (int)2 + sizeof(float)": 14,
    "max(SIZE, 9) - min(1, 2)": 8,
    "metal::max(1, 2)": 2,
    "UNKNOWN + 1": None,
    "1 / ZERO": None,
    "1 +": None,
    "1'000u": 1000,
}


@pytest.mark.parametrize("text", CASES)
def test_expressions(text: str) -> None:
    tokens, expected = read(text).tokens, CASES[text]
    if expected is None:
        with pytest.raises(NotConstant):
            evaluate(tokens, NAMES.get)
    else:
        assert evaluate(tokens, NAMES.get) == expected


SUMS = st.recursive(
    st.integers(0, 99).map(str),
    lambda inner: st.builds(
        lambda a, op, b, bare: f"{a} {op} {b}" if bare else f"({a} {op} {b})",
        inner, st.sampled_from(["+", "-", "*", "<", ">", "&", "|", "^", "=="]), inner, st.just(False),
    ),
)  # fmt: skip


@given(SUMS)
def test_expressions_agree_with_python(text: str) -> None:
    assert evaluate(read(text).tokens, NAMES.get) == int(eval(text))


@given(st.text(alphabet="12ab()+-*/%<>=!&|?:, ", max_size=30))
def test_any_text_has_a_value_or_is_refused(text: str) -> None:
    try:
        evaluate(text.split(), NAMES.get)
    except NotConstant:
        return


DECLARED = {
    "constant float a = 1, b[2] = {1, 2};": {"a", "b"},
    "template <typename T> T f(T x) { return x; }": {"f"},
    "template <typename T> void S<T>::g(int x) {}": {"S", "g"},
    "typedef struct { int x; } Named;": {"Named"},
    "typedef decltype(f<float>) f_t;": {"f_t"},
    "typedef void (read_t)(int);": {"read_t", "void"},
    "enum Kind { ONE, TWO = 5 };": {"Kind", "ONE", "TWO"},
    "template <> struct metal::numeric_limits<S> : T {};": {"numeric_limits"},
    "struct alignas(16) S { int x; } s;": {"S", "s"},
    "using Pair = metal::vec<float, 2>;": {"Pair"},
    "using namespace metal;": None,
    "S operator+=(thread S& a, S b) { return a; }": None,
    "static_assert(sizeof(int) == 4);": None,
}


@pytest.mark.parametrize("text", DECLARED)
def test_declared_names(text: str) -> None:
    (entry,) = parse(read(text)).entries
    assert entry.names == DECLARED[text]
