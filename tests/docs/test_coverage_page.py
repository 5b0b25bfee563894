"""docs/coverage.md names what it was made by: a whole run on the commit before it."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "coverage.md"
ORIGIN = re.compile(
    r"^From porter [\w.]+ at commit [0-9a-f]{40}, torch [\w.+]+, on the fork \S+ \(digest [0-9a-f]{8,}\)\.$", re.M
)


def test_the_table_of_coverage_names_the_commit_the_torch_and_the_fork_that_it_is_of() -> None:
    """One commit, and none whose files were changed."""
    assert len(ORIGIN.findall(PAGE.read_text())) == 1
