"""A problem matcher of GitHub, which annotates lines for what `porter lint` prints in any job."""

from __future__ import annotations

import json
from collections.abc import Iterator

from porter.core.checkout import Checkout
from porter.core.edits import Edit
from porter.core.layout import MATCHER
from porter.plan.toolbelt.text import replace_file

# `path:line: severity: what [rule]`, as the text of a review has it; advice has no level at GitHub.
PATTERN = {
    "regexp": r"^(\S.*?):(\d+): (error|warning): (.+) \[([a-z0-9-]+)\]$",
    "file": 1,
    "line": 2,
    "severity": 3,
    "message": 4,
    "code": 5,
}


def add_problem_matcher(checkout: Checkout) -> Iterator[Edit]:
    """Writes the matcher. A job takes it by `echo "::add-matcher::PATH"`."""
    matcher = {"problemMatcher": [{"owner": "porter", "pattern": [PATTERN]}]}
    yield from replace_file(checkout, MATCHER, f"{json.dumps(matcher, indent=2)}\n")
