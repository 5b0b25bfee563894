"""What a message says of a construct that is not understood, and where it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.core.errors import Place
from porter.languages.source import Source
from porter.mpsgraph.source_reader.values import ReadText, quote

TEXT = """static void f(int n) {
  for (const auto i : c10::irange(g(n),
                                  h(n))) {
  }
  while (n > 0) n--;
  do {
  } while (n);
  if (mask[0]) return;
  if constexpr (std::is_same_v<T, U>) {
  }
  switch (n) {
  }
  forward(n);
}
"""


def reading(of_macro: bool = False) -> ReadText:
    return ReadText(Source.parse("f.mm", TEXT), Place("f.mm", 40), TEXT, of_macro)


@pytest.mark.parametrize(
    ("at", "told", "line"),
    [
        ("for (", "a loop, `for (const auto i : c10::irange(g(n), h(n)))`", 41),
        ("while (n >", "a loop, `while (n > 0)`", 44),
        ("do {", "a loop, `do`", 45),
        ("if (mask", "a branch, `if (mask[0])`", 47),
        ("if constexpr", "a branch, `if constexpr (std::is_same_v<T, U>)`", 48),
        ("switch", "a switch, `switch (n)`", 50),
        ("forward", "", 52),
    ],
)
def test_a_construct_is_described_by_kind_and_head(at: str, told: str, line: int) -> None:
    start = TEXT.index(at)
    assert reading().describe(start) == told
    assert reading().place(start) == Place("f.mm", line)
    assert reading(of_macro=True).place(start) == Place("f.mm", 40)


@given(st.text(min_size=1))
def test_quoted_code_is_one_short_line(text: str) -> None:
    shown = quote(text)
    assert len(shown.splitlines()) == 1 and len(shown) <= 105
