"""The section of another tree on a page of coverage."""

from __future__ import annotations

import sys
from pathlib import Path

from expecttest import assert_expected_inline

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

from coverage_page import put_section

PAGE = "# Coverage\n\nFrom one.\n\n## What is left\n\nNothing.\n"
OTHER = "# Coverage\n\nFrom two.\n\n## What is left\n\n| row |\n"


def test_the_section_of_another_tree_is_the_last_and_named_at_the_top() -> None:
    assert_expected_inline(
        put_section(PAGE, "Current tree (2.15)", OTHER, "Made of two."),
        """\
# Coverage

Also on this page: [Current tree (2.15)](#current-tree-215).

From one.

## What is left

Nothing.

## Current tree (2.15)

Made of two.

From two.

### What is left

| row |
""",
    )


def test_a_section_is_replaced_and_others_stay() -> None:
    both = put_section(put_section(PAGE, "First tree", OTHER), "Second tree", OTHER)
    again = put_section(both, "First tree", OTHER.replace("two", "three"))
    assert again.startswith(
        "# Coverage\n\nAlso on this page: [First tree](#first-tree), [Second tree](#second-tree).\n\n"
    )
    assert [line for line in again.splitlines() if line.startswith("From")] == ["From one.", "From two.", "From three."]
    assert put_section(again, "First tree", OTHER.replace("two", "three")) == again
