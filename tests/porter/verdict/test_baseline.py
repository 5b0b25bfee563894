"""Which failures of a port the fork had before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from porter.report.as_json import verdict_object
from porter.report.verdict import table
from porter.verdict import judge
from porter.verdict.baseline import EarlierResult, find_candidates, list_inheritable, tell_apart
from porter.verdict.result import Finding, Verdict
from porter.verdict.suite.runner import Outcome

GRADIENT = "TestConsistencyMPS.test_output_grad_match_silu_mps_float16"
FORWARD = "TestConsistencyMPS.test_output_match_silu_mps_float16"
WRONG = (Finding("1 of 20 differ", 0, sample=0), Finding("3 of 9 differ", 0, sample=2))
PASSED = Outcome(FORWARD, "float16", "passed", "", 9, 0.1)

OVERLAY = Finding("RuntimeError: PTR120 MPSGraph has no such message here", 0, sample=1)


def verdict(*findings: Finding) -> Verdict:
    failed = Outcome(GRADIENT, "float16", "failed", findings[0].what, 4, 0.1, findings=findings)
    return judge.judge("silu", [PASSED, failed], 1.0)


def before(*findings: Finding, status: str = "failed") -> dict[str, EarlierResult]:
    return {GRADIENT: EarlierResult(GRADIENT, status, findings)}


def test_what_failed_before_in_the_same_words_and_no_kernel_computed_is_not_the_port_s() -> None:
    found = tell_apart(verdict(*WRONG), before(Finding("forward", 0, 0), *WRONG))
    assert (found.ok, found.passed, found.failed, found.failures) == (True, 1, 0, ())
    assert [(each.test, each.before) for each in found.failed_before] == [(GRADIENT, "failed")]
    assert [(row.failed, row.failed_before) for row in found.dtypes] == [(0, 1)]
    shown = verdict_object(found)["failed_before"][0]
    assert (shown["before"], shown["after"], "findings" in shown) == ("failed", "failed", False)
    assert f"before: failed, after: failed {GRADIENT}: 1 of 20 differ" in table(found)
    assert "PASS: 1 passed, 0 failed, 0 skipped, 1 failed before the port and after" in table(found)


@pytest.mark.parametrize(
    ("now", "then", "status"),
    [
        (WRONG, before(status="passed"), "passed"),
        (WRONG, before(status="skipped"), "skipped"),
        (WRONG, before(status="xfailed"), "xfailed"),
        (WRONG, {}, "not run"),
        (WRONG, before(), "failed"),
        (WRONG, before(WRONG[0]), "failed"),
        (WRONG, before(WRONG[0], replace(WRONG[1], sample=1)), "failed"),
        (WRONG, before(WRONG[0], replace(WRONG[1], what="4 of 9 differ")), "failed"),
        ((WRONG[0], replace(WRONG[1], kernel_calls=1)), before(*WRONG), "failed"),
        ((replace(WRONG[0], sample=-1),), before(replace(WRONG[0], sample=-1)), "failed"),
        ((OVERLAY,), before(OVERLAY), "failed"),
    ],
    ids=[
        "passed",
        "skipped",
        "xfailed",
        "not run",
        "nothing found",
        "fewer",
        "other sample",
        "other words",
        "kernel",
        "broken",
        "the stand-in's",
    ],
)
def test_every_other_failure_stays_one(now: tuple[Finding, ...], then: dict[str, EarlierResult], status: str) -> None:
    found = tell_apart(verdict(*now), then)
    assert (found.ok, found.failed, found.failed_before) == (False, 1, ())
    assert [each.before for each in found.failures] == [status]
    assert [(row.failed, row.failed_before) for row in found.dtypes] == [(1, 0)]


def test_a_result_of_an_inner_call_may_be_wrong_as_the_graph_s_was_and_no_otherwise() -> None:
    """A port of `nll_loss_forward` failed for a weight that nobody reads, and that the graph gave too."""
    inner = Finding("Expected 6.0 but got 8.0.", 3, sample=4, is_inner=True)
    assert find_candidates(verdict(inner)) == (GRADIENT,)
    assert tell_apart(verdict(inner), before(inner)).ok
    other = replace(inner, what="Expected 6.0 but got 7.0.")
    assert not tell_apart(verdict(other), before(inner)).ok
    assert not tell_apart(verdict(inner), before(status="passed")).ok


def test_to_refuse_what_was_wrong_before_is_a_failure() -> None:
    """A port that takes a sample less is no port of it, whatever the old graph made: a type goes by the fork's lists."""
    refused = Finding("NotImplementedError: complex dtypes are not supported", 0, sample=2, is_refusal=True)
    assert not tell_apart(verdict(WRONG[0], refused), before(*WRONG)).ok


