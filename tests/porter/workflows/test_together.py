"""Ports verified together: rounds of candidates, ports that do not build, and the verdicts of one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.progress import Step
from porter.plan.plan import Plan
from porter.verdict import verify as prove_room
from porter.verdict.messages import (
    Answer,
    BuildAnswer,
    BuildRequest,
    ErrorAnswer,
    Libraries,
    VerdictAnswer,
    VerifyRequest,
)
from porter.verdict.result import Failure, Proof, Verdict, VerifyTarget
from porter.workflows import setup, together
from porter.workflows.migrate import NotPlanned, PortedOperator, Request, Wrote, migrate
from porter.workflows.stacking import OldCode, read_old_code, stack_plans, stack_without
from porter.workflows.together import Proven, prove_together
from tests.porter.plan.recorded import fork as native_fork

FORK = Checkout(EMBEDDED_FORK, "test")
OPS = ("ceil", "erf", "logaddexp", "atan2")
PLANNING = OldCode(read_old_code(FORK, run=False).graphs)
Judge = Callable[[VerifyRequest], Verdict]


def passed(request: VerifyRequest) -> Verdict:
    return Verdict(request.target.base, "host", "default", 3, 0, 0, 9, None, 0.5)


def failed(request: VerifyRequest) -> Verdict:
    wrong = Failure("test_output_match", "not close", "float32", kernel_calls=1)
    return replace(passed(request), failed=1, failures=(wrong,))


class Server:
    """Stands in for the verdict server: builds unless a text has a word, and judges as it is made to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, judge: Judge = passed, broken: str = "") -> None:
        self.builds: list[BuildRequest] = []
        self.asked: list[VerifyRequest] = []
        self.jobs: list[int] = []
        self._judge, self._broken = judge, broken
        monkeypatch.setattr(together, "request_build", self._build)
        monkeypatch.setattr(together, "request_verdict", self._alone)
        monkeypatch.setattr(together, "ask_many", self._ask_many)
        monkeypatch.setattr(setup, "start_preparation", lambda _checkout, _backend: Event())

    def _build(self, request: BuildRequest) -> BuildAnswer:
        self.builds.append(request)
        if self._broken and any(target.base == self._broken for target in request.targets if request.texts):
            return BuildAnswer((), "PTR166 it does not compile")
        if not request.texts:
            return BuildAnswer(tuple("old.so" for _ in request.targets))
        return BuildAnswer(tuple("new.so" for _ in request.targets), fork="built")

    def _alone(self, request: VerifyRequest) -> Verdict:
        assert not request.libraries.ported
        return replace(passed(request), passed=0, failed=1, failures=(Failure("build", "PTR166 it does not compile"),))

    def _ask_many(
        self, requests: Sequence[BuildRequest | VerifyRequest], jobs: int, _report: object = None
    ) -> Iterator[tuple[int, Answer]]:
        self.jobs += [jobs for each in requests[:1] if isinstance(each, VerifyRequest)]
        for at, request in reversed(list(enumerate(requests))):
            if isinstance(request, BuildRequest):
                yield at, self._build(request)
                continue
            self.asked.append(request)
            try:
                yield at, VerdictAnswer(self._judge(request))
            except PorterError as error:
                yield at, ErrorAnswer(error.code, error.what)


def prove(ops: Sequence[str] = OPS, jobs: int = 2) -> list[Proven]:
    return list(prove_together(FORK, ops, Proof(), PLANNING, jobs))


def test_all_ports_are_built_once_and_their_old_code_once(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch)
    found = prove()
    assert [each.step.op for each in found] == list(OPS)
    assert all(each.trial and each.trial.verdict.ok for each in found)
    old, new = sorted(server.builds, key=lambda each: bool(each.texts))
    assert [target.base for target in new.targets] == [target.base for target in old.targets] == list(OPS)
    assert new.texts and not old.texts
    assert {each.libraries for each in server.asked} == {Libraries("new.so", "old.so", "built")}
    last, *others = server.asked
    assert last.target.base == OPS[-1] and last.texts == new.texts
    assert all(each.texts != new.texts for each in others), "each is tested without the ports after it"
    assert server.jobs == [2]


