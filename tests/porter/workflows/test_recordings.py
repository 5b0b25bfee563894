"""What plans of many operators need of their old code: asked for together, and each recording once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.metal.forms import encode_computations
from porter.verdict.messages import Answer, ErrorAnswer, RecordAnswer, RecordRequest
from porter.workflows import stacking
from porter.workflows.stacking import Recordings, StackedPlan, read_old_code, record_ahead, stack_plans
from tests.porter.plan.recorded import fork as native_fork

JOBS = 3


class Server:
    """Stands in for the verdict server: answers requests for recordings, and counts those that it has at once."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: Answer) -> None:
        self.rounds: list[tuple[RecordRequest, ...]] = []
        self.waits = 0
        self._answer = answer
        monkeypatch.setattr(stacking, "ask_many", self._ask_many)

    def wait(self) -> None:
        assert not self.rounds, "nobody asks before there is a server"
        self.waits += 1

    def _ask_many(self, requests: Sequence[RecordRequest], jobs: int, _report: object) -> Iterator[tuple[int, Answer]]:
        assert jobs == JOBS
        self.rounds.append(tuple(requests))
        yield from reversed([(at, self._answer) for at in range(len(requests))])

    def plan(self, checkout: Checkout, ops: Sequence[str]) -> tuple[StackedPlan, ...]:
        read = Recordings(checkout)
        known = record_ahead(read, checkout, ops, JOBS, self.wait)
        return stack_plans(checkout, ops, read.old_code, {}, known)


@pytest.fixture(autouse=True)
def _empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PORTER_CACHE", str(tmp_path / "cache"))


def test_operators_that_need_no_recording_are_planned_once(monkeypatch: pytest.MonkeyPatch) -> None:
    server, fork, ops = Server(monkeypatch, RecordAnswer()), Checkout(EMBEDDED_FORK, "test"), ("ceil", "atan2")
    read = Recordings(fork)
    known = record_ahead(read, fork, ops, JOBS, server.wait)
    assert not server.rounds and not server.waits
    planned = stack_plans(fork, ops, read_old_code(fork, run=False), {})
    assert [each.plan for each in known] == [each.plan for each in planned]
    assert stack_plans(fork, ops, read.old_code, {}, known) == known


def test_a_row_is_planned_by_what_was_recorded_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = Server(monkeypatch, RecordAnswer(encode_computations([native_fork.turned()])))
    checkout = native_fork.copy_fork(tmp_path)
    *_, turned = server.plan(checkout, ("turned",))
    assert turned.plan and turned.plan.entries
    [[request]] = server.rounds
    assert (request.target.base, request.of_programs, server.waits) == ("turned", True, 1)


def test_what_was_recorded_before_is_not_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = Server(monkeypatch, RecordAnswer(encode_computations([native_fork.turned()])))
    checkout = native_fork.copy_fork(tmp_path)
    first, again = (server.plan(checkout, ("turned",)) for _ in range(2))
    assert len(server.rounds) == 1
    assert [each.plan for each in first] == [each.plan for each in again]


def test_what_cannot_be_recorded_is_tried_once_and_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = Server(monkeypatch, ErrorAnswer("PTR137", "the old implementation crashed"))
    checkout = native_fork.copy_fork(tmp_path)
    read = Recordings(checkout)
    known = record_ahead(read, checkout, ("turned",), JOBS, server.wait)
    assert not known, "a plan that needed a recording is made again"
    [turned] = stack_plans(checkout, ("turned",), read.old_code, {}, known)
    assert turned.plan is None and turned.error
    assert len(server.rounds) == 1


def test_plans_after_the_first_that_waited_are_made_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = Server(monkeypatch, RecordAnswer(encode_computations([native_fork.turned()])))
    checkout = native_fork.copy_fork(tmp_path)
    ops = ("ceil", "turned", "atan2")
    read = Recordings(checkout)
    known = record_ahead(read, checkout, ops, JOBS, server.wait)
    assert [each.op for each in known] == ["ceil"]
    found = stack_plans(checkout, ops, read.old_code, {}, known)
    assert found[0] is known[0] and all(each.plan for each in found)


def test_a_row_whose_calls_run_kernels_alone_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    server = Server(monkeypatch, RecordAnswer(encode_computations([])))
    *_, turned = server.plan(native_fork.copy_fork(tmp_path), ("turned",))
    assert turned.error is not None
    assert (turned.error.code, turned.error.what) == ("PTR375", "no call of turned ran a graph")
    assert "No stub serves it either: " in turned.error.hint
