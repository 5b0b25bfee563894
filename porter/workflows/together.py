"""Verifies the ports of many operators together: planned on one draft, built once, tested side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.progress import Step, Steps, ignore
from porter.metal.kernel import CandidateChoice
from porter.plan.planner import plan_operator
from porter.verdict.backends.choice import choose_backend
from porter.verdict.client import ask_many, request_build, request_verdict
from porter.verdict.messages import (
    BuildAnswer,
    BuildRequest,
    ErrorAnswer,
    Libraries,
    VerdictAnswer,
    VerifyRequest,
    error_of_answer,
)
from porter.verdict.result import Proof, Verdict, VerifyTarget
from porter.verdict.verify import find_target, make_request, select_tests
from porter.workflows.candidates import Candidate, Trial, try_candidates
from porter.workflows.stacking import OldCode, StackedPlan, stack_plans

Done = Callable[[Verdict], None]


@dataclass(frozen=True)
class Proven:
    """The plan of an operator, and its trial or why there is none.

    With a `broken` port the fork does not build: it is left out of the draft that later plans are made on.
    """

    step: StackedPlan
    trial: Trial | None = None
    error: PorterError | None = None
    broken: str = ""


def prove_together(
    checkout: Checkout,
    ops: Sequence[str],
    proof: Proof,
    old: OldCode,
    jobs: int = 0,
    progress: Steps = ignore,
    done: Done = ignore,
    known: Sequence[StackedPlan] = (),
) -> Iterator[Proven]:
    """Yields what came of each operator, in order, when all are done; calls `done` with each verdict as it comes.

    The first plans may be `known`. At most `jobs` verdicts, by default as many as there are cores, are under way at a
    time. Raises what `make_request` raises.
    """
    rounds = _Rounds(checkout, ops, proof, old, jobs or os.cpu_count() or 1, progress, done)
    rounds.steps = tuple(known)
    rounds.run()
    steps = {step.op: step for step in rounds.steps}
    for op in ops:
        found = rounds.ended[op]
        yield found if found.broken else replace(found, step=steps[op])


class _Rounds:
    """Rounds of building and testing: in each, all operators whose verdict asks for another candidate."""

    def __init__(
        self,
        checkout: Checkout,
        ops: Sequence[str],
        proof: Proof,
        old: OldCode,
        jobs: int,
        progress: Steps,
        done: Done,
    ) -> None:
        self._checkout, self._proof, self._old_code = checkout, proof, old
        self._ops, self._jobs, self._progress, self._done = list(ops), jobs, progress, done
        self._builds = choose_backend(proof.backend).RUNS_HOST_CODE
        self._choices: dict[str, CandidateChoice] = {}
        self._listed: dict[str, frozenset[str]] = {}
        self._proofs: dict[str, Proof] = {}
        self._trials: dict[str, Generator[Candidate, Verdict, Trial]] = {}
        self._old: dict[str, str] = {}
        self._targets: dict[str, VerifyTarget] = {}
        self.ended: dict[str, Proven] = {}
        self.steps: tuple[StackedPlan, ...] = ()

    def run(self) -> None:
        self._plan()
        planner = partial(plan_operator, programs=self._old_code.programs(ignore))
        for step in self._pending():
            assert step.plan is not None
            trials = try_candidates(step.before.fork, step.plan, self._old_code.graphs(ignore), planner, self._proof)
            self._trials[step.op] = trials
            self._choose(step.op, next(trials))
        self._plan()
        while self._pending():
            self._test(self._build())
            self._plan()

    def _plan(self) -> None:
        known = self.steps
        self.steps = stack_plans(
            self._checkout,
            self._ops,
            self._old_code,
            self._choices,
            known,
            self._progress,
            self._listed,
        )
        for step in self.steps:
            try:
                self._targets[step.op] = _find_target(step)
            except PorterError as error:
                self.ended.setdefault(step.op, Proven(step, error=error))
                self._targets.pop(step.op, None)

    def _planned(self) -> list[StackedPlan]:
        return [step for step in self.steps if step.plan]

    def _pending(self) -> list[StackedPlan]:
        return [step for step in self._planned() if step.op not in self.ended]

    def _build(self) -> BuildAnswer:
        """Builds all ports but those with which the fork does not build; nothing on a backend without host code."""
        if not self._builds:
            return BuildAnswer(())
        self._progress(Step("building all ports"))
        answer = self._request_build(len(self._planned())) if self._old else self._build_both()
        while answer.broken:
            self._leave_out(self._find_broken())
            answer = self._request_build(len(self._planned()))
        return answer

    def _build_both(self) -> BuildAnswer:
        """Builds all ports, and beside them the libraries of the old code: no choice of candidates changes those."""
        targets = tuple(each.old() for each in self._targets.values())
        if not targets:
            return BuildAnswer(())
        requests = [self._make_build(len(self._planned())), BuildRequest(self._checkout.root.resolve(), {}, targets)]
        answers = dict(ask_many(requests, len(requests)))
        for each in answers.values():
            if isinstance(each, ErrorAnswer):
                raise error_of_answer(each)
        new, old = answers[0], answers[1]
        assert isinstance(new, BuildAnswer) and isinstance(old, BuildAnswer)
        self._old = {target.base: library for target, library in zip(targets, old.libraries, strict=False)}
        return new

    def _request_build(self, count: int) -> BuildAnswer:
        request = self._make_build(count)
        return request_build(request) if request.targets else BuildAnswer(())

    def _make_build(self, count: int) -> BuildRequest:
        """Asks for the first plans together; those that have no target are part of the fork alone."""
        steps = self._planned()[:count]
        targets = tuple(self._targets[step.op] for step in steps if step.op in self._targets)
        return BuildRequest(self._checkout.root.resolve(), steps[-1].after.changes.apply() if steps else {}, targets)

    def _find_broken(self) -> StackedPlan:
        """The first port with which the fork does not build, by halves."""
        steps = self._planned()
        good, bad = 0, len(steps)
        while bad - good > 1:
            middle = (good + bad) // 2
            self._progress(Step(f"building the first {middle} of {len(steps)} ports, since all together do not build"))
            if self._request_build(middle).broken:
                bad = middle
            else:
                good = middle
        return steps[bad - 1]

    def _leave_out(self, step: StackedPlan) -> None:
        """Ends a port with the verdict that it has alone, and plans the others without it."""
        assert step.plan is not None
        verdict = request_verdict(self._request(step, Libraries()))
        reason = verdict.failures[0].reason if verdict.failures else "it does not build beside the ports before it"
        self.ended[step.op] = Proven(step, Trial(step.choice, step.plan, verdict), broken=reason)
        self._done(verdict)
        self._ops.remove(step.op)
        self._targets.pop(step.op, None)
        self._plan()

    def _test(self, built: BuildAnswer) -> None:
        steps = self._pending()
        requests = [self._request(step, self._libraries(step, built)) for step in steps]
        done = 0

        def report(at: int, what: str) -> None:
            self._progress(Step(f"{steps[at].op}: {what}", done, len(steps)))

        for at, answer in ask_many(requests, self._jobs, report):
            done += 1
            step = steps[at]
            if isinstance(answer, ErrorAnswer):
                self.ended[step.op] = Proven(step, error=error_of_answer(answer))
            else:
                assert isinstance(answer, VerdictAnswer)
                self._take(step, answer.verdict)

    def _libraries(self, step: StackedPlan, built: BuildAnswer) -> Libraries:
        if not built.libraries:
            return Libraries()
        return Libraries(built.libraries[0], self._old.get(step.base, ""), built.fork, built.findings)

    def _request(self, step: StackedPlan, libraries: Libraries) -> VerifyRequest:
        """The request for the verdict on a plan in the fork as it leaves it, without the ports after it."""
        assert step.plan is not None
        proof, texts = self._proofs.get(step.op, self._proof), step.after.changes.apply()
        request = make_request(
            self._checkout.root, texts, _find_target(step), proof, select_tests(step.plan, proof.expr)
        )
        return replace(request, libraries=libraries)

    def _choose(self, op: str, asked: Candidate) -> None:
        self._choices[op], self._listed[op], self._proofs[op] = asked.choice, asked.listed, asked.proof

    def _take(self, step: StackedPlan, verdict: Verdict) -> None:
        """Asks for the next candidate of an operator, or ends it with its best, or with what keeps that from a plan."""
        try:
            self._choose(step.op, self._trials[step.op].send(verdict))
        except StopIteration as end:
            trial: Trial = end.value
            self._choices[step.op], self._listed[step.op] = trial.choice, trial.listed
            self.ended[step.op] = Proven(step, trial)
            self._done(trial.verdict)
        except PorterError as error:
            self.ended[step.op] = Proven(step, error=error)


def _find_target(step: StackedPlan) -> VerifyTarget:
    """What of a plan is to be verified. Raises what kept it from being planned, and what `find_target` raises."""
    if step.plan is None:
        assert step.error is not None
        raise step.error
    return find_target(step.plan, step.base, step.after.fork)
