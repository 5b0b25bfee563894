import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from porter.core.edits import ChangeSet
from porter.core.errors import PorterError
from porter.languages.python_brackets import read_brackets, remove_elements

ITEMS = ["'a'", '"b,)"', "f(x, [1])", "{1: 2}", "('c', 'd')", '"e#"', "g[0, 1]"]
GAPS = ["", " ", "\n    ", "\n    # about (what follows\n    ", "\n\n"]


@st.composite
def bracketed(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A list or tuple in any layout, with its items."""
    items = [f"{draw(st.sampled_from(ITEMS))} + {i}" for i in range(draw(st.integers(0, 6)))]
    opening = draw(st.sampled_from("([") if len(items) != 1 else st.just("["))
    text = opening
    for i, item in enumerate(items):
        text += draw(st.sampled_from(GAPS)) + item
        if i + 1 < len(items) or draw(st.booleans()):
            text += draw(st.sampled_from(["", " "])) + ","
            text += draw(st.sampled_from(["", "  # on 'its line\n"]))
    text += draw(st.sampled_from(GAPS[:3])) + {"(": ")", "[": "]"}[opening]
    return f"x = {text}  # after", items


def values(text: str) -> list[str]:
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.Assign)
    assert isinstance(node.value, ast.List | ast.Tuple)
    return [ast.unparse(e) for e in node.value.elts]


@given(bracketed())
def test_elements_are_what_python_reads(case: tuple[str, list[str]]) -> None:
    text, items = case
    found = read_brackets("f", text, 4)
    assert [text[e.start : e.end] for e in found.elements] == items
    assert text[found.end :] == "  # after"


@given(bracketed(), st.data())
def test_removing_any_elements_leaves_the_others_alone(case: tuple[str, list[str]], data: st.DataObject) -> None:
    text, items = case
    gone = set(data.draw(st.lists(st.sampled_from(range(len(items))), unique=True))) if items else set()
    found = read_brackets("f", text, 4)
    after = ChangeSet({"f": text}, tuple(remove_elements("f", text, found, gone))).apply().get("f", text)
    assert values(after) == [ast.unparse(ast.parse(item)) for i, item in enumerate(items) if i not in gone]
    assert not re.search(r",\s*,", re.sub(r"#.*", "", after))


@pytest.mark.parametrize("text", ["(", "(]", "[1, (2]"])
def test_a_bracket_that_never_closes_is_refused(text: str) -> None:
    with pytest.raises(PorterError) as caught:
        read_brackets("f", text, 0)
    assert caught.value.code == "PTR067"


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ({1, 2}, "x = [\n    'a',\n\n    # of c\n    'c',\n]\n"),
        ({1}, "x = [\n    'a',\n\n    # of b\n    'bb',\n\n    # of c\n    'c',\n]\n"),
        ({3}, "x = [\n    'a',\n\n    # of b\n    'b',\n    'bb',\n]\n"),
    ],
)
def test_a_removed_group_leaves_one_blank_line(gone: set[int], left: str) -> None:
    text = "x = [\n    'a',\n\n    # of b\n    'b',\n    'bb',\n\n    # of c\n    'c',\n]\n"
    edits = remove_elements("f", text, read_brackets("f", text, 4), gone)
    assert ChangeSet({"f": text}, tuple(edits)).apply()["f"] == left
