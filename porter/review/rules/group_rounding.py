"""`(n / 32 + 1) * 32` is a group too many where 32 divides n, and rounds nothing where it is a maximum."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Rule, host_case

_ROUNDED = re.compile(r"\(?\s*[\w.()\->]+\s*/\s*(?P<size>\w+)\s*\+\s*1\s*\)?\s*\*\s*(?P=size)\b")
_FLOORED = re.compile(r"MTLSizeMake\(\s*[\w.()\->]*(?:numel|count|size|length|num_\w+|\bn)\w*(?:\(\))?\s*/\s*\w+\s*,")


def _check(change: Change) -> Iterator[Remark]:
    for file in change.host:
        for match in _ROUNDED.finditer(file.after):
            if file.touches(match.start(), match.end()):
                what = f"`{match[0].strip()}` is a group too many where {match['size']} divides the number"
                yield file.remark(match.start(), what, "Write `at::ceil_div`, times the size of a group.")
        for match in _FLOORED.finditer(file.after):
            if file.touches(match.start(), match.end()):
                what = f"`{match[0].rstrip(', ')}` drops the last part of a group"
                yield file.remark(match.start(), what, "Write `at::ceil_div`, and guard the loads and stores.")


RULE = Rule(
    "group-rounding",
    Severity.WARNING,
    "A number of threads or groups is rounded wrongly: one too many, or the last part of a group dropped.",
    _check,
    bad=(
        host_case("void f() {\n  auto threads = (count / 32 + 1) * 32;\n}\n"),
        host_case("void f() {\n  auto groups = MTLSizeMake(numel / 256, 1, 1);\n}\n"),
    ),
    good=(
        host_case("void f() {\n  auto threads = at::ceil_div(count, 32) * 32;\n}\n"),
        host_case("void f() {\n  auto groups = MTLSizeMake((numel + 255) / 256, 1, 1);\n}\n"),
    ),
)
