"""What `porter.metal.lint` finds on the lines that a change adds: what Apple refuses, lost NaNs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from porter.core.errors import PorterError
from porter.metal import lint
from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Rule, metal_case


def _check(name: str, change: Change) -> Iterator[Remark]:
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
        partial(_check, rule.name),
        tuple(map(metal_case, rule.bad)),
        tuple(map(metal_case, rule.good)),
    )


RULES = tuple(map(_make_rule, lint.RULES))
