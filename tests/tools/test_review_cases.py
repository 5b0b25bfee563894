"""Thirty planted faults and thirty clean changes, as `porter review --no-verify` reads them."""

from __future__ import annotations

import pytest

import review_cases
from porter.review.rule import Case


def test_there_are_thirty_of_each_and_ten_in_files_of_a_person() -> None:
    assert len(review_cases.PLANTED) == len(review_cases.CLEAN) == 30
    in_planted_files = [name for name, (_, case) in review_cases.PLANTED.items() if case.files]
    assert len(in_planted_files) == review_cases.ELSEWHERE


@pytest.mark.parametrize(("rule", "case"), review_cases.PLANTED.values(), ids=review_cases.PLANTED.keys())
def test_a_planted_fault_is_reported_by_its_rule(rule: str, case: Case) -> None:
    assert rule in {finding.rule for finding in review_cases.review_case(case)}


@pytest.mark.parametrize("case", review_cases.CLEAN.values(), ids=review_cases.CLEAN.keys())
def test_a_clean_change_has_no_finding(case: Case) -> None:
    assert review_cases.review_case(case) == ()