def test_a_candidate_that_fails_is_replaced_in_a_second_round(monkeypatch: pytest.MonkeyPatch) -> None:
    rejected: list[str] = []

    def judge(request: VerifyRequest) -> Verdict:
        if request.target.base == "logaddexp" and not rejected:
            rejected.append("logaddexp")
            return failed(request)
        return passed(request)

    server = Server(monkeypatch, judge)
    _, _, found, _ = prove()
    assert found.trial and found.trial.verdict.ok and len(found.trial.rejected) == 1
    assert [each.target.base for each in server.asked] == ["atan2", "logaddexp", "erf", "ceil", "logaddexp"]
    assert sorted(bool(each.texts) for each in server.builds) == [False, True, True], "the old code is built once"
    first, second = (each.texts for each in server.asked if each.target.base == "logaddexp")
    assert first != second
    assert found.step.choice == found.trial.choice != {}


def test_entries_of_tests_that_fail_as_listed_stay_in_the_fork_that_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    test = Failure("TestConsistencyMPS.test_output_match_log1p_mps_int64", "refused", "int64", before="xfailed")

    def judge(request: VerifyRequest) -> Verdict:
        freed = any(entry.entry == "log1p" for entry in request.target.removed)
        return replace(passed(request), failed_before=(test,) if freed else ())

    server = Server(monkeypatch, judge)
    found, other = prove(("log1p", "ceil"))
    assert [each.target.base for each in server.asked] == ["ceil", "log1p", "log1p"]
    assert found.step.plan and any(each.entry == "log1p" and each.is_kept for each in found.step.plan.lists)
    assert found.step.listed == {test.test} and not other.step.listed


def test_the_port_that_breaks_the_build_is_named_and_others_keep_verdicts(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch, broken="logaddexp")
    found = {each.step.op: each for each in prove()}
    assert found["logaddexp"].broken == "PTR166 it does not compile"
    assert [op for op in OPS if found[op].broken] == ["logaddexp"]
    assert all((trial := found[op].trial) and trial.verdict.ok for op in OPS if op != "logaddexp")
    assert "logaddexp" not in [each.target.base for each in server.asked]
    assert all("logaddexp_functor" not in text for each in server.asked for text in each.texts.values())


def test_an_error_in_place_of_a_verdict_is_that_of_one_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge(request: VerifyRequest) -> Verdict:
        if request.target.base == "erf":
            raise PorterError("PTR175", "too slow")
        return passed(request)

    Server(monkeypatch, judge)
    found = {each.step.op: each for each in prove()}
    assert (error := found["erf"].error) and error.code == "PTR175" and found["erf"].trial is None
    assert all(found[op].trial for op in OPS if op != "erf")


def test_an_operator_that_cannot_be_planned_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    Server(monkeypatch)
    erf, exp = prove(("erf", "exp"))
    assert erf.trial
    assert exp.step.plan is None and exp.error and exp.error.code == "PTR013"


def test_a_plan_without_a_target_is_in_the_fork_but_has_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server(monkeypatch)

    def find_target(plan: Plan, base: str, after: Checkout) -> VerifyTarget:
        if base == "atan2":
            raise PorterError("PTR019", "no row runs Metal kernels")
        return prove_room.find_target(plan, base, after)

    monkeypatch.setattr(together, "find_target", find_target)
    found = {each.step.op: each for each in prove()}
    assert (error := found["atan2"].error) and error.code == "PTR019" and found["atan2"].step.plan
    assert all(found[op].trial for op in OPS if op != "atan2")
    [new] = [each for each in server.builds if each.texts]
    assert [target.base for target in new.targets] == ["ceil", "erf", "logaddexp"]
    assert any("atan2_functor" in text for text in new.texts.values())


