"""The rules of a review: each on its own cases, and all of them on nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from porter.core.errors import PorterError
from porter.core.layout import OPERATIONS, TEST_MPS
from porter.review.change import Change
from porter.review.rule import Case, Rule, run_rules
from porter.review.rules import RULES


def _cases(kind: str) -> list[object]:
    return [
        pytest.param(rule, case, id=f"{rule.name}-{at}")
        for rule in RULES
        for at, case in enumerate(getattr(rule, kind))
    ]


@pytest.mark.parametrize(("rule", "case"), _cases("bad"))
def test_a_rule_reports_its_faults(rule: Rule, case: Case) -> None:
    assert run_rules([rule], case.make_change())


@pytest.mark.parametrize(("rule", "case"), _cases("good"))
def test_a_rule_accepts_their_repairs(rule: Rule, case: Case) -> None:
    assert run_rules([rule], case.make_change()) == ()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_says_nothing_of_code_that_stays(rule: Rule) -> None:
    for case in rule.bad:
        change = case.make_change()
        paths = [file.path for file in change.files]
        assert run_rules([rule], Change.between(change.after, change.after, paths)) == ()


def test_every_rule_has_a_name_of_its_own_and_cases_of_both_kinds() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert [rule.name for rule in RULES if not (rule.bad and rule.good)] == []


def test_the_page_of_reviews_has_every_rule_and_no_other() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "review.md").read_text()
    sections = [line.removeprefix("### ") for line in page.splitlines() if line.startswith("### ")]
    assert sections == [rule.name for rule in RULES]
    assert [rule.name for rule in RULES if rule.summary not in page] == []


@pytest.mark.parametrize(
    ("files", "name"),
    [
        ({f"{OPERATIONS}/Planted.mm": "(" * 200_000}, "group-rounding"),
        ({TEST_MPS: f"x = {'1+' * 200_000}1\n"}, "large-test"),
    ],
)
def test_a_rule_that_has_no_end_is_stopped(files: dict[str, str], name: str) -> None:
    """A line of parentheses kept an expression of a rule busy for minutes, and a long sum ended in a traceback."""
    slow = [each for each in RULES if each.name == name]
    files = {path: f"# @largeTensorTest\n{text}" if path == TEST_MPS else text for path, text in files.items()}
    started = time.process_time()
    with pytest.raises(PorterError, match="PTR177"):
        run_rules(slow, Case(files).make_change(), seconds=0.2)
    assert time.process_time() - started < 20
