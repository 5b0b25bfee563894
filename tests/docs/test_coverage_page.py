"""docs/coverage.md names what each of its tables was made by."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coverage.md"
ORIGIN = re.compile(
    r"^From porter [\w.]+ at commit [0-9a-f]{40}, torch [\w.+]+, on the fork \S+ \(digest [0-9a-f]{8,}\)\.$", re.M
)


MADE_BY = re.compile(r"^Made by `", re.M)


def test_each_table_of_coverage_names_the_commit_the_torch_and_the_fork_that_it_is_of() -> None:
    """One commit, and none whose files were changed."""
    tables = MADE_BY.findall(PAGE.read_text())
    assert tables and len(ORIGIN.findall(PAGE.read_text())) == len(tables)
