"""Tries the candidates for a functor until the verdict passes, and remembers what verdicts decided."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from porter.core import cache, codec
from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.dtypes import BY_TORCH, Kind
from porter.core.errors import PorterError
from porter.metal.functor import Origin
from porter.metal.kernel import FIRST_CANDIDATES, CandidateChoice
from porter.metal.kernel_spec import RecordedGraph, no_recording
from porter.plan.plan import Plan, RejectedCandidate
from porter.plan.planner import plan_operator
from porter.verdict.baseline import LISTED
from porter.verdict.client import digest_tested_code, key
from porter.verdict.result import DEFAULT, HOST, MPS, Failure, Proof, Verdict

Prove = Callable[[Plan, Proof], Verdict]
WHOLE = Proof()


class Planner(Protocol):
    """Plans an operator with a choice of candidates; entries of the test lists stay for the tests `listed`."""

    def __call__(
        self,
        checkout: Checkout,
        op: str,
        choice: CandidateChoice,
        recorded: RecordedGraph,
        *,
        listed: Collection[str] = (),
    ) -> Plan: ...


@dataclass(frozen=True)
class Trial:
    """A plan with one choice of candidates, its verdict, and the candidates rejected so far.

    Entries of the test lists stay for the tests `listed`.
    """

    choice: CandidateChoice
    plan: Plan
    verdict: Verdict
    rejected: tuple[RejectedCandidate, ...] = ()
    listed: frozenset[str] = frozenset()

    @property
    def rank(self) -> tuple[bool, int]:
        """Lower is better. A plan for which no test passed ranks below any other."""
        return self.verdict.passed == 0, self.verdict.failed

    @property
    def fails_as_listed(self) -> frozenset[str]:
        """The tests that the fork's lists expected to fail, that fail as before, and that the plan frees."""
        return frozenset(f.test for f in self.verdict.failed_before if f.before in LISTED)

    def value_failures(self, kinds: Sequence[Kind]) -> list[Failure]:
        """The failed tests of these dtype kinds in which the kernels ran: they computed wrong values."""
        found = (f for f in self.verdict.failures if f.kernel_calls and f.dtype in BY_TORCH)
        return [failure for failure in found if BY_TORCH[failure.dtype].kind in kinds]


def choose_candidates(
    checkout: Checkout,
    plan: Plan,
    prove: Prove,
    recorded: RecordedGraph = no_recording,
    planner: Planner = plan_operator,
    proof: Proof = WHOLE,
) -> Trial:
    """Verifies a plan, and replaces each candidate that computes wrong values with one that fails fewer tests.

    Raises what `planner` and `prove` raise.
    """
    trials = try_candidates(checkout, plan, recorded, planner, proof)
    asked = next(trials)
    while True:
        try:
            asked = trials.send(prove(asked.plan, asked.proof))
        except StopIteration as end:
            best: Trial = end.value
            return best


@dataclass(frozen=True)
class Candidate:
    """A plan with one choice of candidates, whose verdict is asked for; entries for the tests `listed` stay."""

    choice: CandidateChoice
    plan: Plan
    proof: Proof
    listed: frozenset[str] = frozenset()


Trials = Generator[Candidate, Verdict, Trial]


def try_candidates(
    checkout: Checkout,
    plan: Plan,
    recorded: RecordedGraph = no_recording,
    planner: Planner = plan_operator,
    proof: Proof = WHOLE,
) -> Trials:
    """Yields plans, takes their verdicts, and returns the best: the steps of `choose_candidates`, for many at once.

    Only verdicts of all tests choose. Where tests are selected, the candidates are those that such a verdict chose
    before; if none is remembered, and there are several, it is asked for now.
    """
    if not proof.selects:
        return (yield from _choose(checkout, plan, recorded, planner, proof))
    decision = recall_decision(checkout, plan)
    if decision is None and count_candidates(plan) > 1:
        selected = yield Candidate(FIRST_CANDIDATES, plan, proof)  # before all tests run: it may select none
        best = yield from _choose(checkout, plan, recorded, planner, proof.whole)
        if best.plan is plan:
            return replace(best, verdict=selected)
    elif decision is None or decision.is_of(plan):
        return Trial(FIRST_CANDIDATES, plan, (yield Candidate(FIRST_CANDIDATES, plan, proof)))
    else:
        listed = frozenset(decision.listed)
        chosen = planner(checkout, plan.op, decision.choice, recorded, listed=listed)
        asked = Candidate(decision.choice, chosen, proof, listed)
        return Trial(decision.choice, chosen, (yield asked), listed=listed)
    return replace(best, verdict=(yield Candidate(best.choice, best.plan, proof, best.listed)))


