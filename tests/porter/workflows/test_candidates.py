"""Candidates give way to one another by their verdicts; the verdicts are made up here."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.dtypes import Kind
from porter.plan.plan import Plan
from porter.plan.planner import plan_operator
from porter.report.as_json import plan_object
from porter.report.terminal import summary
from porter.verdict.judge import judge, verdict_without_tests
from porter.verdict.result import Failure, Verdict
from porter.workflows.candidates import Trial, choose_candidates

FORK = Checkout(EMBEDDED_FORK, "test")
OP = "log1p"
FAILED = Failure("TestConsistencyMPS.test_accuracy_mps_float32", "2 for 1\nand more", "float32", kernel_calls=3)


def choose(plan: Plan, prove: Callable[[Plan], Verdict]) -> Trial:
    """The best candidate by verdicts of all tests."""
    return choose_candidates(FORK, plan, lambda candidate, _: prove(candidate))


def index(plan: Plan, kind: Kind = Kind.FLOATING) -> int:
    [found] = [origin.index for functor in plan.functors for origin in functor.origins if kind in origin.kinds]
    return found


def verdict(failures: list[Failure]) -> Verdict:
    """Of a run in which other tests passed."""
    return replace(verdict_without_tests(OP, failures, 0.0), passed=7)


def verdicts(failures: Callable[[Plan], list[Failure]], seen: list[int]) -> Callable[[Plan], Verdict]:
    def prove(plan: Plan) -> Verdict:
        seen.append(index(plan))
        return verdict(failures(plan))

    return prove


def test_a_candidate_with_wrong_values_is_replaced_and_reported() -> None:
    seen: list[int] = []
    first = plan_operator(FORK, OP)
    best = choose(first, verdicts(lambda plan: [FAILED] * (index(plan) == 0), seen))
    assert (seen, index(best.plan), best.verdict.failed) == ([0, 1], 1, 0)
    assert best.plan.changes.diff() != first.changes.diff()
    [loser] = best.rejected
    source = first.functors[0].origins[0].source
    assert (loser.functor, loser.source, loser.failed) == (OP, source, 1)
    assert loser.kinds == (Kind.FLOATING, Kind.INTEGRAL, Kind.BOOL)
    assert loser.reason == "test_accuracy_mps_float32: 2 for 1"
    assert f"{OP}: from {source}: fails 1 test for floating, integral, bool dtypes: {loser.reason}" in summary(
        best.plan, best.rejected
    )
    assert plan_object(best.plan, None, best.rejected)["losers"] == [
        {
            "functor": OP,
            "kinds": ["floating", "integral", "bool"],
            "source": str(source),
            "failed": 1,
            "reason": loser.reason,
        }
    ]


def test_a_rejected_candidate_shows_its_shortest_failure() -> None:
    short = Failure("T.test_edge_values_mps_float32", "1 differs, first at 2.0", "float32", kernel_calls=1)
    plan = plan_operator(FORK, OP)
    best = choose(plan, lambda each: verdict([FAILED, short] if index(each) == 0 else []))
    assert [loser.reason for loser in best.rejected] == ["test_edge_values_mps_float32: 1 differs, first at 2.0"]


def test_the_candidate_with_the_fewest_failures_is_kept() -> None:
    seen: list[int] = []
    counts = {0: 2, 1: 3}
    best = choose(plan_operator(FORK, OP), verdicts(lambda plan: [FAILED] * counts[index(plan)], seen))
    assert (seen, index(best.plan), best.verdict.failed) == ([0, 1], 0, 2)
    assert [loser.failed for loser in best.rejected] == [3]


def test_a_candidate_that_does_not_compile_is_worse_than_any_that_does() -> None:
    broken = verdict_without_tests(OP, [Failure("build", "PTR101 the Metal source does not compile")], 0.0)
    best = choose(plan_operator(FORK, OP), lambda plan: broken if index(plan) else verdict([FAILED, FAILED]))
    assert (index(best.plan), best.verdict.failed) == (0, 2)
    assert [loser.reason for loser in best.rejected] == ["build: PTR101 the Metal source does not compile"]


@pytest.mark.parametrize(
    "failure",
    [
        Failure("build", "PTR101 the Metal source does not compile"),
        Failure("TestConsistencyMPS.test_out_mps_float32", "never reached the ported kernel", "float32"),
    ],
)
def test_failures_unrelated_to_values_keep_the_candidate(failure: Failure) -> None:
    seen: list[int] = []
    best = choose(plan_operator(FORK, OP), verdicts(lambda plan: [failure], seen))
    assert (seen, best.rejected) == ([0], ())


def test_a_wrong_dtype_kind_leaves_the_other_kinds_unchanged() -> None:
    plan = plan_operator(FORK, "exp2")
    other = Failure("t", "r", "complex64", kernel_calls=1)
    assert index(plan, Kind.FLOATING) == 0
    best = choose(plan, lambda each: verdict([other] * (index(each, Kind.COMPLEX) == 0)))
    assert (index(best.plan, Kind.COMPLEX), index(best.plan, Kind.FLOATING)) == (1, 0)


def test_a_verdict_counts_kernel_calls() -> None:
    class Outcome:
        test, dtype, status, reason, calls = "t", "float32", "failed", "r", 4
        seconds, max_ulp, cpu_ulp, findings, fork_findings, remarks = 0.0, None, None, (), (), ()

    assert judge(OP, [Outcome()], 0.0).failures == (Failure("t", "r", "float32", kernel_calls=4),)


def test_what_the_lists_expect_to_fail_and_still_does_stays_listed() -> None:
    """A port that frees a test which fails as before would turn the fork's own tests red."""
    first = plan_operator(FORK, OP)
    older = Failure("TestConsistencyMPS.test_output_match_log1p_mps_int64", "refused", "int64", before="xfailed")

    def frees(plan: Plan) -> bool:
        return any("int64" in each.why and not each.is_kept for each in plan.lists)

    assert frees(first)
    best = choose(first, lambda plan: replace(verdict([]), failed_before=(older,) if frees(plan) else ()))
    assert (frees(best.plan), best.verdict.failed_before) == (False, ())
    plain = replace(verdict([]), failed_before=(replace(older, before="failed"),))
    assert choose(first, lambda _: plain).plan is first
