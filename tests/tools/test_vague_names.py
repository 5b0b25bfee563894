"""Names that carry nothing are counted where they hold more than a short comprehension does."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import vague_names


@pytest.mark.parametrize(
    "text",
    [
        "found = 1",
        "for each in (): pass",
        "def f(known): pass",
        "with open('x') as made: pass",
        "if (left := 1): pass",
        "a, taken = 1, 2",
        "told: int = 1",
        "[each\n for each in ()\n if each]",
        "match 1:\n  case given: pass",
        "try: pass\nexcept OSError as found: pass",
        "[x for x in [own := 1]]",
    ],
)
def test_a_name_that_is_bound_is_counted_once(text: str) -> None:
    assert len(vague_names.find_vague(ast.parse(text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "[each for each in ()]",
        "{each:\n each for each in ()}",
        "f(given=1)",
        "x.left = 1",
        "lambda each: each",
        "print(found)",
    ],
)
def test_short_comprehensions_and_what_binds_no_local_do_not_count(text: str) -> None:
    assert vague_names.find_vague(ast.parse(text)) == []


def test_a_file_may_not_have_more_than_the_ledger_says() -> None:
    ledger = {"a.py": 2, "b.py": 1}
    assert vague_names.find_growth(ledger, {"a.py": 2}) == []
    assert vague_names.find_growth(ledger, {"a.py": 3, "c.py": 1}) == [
        "a.py: 3 vague names, 2 before",
        "c.py: 1 vague names, 0 before",
    ]


def test_the_ledger_shrinks_and_never_grows() -> None:
    ledger = {"a.py": 2, "b.py": 1}
    assert vague_names.shrink(ledger, {"a.py": 1}) == {"a.py": 1}
    assert vague_names.shrink(ledger, {"moved.py": 2, "b.py": 1}) == {"b.py": 1, "moved.py": 2}
    with pytest.raises(ValueError, match=r"c\.py: 4 vague names, 0 before"):
        vague_names.shrink(ledger, {"c.py": 4})


def test_files_are_counted_below_a_root(tmp_path: Path) -> None:
    for name in ("porter/a.py", "porter/b.py", "aten_overlay/fork/c.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("found = 1\nmade = 2\n" if name != "porter/b.py" else "x = 1\n")
    assert vague_names.count_files(tmp_path) == {"porter/a.py": 2}
