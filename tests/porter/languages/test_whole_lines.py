"""Items that fill their lines are removed as libcst removes them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from porter.languages import python_layout
from porter.languages.python_calls import drop_lines
from tests.porter.languages.test_python_calls import ITEMS, OPENINGS, bracketed, find

GAPS = ("\n    ", "\n    ", "\n    ", "\n    ", " ", "\n    # about\n    ", "\n\n    ")
TAILS = (",", ",", ",", ",  # why", " ,", "")


@st.composite
def displays(draw: st.DrawFn) -> tuple[str, int]:
    """A display with most of its items on lines of their own, and how many they are."""
    opening = draw(st.sampled_from(sorted(OPENINGS)))
    key = draw(st.sampled_from(["", "k{}: "])) if opening == "{" else draw(st.sampled_from(["", "k{}="]))
    key = key if opening in ("{", "f(") else ""
    count = draw(st.integers(2, 6))
    text = opening + draw(st.sampled_from(["", "  # those"]))
    for at in range(count):
        tail = draw(st.sampled_from(TAILS)) if at + 1 == count else draw(st.sampled_from(TAILS[:-1]))
        gap = draw(st.sampled_from(GAPS)) if not text.endswith(("# why", "# those")) else "\n    "
        text += gap + key.format(at) + draw(st.sampled_from(ITEMS)) + f" + {at}" + tail
    text += "\n" + OPENINGS[opening]
    return f"x = {text}  # after".replace("\n", draw(st.sampled_from(["\n", "\r\n"]))), count


def agree(text: str, gone: set[tuple[int, ...]]) -> bool:
    """Whether the items were removed without libcst, which is then asked too."""
    found = find(text)
    made = drop_lines(found.source, found.node, gone)
    assert made is None or made == python_layout.remove_items(found.source, gone)
    return made is not None


@settings(max_examples=300)
@given(displays(), st.data())
def test_lines_go_as_libcst_removes_them(case: tuple[str, int], data: st.DataObject) -> None:
    text, count = case
    agree(text, {(at,) for at in data.draw(st.lists(st.sampled_from(range(count)), min_size=1, unique=True))})


@given(bracketed(), st.data())
def test_any_layout_is_left_to_libcst_or_done_as_it_does(case: tuple[str, list[str]], data: st.DataObject) -> None:
    text, items = case
    agree(text, {(at,) for at in data.draw(st.lists(st.sampled_from(range(len(items))), min_size=1, unique=True))})


@pytest.mark.parametrize(
    ("text", "gone", "simple"),
    [
        ("x = {\n  'a': 1,\n  'b': 2,  # why\n}", {(1,)}, True),
        ("x = {\n  'a': [\n    1,\n    2,\n  ],\n}", {(0, 1)}, True),
        ("x = {\n  'a': 1,\n  # about b\n  'b': 2,\n}", {(1,)}, False),
        ("x = {\n  'a': 1, 'b': 2,\n}", {(1,)}, False),
        ("x = {\n  'a': 1,\n}", {(0,)}, False),
        ("x = (\n  1,\n  2,\n)", {(0,)}, False),
        ("x = [\n  1,\n  2\n]", {(1,)}, False),
        ("x = f(\n  1,\n  k=2,\n)", {(1,)}, False),
        ("x = [\n  1,\n\n  2,\n  3,\n]", {(1,)}, False),
    ],
)
def test_what_is_not_simple_is_left_to_libcst(text: str, gone: set[tuple[int, ...]], simple: bool) -> None:
    assert agree(text, gone) is simple
