"""What a file or a whole change is, whatever stands in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from porter.core.errors import PorterError
from porter.metal import lint
from porter.review.change import Change, Remark
from porter.review.rule import Rule, Severity, metal_case, rule


@rule(
    Severity.ERROR,
    "The brackets of a changed file do not pair.",
    bad=(metal_case("float f(float x) { return (x; }\n"),),
    good=(metal_case("float f(float x) { return (x); }\n"),),
)
def unreadable(change: Change) -> Iterator[Remark]:
    """A file whose brackets do not pair, or with the marks of a merge, is in no state to be reviewed."""
    for file in (*change.metal, *change.host):
        try:
            file.source.functions()
        except PorterError as error:
            yield Remark(file.path, error.place.line if error.place else 0, error.what, error.hint)


MOST_LINES = 600


@rule(
    Severity.ADVICE,
    f"A change has more than {MOST_LINES} lines, added and removed.",
    bad=(metal_case("constant int n = 0;\n" * MOST_LINES),),
    good=(metal_case("constant int n = 0;\n" * (MOST_LINES - 10)),),
)
def size(change: Change) -> Iterator[Remark]:
    """Reviewers ask for about 600 lines a pull request (187788, 182255)."""
    lines = {file.path: len(file.added) + len(file.removed) for file in change.files}
    if sum(lines.values()) > MOST_LINES:
        largest = max(lines, key=lambda path: lines[path])
        what = f"the change has {sum(lines.values())} lines, {lines[largest]} of them here"
        yield Remark(largest, 0, what, f"Split it: reviewers ask for about {MOST_LINES} lines.")


def _check_metal_code(name: str, change: Change) -> Iterator[Remark]:
    """What `porter.metal.lint` finds on the lines that a change adds: what Apple refuses, lost NaNs."""
    for file in change.metal:
        try:
            findings = lint.lint(file.path, file.after)
        except PorterError:  # brackets that do not pair: the rule for unreadable files has it
            continue
        yield from (
            Remark(file.path, finding.line, finding.text)
            for finding in findings
            if finding.rule == name and finding.line in file.added
        )


def _make_rule(rule: lint.Rule) -> Rule:
    return Rule(
        f"metal-{rule.name}",
        Severity.ERROR,
        f"The lint of Metal's `{rule.name}`: code that Apple's compiler refuses, or a NaN that is lost.",
        partial(_check_metal_code, rule.name),
        tuple(map(metal_case, rule.bad)),
        tuple(map(metal_case, rule.good)),
    )


METAL_CODE = tuple(map(_make_rule, lint.RULES))
