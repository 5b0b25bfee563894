"""Calls split by what sets known cases apart."""

from __future__ import annotations

from porter.recording.joining import order_cases, split_by_flags

MEAN = [{"reduction": 1, "ignored": 3, "self.dim()": 2}, {"reduction": 1, "ignored": 5, "self.dim()": 2}]
SUM = [{"reduction": 2, "ignored": 3, "self.dim()": 2}]


def test_calls_are_split_by_what_cases_differ_in() -> None:
    group = [{"reduction": each, "ignored": 7 + each, "self.dim()": 1} for each in (1, 2, 1)]
    assert split_by_flags(group, [MEAN, SUM]) == [[0, 2], [1]]


def test_calls_stay_together_where_nothing_sets_cases_apart() -> None:
    group = [{"reduction": each} for each in (1, 2)]
    assert split_by_flags(group, [MEAN]) == [[0, 1]]


def test_the_case_of_a_calls_own_flags_is_first() -> None:
    assert order_cases({"reduction": 2, "self.dim()": 1}, [MEAN, SUM]) == [1, 0]


def test_an_argument_counts_for_more_than_what_tensors_are_like() -> None:
    flat = [{"reduction": 1, "self.dim()": 1, "self.is_contiguous()": True}]
    wide = [{"reduction": 2, "self.dim()": 2, "self.is_contiguous()": False}]
    call = {"reduction": 2, "self.dim()": 1, "self.is_contiguous()": True}
    assert order_cases(call, [flat, wide]) == [1, 0]