def test_what_the_fork_had_does_not_hide_what_the_port_made() -> None:
    """An optional tensor that the old graph raises for was the reason of a port that took a number for another."""
    raised = Finding("RuntimeError: bad optional access", 0, sample=1)
    wrong = Finding("7 of 9 differ", 3, sample=2)
    for then in (before(raised), {}):
        assert [each.reason for each in tell_apart(verdict(raised, wrong), then).failures] == [wrong.what]
    inner = replace(wrong, is_inner=True)
    assert [each.reason for each in tell_apart(verdict(raised, inner), before(raised)).failures] == [wrong.what]


def test_a_failure_that_the_fork_expected_was_one() -> None:
    found = tell_apart(verdict(*WRONG), before(*WRONG, status="xfailed"))
    assert (found.ok, [each.before for each in found.failed_before]) == (True, ["xfailed"])


def test_with_bounds_checks_it_is_the_same_failure() -> None:
    told = tell_apart(verdict(*WRONG), before(*WRONG))
    assert judge.merge_bounds_check(told, [verdict(*WRONG)]) == told
    other = verdict(replace(WRONG[0], what="PTR107 out of bounds"), WRONG[1])
    merged = judge.merge_bounds_check(told, [other])
    assert [each.reason for each in merged.failures] == ["with bounds checks: PTR107 out of bounds"]


def test_only_tests_in_which_no_kernel_computed_what_is_wrong_are_run_before() -> None:
    assert find_candidates(verdict(*WRONG)) == (GRADIENT,)
    assert find_candidates(verdict(WRONG[0], Finding("forward", 2, 1))) == ()
    assert find_candidates(judge.verdict_without_tests("silu", verdict(*WRONG).failures[:0], 0.0)) == ()
    assert find_candidates(verdict(replace(WRONG[0], sample=-1))) == ()
    assert find_candidates(verdict(WRONG[0], OVERLAY)) == ()
    ended = replace(verdict(*WRONG).failures[0], findings=())
    assert find_candidates(judge.verdict_without_tests("silu", [ended], 0.0)) == ()


def test_under_several_arithmetics_each_has_its_own() -> None:
    told = tell_apart(verdict(*WRONG), before(*WRONG))
    fused = replace(verdict(*WRONG), arithmetic="fused")
    both = judge.merge_arithmetics([told, tell_apart(fused, before(*WRONG))])
    assert (both.ok, len(both.failed_before)) == (True, 1)
    one = judge.merge_arithmetics([told, tell_apart(fused, before(status="passed"))])
    assert (one.ok, [each.before for each in one.failures]) == (False, ["passed"])


TYPE = Finding("as given: int32 != float64\ninput: 1", 3, sample=1, is_type=True, type_error="int32 != float64")


@pytest.mark.parametrize(
    ("now", "is_theirs"),
    [
        (TYPE, True),
        (replace(TYPE, is_type=False, type_error=""), False),
        (replace(TYPE, type_error="int64 != float64"), False),
        (replace(TYPE, what="as given: int32 != float64\ninput: another draw"), True),
        (replace(TYPE, what="many tiles: int32 != float64\ninput: 1"), True),
        (replace(TYPE, sample=2), False),
    ],
)
def test_the_type_that_host_code_gives_a_result_with_right_values(now: Finding, is_theirs: bool) -> None:
    """A kernel computed the values, which agree."""
    found = tell_apart(verdict(now), before(replace(TYPE, kernel_calls=0)))
    assert bool(find_candidates(verdict(now))) is now.is_type
    assert found.ok is is_theirs


NEARER = Finding("1 of 20 differ", 4, sample=0, is_nearer=True)


@pytest.mark.parametrize("status", ["failed", "xfailed", "xpassed"])
def test_values_nearer_to_float64_than_the_cpu_s_break_no_test_that_failed_or_is_listed(status: str) -> None:
    assert find_candidates(verdict(NEARER)) == (GRADIENT,)
    found = tell_apart(verdict(NEARER), before(status=status))
    assert (found.ok, [each.before for each in found.failed_before]) == (True, [status])


@pytest.mark.parametrize("findings", [(NEARER,), (NEARER, WRONG[1])], ids=["alone", "beside others"])
def test_values_nearer_to_float64_than_the_cpu_s_break_a_test_that_passed(findings: tuple[Finding, ...]) -> None:
    found = tell_apart(verdict(*findings), before(status="passed"))
    assert (found.ok, [each.before for each in found.failures]) == (False, ["passed"])


def test_values_nearer_to_float64_beside_a_failure_that_the_fork_had() -> None:
    found = tell_apart(verdict(NEARER, WRONG[1]), before(WRONG[1]))
    assert (found.ok, found.failed) == (True, 0)


