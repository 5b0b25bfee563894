import ast
import subprocess
import sys

import pytest
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

from porter.core.change_set import ChangeSet
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.languages.python_calls import (
    Expression,
    find_expression,
    insert_strings,
    read_items,
    read_string,
    remove_items,
)

ITEMS = ["'a'", '"b,)"', "f(x, [1])", "{1: 2}", "('c', 'd')", '"e#"', "g[0, 1]", "'''t\n'''"]
GAPS = ["", " ", "\n    ", "\n    # about (what follows\n    ", "\n\n"]
OPENINGS = {"(": ")", "[": "]", "{": "}", "f(": ")"}


@st.composite
def bracketed(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A list, tuple, set, dict or call in any layout, with its items."""
    opening = draw(st.sampled_from(sorted(OPENINGS)))
    key = draw(st.sampled_from(["", "k{}: "])) if opening == "{" else draw(st.sampled_from(["", "k{}="]))
    key = key if opening in ("{", "f(") else ""
    items = [f"{key.format(i)}{draw(st.sampled_from(ITEMS))} + {i}" for i in range(draw(st.integers(1, 6)))]
    text = opening
    for i, item in enumerate(items):
        text += draw(st.sampled_from(GAPS)) + item
        if i + 1 < len(items) or draw(st.booleans()) or (opening == "(" and len(items) == 1):
            text += draw(st.sampled_from(["", " "])) + ","
            text += draw(st.sampled_from(["", "  # on 'its line\n"]))
    text += draw(st.sampled_from(GAPS[:3])) + OPENINGS[opening]
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    return f"x = {text}  # after".replace("\n", newline), items


def find(text: str) -> Expression:
    start = text.index("=") + 2
    return find_expression("f", text, start, start + (text[start] == "f"))


def apply(text: str, edits: tuple[Edit, ...]) -> str:
    return ChangeSet({"f": text}, edits).apply().get("f", text)


def values(text: str) -> list[str]:
    """The items as Python reads them, keys and argument names among them."""
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.Assign)
    items = read_items(node.value)
    return [f"{i.name}{ast.unparse(i.key) if i.key else ''}: {ast.unparse(i.value)}" for i in items]


@given(bracketed())
def test_an_expression_ends_and_has_items_as_python_reads_it(case: tuple[str, list[str]]) -> None:
    text, items = case
    found = find(text)
    assert text[found.end :] == "  # after"
    assert [ast.unparse(i.value) for i in found.items] == [ast.unparse(i.value) for i in find(text).items]
    assert len(found.items) == len(items)
    for item, written in zip(found.items, items, strict=True):
        assert written.endswith(found.text_of(item.value).replace("\r\n", "\n"))


@given(bracketed(), st.data())
def test_removing_any_items_leaves_the_others_alone(case: tuple[str, list[str]], data: st.DataObject) -> None:
    text, items = case
    gone = set(data.draw(st.lists(st.sampled_from(range(len(items))), unique=True)))
    after = apply(text, remove_items(find(text), {(i,) for i in gone}))
    assert values(after) == [value for i, value in enumerate(values(text)) if i not in gone]
    assert after.startswith("x = ")
    assert after.endswith("  # after")
    newline = "\r\n" if "\r\n" in text else "\n"
    assert after.count("\n") == after.count(newline)
    for i, item in enumerate(items):
        assert (item.replace("\n", newline) in after) == (i not in gone)


@given(bracketed())
def test_removing_nothing_makes_no_edit(case: tuple[str, list[str]]) -> None:
    assert remove_items(find(case[0]), ()) == ()


@st.composite
def lined(draw: st.DrawFn) -> tuple[list[str], list[int]]:
    """The lines of a dict with an entry a line, comments behind them and above, and the lines of the entries."""
    lines, entries = ["x = {  # the list"], []
    for i in range(draw(st.integers(1, 6))):
        entries.append(len(lines))
        lines.append(f"        'k{i}': [{i}, 'a, b'],{draw(st.sampled_from(['', '  # why', ' # (']))}")
    return [*lines, "}"], entries


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@given(case=lined(), data=st.data())
def test_what_fills_its_line_goes_with_it_and_all_else_stays(
    newline: str, case: tuple[list[str], list[int]], data: st.DataObject
) -> None:
    lines, entries = case
    gone = set(data.draw(st.lists(st.sampled_from(range(len(entries))), min_size=1, unique=True)))
    text = newline.join(["first = 1", *lines, "last = 2", ""])
    found = find_expression("f", text, text.index("{"), text.index("{"))
    after = apply(text, remove_items(found, {(i,) for i in gone}))
    left = [line for at, line in enumerate(lines) if at not in entries or entries.index(at) not in gone]
    assert after == newline.join(["first = 1", *left, "last = 2", ""])


@given(lined(), st.data())
def test_removing_from_an_items_value_leaves_the_lines(case: tuple[list[str], list[int]], data: st.DataObject) -> None:
    lines, entries = case
    chosen = data.draw(st.sampled_from(range(len(entries))))
    text = "\n".join(lines)
    after = apply(text, remove_items(find(text), {(chosen, 1)}))
    expected = [line.replace(", 'a, b'", "") if at == entries[chosen] else line for at, line in enumerate(lines)]
    assert after == "\n".join(expected)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@given(case=lined(), data=st.data())
def test_inserted_strings_take_lines_of_their_own(
    newline: str, case: tuple[list[str], list[int]], data: st.DataObject
) -> None:
    lines, entries = case
    lines = [line.split(":")[0] + "," + line.partition("],")[2] if "':" in line else line for line in lines]
    at = data.draw(st.integers(0, len(entries)))
    text = newline.join(lines)
    after = apply(text, insert_strings(find(text), {at: ["n1", "n2"]}))
    new = ["        'n1',", "        'n2',"]
    assert after == newline.join([*lines[: at + 1], *new, *lines[at + 1 :]])


@pytest.mark.parametrize("text", ["(", "(]", "[1, (2]"])
def test_a_bracket_that_never_closes_is_refused(text: str) -> None:
    with pytest.raises(PorterError) as caught:
        find_expression("f", text, 0, 0)
    assert caught.value.code == "PTR067"


def test_what_is_no_python_is_refused_with_its_line() -> None:
    text = "\n\nx = [\n  1,\n  a b,\n]\n"
    with pytest.raises(PorterError) as caught:
        _ = find(text).items
    assert (caught.value.code, str(caught.value.place)) == ("PTR067", "f:5")
    with pytest.raises(PorterError) as caught:
        remove_items(find(text), {(0,)})
    assert (caught.value.code, str(caught.value.place)) == ("PTR067", "f:5")
    with pytest.raises(PorterError) as caught:
        insert_strings(find(text), {0: ["a"]})
    assert (caught.value.code, str(caught.value.place)) == ("PTR067", "f:3")


def test_a_string_is_told_from_other_nodes() -> None:
    found = find("x = ['a', b'b', 1, c, 'd' 'e']")
    assert [read_string(item.value) for item in found.items] == ["a", "", "", "", "de"]
    assert read_string(None) == ""


@pytest.mark.parametrize(
    ("gone", "left"),
    [
        ({1, 2}, "x = [\n    'a',\n\n    # of c\n    'c',\n]\n"),
        ({1}, "x = [\n    'a',\n\n    # of b\n    'bb',\n\n    # of c\n    'c',\n]\n"),
        ({3}, "x = [\n    'a',\n\n    # of b\n    'b',\n    'bb',\n]\n"),
    ],
)
def test_a_group_that_goes_leaves_one_blank_line(gone: set[int], left: str) -> None:
    text = "x = [\n    'a',\n\n    # of b\n    'b',\n    'bb',\n\n    # of c\n    'c',\n]\n"
    assert apply(text, remove_items(find(text), {(i,) for i in gone})) == left


FORMS = """\
x = (a, b)
x = (a, b , c )
x = f(a, s=(b, c), t=[d])
x = f(a,  # of a
      b,
      # of c
      c)
x = f(
    a,
    b
)
x = [a, b,  # of both
     c]
x = [a,
     # of b
     b]
x = {
    # of a
    a, b,
    c,  # of c
}
"""


def forms() -> list[str]:
    return ["x = " + each for each in FORMS.split("x = ")[1:]]


def without(index: int) -> str:
    """Every form without its item of that index."""
    return "".join(apply(text, remove_items(find(text), {(index,)})) for text in forms())


def test_any_layout_loses_its_first_item() -> None:
    assert_expected_inline(
        without(0),
        """\
x = (b,)
x = (b , c )
x = f(s=(b, c), t=[d])
x = f(b,
      # of c
      c)
x = f(
    b
)
x = [b,  # of both
     c]
x = [
     # of b
     b]
x = {
    # of a
    b,
    c,  # of c
}
""",
    )


def test_any_layout_loses_its_second_item() -> None:
    assert_expected_inline(
        without(1),
        """\
x = (a,)
x = (a, c )
x = f(a, t=[d])
x = f(a,  # of a
      # of c
      c)
x = f(
    a,
)
x = [a,  # of both
     c]
x = [a]
x = {
    # of a
    a,
    c,  # of c
}
""",
    )


def test_any_layout_loses_items_of_an_items_value() -> None:
    text = "x = f(a, s=(b, c), t=[d, e], u={'k': [g, h]})\n"
    left = apply(text, remove_items(find(text), {(1, 0), (2, 0), (2, 1), (3, 0, 1)}))
    assert_expected_inline(
        left,
        """\
x = f(a, s=(c,), t=[], u={'k': [g]})
""",
    )


def test_planning_without_an_edit_imports_no_libcst() -> None:
    code = (
        "import sys; from porter.languages.python_calls import find_expression, remove_items;"
        "import porter.plan.planner; remove_items(find_expression('f', '[1]', 0, 0), ()); print('libcst' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "False\n"


def test_python_does_not_warn_of_the_forks_code(recwarn: pytest.WarningsRecorder) -> None:
    node = Expression("test_mps.py", "[1if x else 2]", 0, 14).node
    assert isinstance(node, ast.List) and not recwarn.list
