"""The section of another tree on a page of coverage."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.errors import PorterError
from porter.report.coverage import LIBRARY, NATIVE, Coverage, CoverageRow
from porter.report.results import (
    FAIL,
    NO_VERDICT,
    NOT_PLANNED,
    PASS,
    VERSION,
    OperatorResult,
    Provenance,
    Results,
)
from porter.verdict.result import Verdict

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import coverage_page
from coverage_page import describe_count, list_lines, put_section, require_alike, table_text

PAGE = "# Coverage\n\nFrom one.\n\n## What is left\n\nNothing.\n"
RUNS = "own row from runs"
ROWS = tuple(
    CoverageRow(name, name.split(".")[0], "File", outcome, code, reason, port)
    for name, outcome, code, reason, port in (
        ("amax.out", NO_VERDICT, "PTR330", "no result names it", RUNS),
        ("cat.out", NO_VERDICT, "PTR330", "no result names it", RUNS),
        ("copy", NOT_PLANNED, "PTR368", "no function", "none"),
        ("exp.out", NATIVE, "", "", ""),
        ("lstm", LIBRARY, "", "", "library call"),
        ("sort", NOT_PLANNED, "PTR072", "no stub", "none"),
        ("sort.values", NO_VERDICT, "PTR330", "no result names it", RUNS),
        ("topk.values", NO_VERDICT, "PTR330", "no result names it", RUNS),
    )
)
TREE = Coverage("now", "d", None, ROWS[:2], ROWS[2:])


def run(commit: str, *operators: OperatorResult) -> Results:
    return Results(VERSION, Provenance("1.0", commit * 40, "2.15.0"), "now", "d", "", operators)


FILES = (
    run("a", OperatorResult("cat", "File", FAIL, "PTR331", "1 | 2\nmore"), OperatorResult("exp", "File", PASS)),
    run("b", OperatorResult("cat", "File", PASS, verdict=Verdict("cat", "host", "default", 12, 0, 0, 1, None, 1.0))),
    run("c", OperatorResult("topk", "File", FAIL, "PTR331", "1 | 2\nmore")),
)


def test_the_table_has_what_came_last_of_each_operator_that_builds_a_graph() -> None:
    assert_expected_inline(
        table_text(list_lines(TREE, FILES), "From one."),
        """\
Made by `python tools/coverage_page.py PAGE TITLE TREE RESULTS`.

From one.

6 operators build graphs: passed 1, failed 1, not planned 1, library call 1, not asked 2. This commit counted them; a verdict is by the commit of porter in its row, shortened.

| operator | tests passed | outcome | code and reason | commit |
| --- | --- | --- | --- | --- |
| `cat` | 12 | passed |  | bbbbbbbb |
| `copy` |  | not planned | PTR368 no function |  |
| `lstm` |  | library call |  |  |
| `topk` |  | failed | PTR331 1 \\| 2 | cccccccc |

Not asked for a verdict: `amax`, `sort`.
""",
    )


def test_operators_are_counted_by_the_porter_that_runs_not_by_the_last_that_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coverage_page, "read_provenance", lambda: Provenance("1.1", "dddd", "2.11.0"))
    counted = describe_count(TREE, FILES[-1])
    assert counted == "From porter 1.1 at commit dddd, torch 2.15.0, on the fork now (digest d)."


def test_results_of_another_tree_or_torch_are_refused() -> None:
    require_alike(FILES)
    for other in (replace(FILES[0], digest="e"), replace(FILES[0], made_by=Provenance("1.0", "a", "2.14.1"))):
        with pytest.raises(PorterError, match="PTR328"):
            require_alike((*FILES, other))


def test_a_section_is_the_last_and_named_at_the_top() -> None:
    assert_expected_inline(
        put_section(PAGE, "Current tree (2.15)", "The table.\n", "Made of two."),
        """\
# Coverage

Also on this page: [Current tree (2.15)](#current-tree-215).

From one.

## What is left

Nothing.

## Current tree (2.15)

Made of two.

The table.
""",
    )


def test_a_section_keeps_its_first_paragraph_and_what_has_a_heading_of_its_own() -> None:
    both = put_section(put_section(PAGE, "First tree", "One.\n", "Made of one."), "Second tree", "Two.\n")
    parts = both.replace("One.\n", "One.\n\n### Natives\n\nAll.\n", 1)
    again = put_section(parts, "First tree", "Three.\n")
    assert again == parts.replace("One.", "Three.", 1) and again != parts
    assert "[First tree](#first-tree), [Second tree](#second-tree).\n" in again
    assert put_section(again, "First tree", "Three.\n") == again