@pytest.mark.parametrize(("sample", "is_theirs"), [(0, True), (1, False)])
def test_the_cpu_s_own_error_excuses_a_sample_that_was_wrong_before_and_no_other(sample: int, is_theirs: bool) -> None:
    as_near = replace(NEARER, is_nearer=False, is_as_near=True)
    assert find_candidates(verdict(as_near)) == (GRADIENT,)
    assert tell_apart(verdict(as_near), before(Finding("7 of 20 differ", 4, sample=sample))).ok is is_theirs
    assert not tell_apart(verdict(as_near), before(status="xpassed")).ok


@pytest.mark.parametrize(
    ("then", "is_theirs"),
    [
        (Finding("7 of 20 differ", 4, sample=0), True),
        (Finding("half != float", 4, sample=0, is_type=True, type_error="half != float"), False),
        (Finding("not implemented", 0, sample=0, is_refusal=True), False),
    ],
    ids=["values", "a type", "a refusal"],
)
def test_the_cpu_s_own_error_excuses_values_where_values_were_wrong(then: Finding, is_theirs: bool) -> None:
    as_near = replace(NEARER, is_nearer=False, is_as_near=True)
    assert tell_apart(verdict(as_near), before(then)).ok is is_theirs


TYPED = Finding("as it is: half != float", 9, sample=0, is_type=True, type_error="half != float")
TILES = replace(TYPED, what="many tiles: half != float", sample=3)


@pytest.mark.parametrize(
    ("then", "is_ok"),
    [
        ((TYPED, TILES), True),
        ((TYPED, Finding("3 of 9 differ", 9, sample=3)), True),
        ((TYPED,), False),
        ((Finding("1 of 9 differ", 9, sample=0), Finding("3 of 9 differ", 9, sample=3)), False),
    ],
    ids=["both", "values too", "a right sample", "values alone"],
)
def test_a_type_that_host_code_chose_is_known_where_values_were_wrong_too(
    then: tuple[Finding, ...], is_ok: bool
) -> None:
    assert tell_apart(verdict(TYPED, TILES), before(*then)).ok is is_ok


def test_the_line_of_an_assertion_that_a_port_moves_is_no_other_word() -> None:
    def assertion(line: int, file: str = "ReduceOps.mm") -> Finding:
        return Finding(f'false INTERNAL ASSERT FAILED at "mps/operations/{file}":{line}, please report a bug', 0, 0)

    assert tell_apart(verdict(assertion(7)), before(assertion(9))).ok
    assert not tell_apart(verdict(assertion(7)), before(assertion(7, "Shape.mm"))).ok


def test_values_that_the_old_graph_has_wrong_too_are_a_failure_with_a_note() -> None:
    wrong = tuple(replace(each, kernel_calls=2) for each in WRONG)
    assert not find_candidates(verdict(*wrong)) and list_inheritable(verdict(*wrong)) == (GRADIENT,)
    judged = tell_apart(verdict(*wrong), before(*WRONG))
    what = f"the old code fails 1 of these tests in the same words, the first {GRADIENT}"
    assert (judged.ok, judged.failed, judged.failures[0].before) == (False, 1, "failed")
    assert judged.notes[-1] == f"PTR446 {what}: its graph is wrong there, and the port computes the same"
    for then in (before(WRONG[0]), before(*WRONG, status="crashed"), before(status="passed"), {}):
        assert not any("PTR446" in note for note in tell_apart(verdict(*wrong), then).notes)


def test_what_is_refused_and_was_wrong_before_is_a_failure_with_a_note() -> None:
    refused = tuple(replace(each, what="complex dtypes are not supported", is_refusal=True) for each in WRONG)
    judged = tell_apart(verdict(*refused), before(*WRONG))
    assert (judged.ok, judged.failed) == (False, 1)
    what = f"the port refuses what the old code computes wrongly in 1 of these tests, the first {GRADIENT}"
    assert judged.notes[-1] == f"PTR447 {what}: the fork's lists ask for it"
    mixed = tell_apart(verdict(refused[0], WRONG[1]), before(*WRONG))  # the fork had the other, too
    assert [(each.code, each.reason) for each in mixed.failures] == [("PTR447", refused[0].what)]
    for now, then in (
        (refused, before(WRONG[0])),
        (refused, before(*WRONG, status="crashed")),
        (refused, before(status="passed")),
        ((refused[0], replace(WRONG[1], kernel_calls=1)), before(*WRONG)),
        (WRONG, before(*WRONG)),
        (tuple(replace(each, what=f"NotImplementedError: {each.what}") for each in WRONG), before(*WRONG)),
    ):
        assert not any("PTR447" in note for note in tell_apart(verdict(*now), then).notes)


def test_tests_that_compared_nothing_are_not_asked_of_the_old_code() -> None:
    broken = replace(WRONG[0], kernel_calls=2, sample=-1)
    assert list_inheritable(verdict(broken)) == ()
    assert list_inheritable(verdict(*WRONG)) == ()  # asked anyway
