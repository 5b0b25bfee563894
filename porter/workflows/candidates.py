"""The candidates for what a functor computes, judged one after the other until the verdict is right."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from porter.core.checkout import Checkout
from porter.core.dtypes import BY_TORCH, Kind
from porter.metal.functor import Origin
from porter.metal.kernel import FIRST_CANDIDATES, CandidateChoice
from porter.metal.kernel_spec import RecordedGraph, no_recording
from porter.plan.plan import Plan, RejectedCandidate
from porter.plan.planner import plan_operator
from porter.verdict.result import Failure, Verdict

Prove = Callable[[Plan], Verdict]


@dataclass(frozen=True)
class Trial:
    """A plan with the candidates of this choice, its verdict, and the candidates that it was preferred to."""

    choice: CandidateChoice
    plan: Plan
    verdict: Verdict
    rejected: tuple[RejectedCandidate, ...] = ()

    @property
    def rank(self) -> tuple[bool, int]:
        """How far from right it is: one that ran no test to its end is further than any that did."""
        return self.verdict.passed == 0, self.verdict.failed

    def value_failures(self, kinds: Sequence[Kind]) -> list[Failure]:
        """The tests of elements of these kinds in which the kernels ran, and computed something else than the CPU."""
        found = (f for f in self.verdict.failures if f.kernel_calls and f.dtype in BY_TORCH)
        return [failure for failure in found if BY_TORCH[failure.dtype].kind in kinds]


def choose_candidates(checkout: Checkout, plan: Plan, prove: Prove, recorded: RecordedGraph = no_recording) -> Trial:
    """Proves a plan of the checkout; a candidate that computes wrong values gives way to one that fails fewer tests.

    Raises what planning and proving raise.
    """
    best = Trial(FIRST_CANDIDATES, plan, prove(plan))
    rejected: list[RejectedCandidate] = []
    for functor in plan.functors:
        for origin in functor.origins:
            for turn in range(1, origin.count):
                if not best.value_failures(origin.kinds):
                    break
                choice = {**best.choice, (functor.name, origin.kinds[0]): turn}
                other_plan = plan_operator(checkout, plan.op, choice, recorded)
                other = Trial(choice, other_plan, prove(other_plan))
                better = other.rank < best.rank
                rejected.append(_reject(best if better else other, functor.name, origin))
                best = other if better else best
    return Trial(best.choice, best.plan, best.verdict, tuple(rejected))


def _reject(trial: Trial, functor: str, origin: Origin) -> RejectedCandidate:
    [planned] = [each for each in trial.plan.functors if each.name == functor]
    [source] = [each.source for each in planned.origins if each.kinds == origin.kinds]
    failures = trial.value_failures(origin.kinds) or trial.verdict.failures
    return RejectedCandidate(functor, origin.kinds, source, len(failures), _describe_failure(failures))


def _describe_failure(failures: Sequence[Failure]) -> str:
    """The failure that needs the fewest lines: it names a value."""
    failure = min(failures, key=lambda each: each.reason.count("\n"))
    return f"{failure.test.rpartition('.')[2]}: {failure.reason.splitlines()[0]}"