def keep_written(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The changes that are written from now on."""
    written: list[object] = []

    def keep(_fork: Checkout, changes: object, _force: bool, _ops: object) -> tuple[str, ...]:
        written.append(changes)
        return ()

    monkeypatch.setattr("porter.core.writing.write", keep)
    return written


def test_what_does_not_build_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    Server(monkeypatch, broken="erf")
    written = keep_written(monkeypatch)
    heard: list[str] = []
    request = Request(all=True, write=True, proof=Proof())
    found = list(migrate(FORK, request, done=lambda verdict: heard.append(verdict.op)))
    [changes] = written
    assert "erf_functor" not in str(changes) and "log1p_functor" in str(changes)
    [erf] = [each for each in found if isinstance(each, PortedOperator) and each.plan.op == "erf"]
    assert erf.broken and not erf.done
    assert isinstance(found[-1], Wrote) and not any(isinstance(each, NotPlanned) for each in found)
    assert sorted(heard) == sorted(each.plan.op for each in found if isinstance(each, PortedOperator))


def test_what_fails_its_verdict_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are planned without it."""
    Server(monkeypatch, lambda request: (failed if request.target.base == "erf" else passed)(request))
    written = keep_written(monkeypatch)
    found = list(migrate(FORK, Request(all=True, write=True, proof=Proof())))
    assert found[-1] == Wrote((), ("erf",))
    [changes] = map(str, written)
    assert "erf_functor" not in changes and "log1p_functor" in changes and "ceil_functor" in changes
    assert [each.plan.op for each in found if isinstance(each, PortedOperator) and not each.done] == ["erf"]


def test_plans_before_one_that_is_left_out_are_kept() -> None:
    steps = stack_plans(FORK, OPS, PLANNING, {})
    kept = stack_without(FORK, steps, {"logaddexp"}, PLANNING)
    assert [step.op for step in kept] == ["ceil", "erf", "atan2"]
    assert kept[:2] == steps[:2] and kept[2].before is steps[1].after
    assert kept[2].plan and steps[3].plan and kept[2].plan.entries == steps[3].plan.entries
    assert stack_without(FORK, steps, set(), PLANNING) == steps


def test_plans_before_the_first_change_are_kept() -> None:
    known = stack_plans(FORK, OPS, PLANNING, {})
    steps: list[Step] = []
    again = stack_plans(FORK, OPS, PLANNING, {"logaddexp": {}}, known, steps.append)
    assert again == known and not steps
    without = stack_plans(FORK, ("ceil", "logaddexp", "atan2"), PLANNING, {}, known, steps.append)
    assert without[0] is known[0]
    assert [step.what for step in steps] == ["logaddexp: planning", "atan2: planning"]


def test_verdicts_together_are_those_of_one_by_one() -> None:
    ops = ("erf", "signbit", "hypot")
    together_found = {each.step.op: each.trial for each in prove_together(FORK, ops, Proof(), PLANNING)}
    for alone in migrate(FORK, Request(ops, proof=Proof())):
        assert isinstance(alone, PortedOperator) and alone.verdict
        trial = together_found[alone.plan.op]
        assert trial and alone.verdict.ok
        assert without_time(trial.verdict) == without_time(alone.verdict)


def without_time(verdict: Verdict) -> Verdict:
    rows = tuple(replace(row, seconds=0.0) for row in verdict.dtypes)
    return replace(verdict, seconds=0.0, dtypes=rows)


def test_a_row_that_no_stub_serves_is_verified_by_its_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server, checkout = Server(monkeypatch), native_fork.copy_fork(tmp_path)
    [blocked] = prove_together(checkout, ("turned",), Proof(), PLANNING)
    assert blocked.step.plan is None and not server.asked
    kept = native_fork.turned()
    [found] = prove_together(checkout, ("turned",), Proof(), OldCode(PLANNING.graphs, lambda _: lambda served: kept))
    assert found.trial and found.trial.verdict.ok
    assert [each.target.base for each in server.asked] == ["turned"]
