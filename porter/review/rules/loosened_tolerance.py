"""A tolerance is measured, not guessed (182109): a change that sets one says beside it what the error is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from porter.review.change import Change, Remark
from porter.review.finding import Severity
from porter.review.rule import Case, Rule

_TOLERANCE = re.compile(r"\b(?:atol|rtol)\s*=\s*[\d.]|\btol\(|\btoleranceOverride\b|exact_dtype\s*=\s*False")
_TESTS = "test/test_mps.py"


def _check(change: Change) -> Iterator[Remark]:
    for file in change.tests:
        lines = file.after.splitlines()
        removed = {" ".join(line.split()) for line in file.removed}
        for number in sorted(file.added):
            line = lines[number - 1]
            before = lines[number - 2] if number > 1 else ""
            match = _TOLERANCE.search(line)
            if (
                match
                and "#" not in line
                and not before.lstrip().startswith("#")
                and " ".join(line.split()) not in removed
            ):
                what = f"a tolerance is set (`{match[0].strip()}`), and nothing says what the error is"
                hint = "Measure it, and say it in a comment: `porter verify` has the ULP of each dtype."
                yield Remark(file.path, number, what, hint, match.start() + 1)


_LINE = "            self.assertEqual(actual, expected, exact_device=False)\n"
RULE = Rule(
    "loosened-tolerance",
    Severity.WARNING,
    "A test sets a tolerance, and no comment says what error was measured.",
    _check,
    bad=(
        Case(edits=((_TESTS, _LINE, _LINE.replace("exact_device=False", "exact_device=False, atol=1e-2, rtol=1e-2")),)),
    ),
    good=(
        Case(
            edits=(
                (
                    _TESTS,
                    _LINE,
                    "            # float16 is off by 1 ULP, 9.8e-4\n"
                    + _LINE.replace("exact_device=False", "atol=1e-3, rtol=1e-3"),
                ),
            )
        ),
        Case(edits=((_TESTS, _LINE, _LINE + _LINE),)),
    ),
)
