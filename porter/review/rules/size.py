"""Reviewers ask for about 600 lines a pull request (187788, 182255)."""

from __future__ import annotations

from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Rule, metal_case

MOST_LINES = 600


def _check(change: Change) -> Iterator[Remark]:
    lines = {file.path: len(file.added) + len(file.removed) for file in change.files}
    if sum(lines.values()) > MOST_LINES:
        largest = max(lines, key=lambda path: lines[path])
        what = f"the change has {sum(lines.values())} lines, {lines[largest]} of them here"
        yield Remark(largest, 0, what, f"Split it: reviewers ask for about {MOST_LINES} lines.")


RULE = Rule(
    "size",
    Severity.ADVICE,
    f"A change has more than {MOST_LINES} lines, added and removed.",
    _check,
    bad=(metal_case("constant int n = 0;\n" * MOST_LINES),),
    good=(metal_case("constant int n = 0;\n" * (MOST_LINES - 10)),),
)
