"""A file whose brackets do not pair, or with the marks of a merge, is in no state to be reviewed."""

from __future__ import annotations

from collections.abc import Iterator

from porter.core.errors import PorterError
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Rule, metal_case


def _check(change: Change) -> Iterator[Remark]:
    for file in (*change.metal, *change.host):
        try:
            file.source.functions()
        except PorterError as error:
            yield Remark(file.path, error.place.line if error.place else 0, error.what, error.hint)


RULE = Rule(
    "unreadable",
    Severity.ERROR,
    "The brackets of a changed file do not pair.",
    _check,
    bad=(metal_case("float f(float x) { return (x; }\n"),),
    good=(metal_case("float f(float x) { return (x); }\n"),),
)