def _choose(checkout: Checkout, plan: Plan, recorded: RecordedGraph, planner: Planner, proof: Proof) -> Trials:
    """Chooses by verdicts of all tests, and remembers the choice."""
    best = Trial(FIRST_CANDIDATES, plan, (yield Candidate(FIRST_CANDIDATES, plan, proof)))
    rejected: list[RejectedCandidate] = []
    for functor in plan.functors:
        for origin in functor.origins:
            for index in range(1, origin.count):
                if not best.value_failures(origin.kinds):
                    break
                choice = {**best.choice, (functor.name, origin.kinds[0]): index}
                other_plan = planner(checkout, plan.op, choice, recorded)
                other = Trial(choice, other_plan, (yield Candidate(choice, other_plan, proof)))
                better = other.rank < best.rank
                rejected.append(_reject(best if better else other, functor.name, origin))
                best = other if better else best
    if listed := best.fails_as_listed:
        kept_plan = planner(checkout, plan.op, best.choice, recorded, listed=listed)
        verdict = yield Candidate(best.choice, kept_plan, proof, listed)
        best = Trial(best.choice, kept_plan, verdict, listed=listed)
    if best.verdict.backend in (HOST, MPS) and best.verdict.arithmetic.startswith(DEFAULT):  # others judge less
        remember_decision(checkout, plan, best.choice, best.listed, best.plan, best.verdict.ok, bool(proof.thorough))
    return replace(best, rejected=tuple(rejected))


def list_choices(first: Plan) -> Iterator[CandidateChoice]:
    """The choices that differ from the `first` plan's in the source of one functor, for one kind of elements."""
    for functor in first.functors:
        for origin in functor.origins:
            yield from ({(functor.name, origin.kinds[0]): index} for index in range(1, origin.count))


def _reject(trial: Trial, functor: str, origin: Origin) -> RejectedCandidate:
    [planned] = [each for each in trial.plan.functors if each.name == functor]
    [source] = [each.source for each in planned.origins if each.kinds == origin.kinds]
    failures = trial.value_failures(origin.kinds) or trial.verdict.failures
    return RejectedCandidate(functor, origin.kinds, source, len(failures), _describe_failure(failures))


def _describe_failure(failures: Sequence[Failure]) -> str:
    """The failure with the shortest message, which names a value."""
    failure = min(failures, key=lambda each: each.reason.count("\n"))
    return f"{failure.test.rpartition('.')[2]}: {failure.reason.splitlines()[0]}"


@dataclass(frozen=True)
class Decision:
    """The candidates (functor, kind of element, index) that a verdict chose, and whether the port `passed` with them.

    Entries of the test lists stay for the tests `listed`. `changes` is the digest of the port's diff; a `thorough`
    verdict had the variations that cost more.
    A plan without a verdict takes the candidates that the last verdict chose. What is remembered is of exactly this
    fork, this first plan, torch and porter: after a change to any of them, nothing is known until the next verdict.
    """

    chosen: tuple[tuple[str, Kind, int], ...]
    listed: tuple[str, ...]
    passed: bool
    thorough: bool
    changes: str

    @property
    def choice(self) -> CandidateChoice:
        return {(functor, kind): index for functor, kind, index in self.chosen}

    def is_of(self, plan: Plan) -> bool:
        """Whether the verdict was on exactly this port."""
        return self.changes == _digest_changes(plan)


def remember_decision(
    checkout: Checkout, first: Plan, choice: CandidateChoice, listed: frozenset[str], plan: Plan, passed: bool,
    thorough: bool,
) -> None:  # fmt: skip
    """Keeps what a verdict of all tests chose in place of the `first` plan of a fork."""
    before = recall_decision(checkout, first)
    again = before is not None and before.is_of(plan) and before.thorough and before.passed and passed
    chosen = tuple((functor, kind, index) for (functor, kind), index in choice.items())
    kept = Decision(chosen, tuple(sorted(listed)), passed, thorough or again, _digest_changes(plan))
    cache.put(_find_file(checkout, first), codec.encode(kept, Decision))


def recall_decision(checkout: Checkout, first: Plan) -> Decision | None:
    """What the last verdict chose in place of the `first` plan of a fork; None if nothing is known of it."""
    try:
        text = cache.get(_find_file(checkout, first))
    except PorterError:  # without torch there was no verdict
        return None
    found: Decision | None = None if text is None else codec.decode(text, Decision)
    return found


def count_candidates(plan: Plan) -> int:
    """How many candidates there are for the functor of a plan that has most."""
    return max((origin.count for functor in plan.functors for origin in functor.origins), default=1)


def _find_file(checkout: Checkout, first: Plan) -> Path:
    described = replace(first, changes=ChangeSet({}, ()))  # what other ports leave around its lines says nothing of it
    return key(digest_tested_code(checkout), "decisions", first.op, repr(described))


def _digest_changes(plan: Plan) -> str:
    return cache.digest(plan.changes.diff())
