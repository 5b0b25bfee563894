"""Several operators in one migration: each on what the one before it leaves, and what is heard meanwhile."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS
from porter.core.progress import Progress, Step
from porter.verdict import client
from porter.verdict.messages import VerdictAnswer, VerifyRequest
from porter.verdict.result import BUILD, Failure, Proof, Verdict
from porter.workflows.migrate import NotPlanned, PortedOperator, Request, migrate
from porter.workflows.verify import NotVerified, verify_operators

FORK = Checkout(EMBEDDED_FORK, "test")


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that reports its steps and passes every port."""

    def ask(asked: VerifyRequest, progress: Progress) -> VerdictAnswer:
        progress("build")
        return VerdictAnswer(Verdict(asked.target.base, "host", "default", 1, 0, 0, 1, None, 0.5))

    monkeypatch.setattr(client, "ask", ask)


def test_operators_are_counted_while_they_are_planned_and_proven(answering: None) -> None:
    heard: list[Step] = []
    found = list(migrate(FORK, Request(("erf", "log1p"), proof=Proof()), heard.append))
    assert heard == [
        Step("erf: planning", 0, 2), Step("erf: build", 0, 2), Step("log1p: planning", 1, 2), Step("log1p: build", 1, 2)
    ]  # fmt: skip
    assert all(isinstance(each, PortedOperator) and each.done and each.verdict for each in found)


def test_an_operator_without_a_verdict_does_not_end_the_others(answering: None) -> None:
    first, refused, last = verify_operators(FORK, ["exp", "arctan2", "copysign"], Proof())
    assert isinstance(refused, NotVerified) and (refused.op, refused.error.code) == ("arctan2", "PTR014")
    assert isinstance(first, Verdict) and isinstance(last, Verdict) and (first.op, last.op) == ("exp", "copysign")
    with pytest.raises(PorterError, match="PTR014"):
        list(verify_operators(FORK, ["arctan2"], Proof()))


ROW = """
- func: exp.turned(Tensor self, Tensor other) -> Tensor
  dispatch:
    MPS: exp_turned_mps
"""


def test_rows_without_code_are_told_beside_failures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(EMBEDDED_FORK, tmp_path / "fork")
    with (tmp_path / "fork" / NATIVE_FUNCTIONS).open("a") as rows:
        rows.write(ROW)
    fork, passing = Checkout(tmp_path / "fork", "test"), Verdict("exp", "host", "default", 1, 0, 0, 1, None, 0.5)
    failing = replace(passing, failed=1, failures=(Failure("test_match", "DispatchStub: missing kernel for mps"),))
    for verdict, codes in ((failing, ["PTR032"]), (passing, [])):
        monkeypatch.setattr(client, "ask", lambda *_, verdict=verdict: VerdictAnswer(verdict))
        [judged] = verify_operators(fork, ["exp"], Proof())
        assert isinstance(judged, Verdict)
        assert [finding.what.partition(" ")[0] for finding in judged.fork_findings] == codes


def test_a_single_operator_is_not_counted(answering: None) -> None:
    heard: list[Step] = []
    list(verify_operators(FORK, ["exp"], Proof(), heard.append))
    assert heard == [Step("exp: build")]


def test_a_port_without_the_verdict_asked_for_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(*_: object) -> None:
        raise PorterError("PTR170", "torch is not installed here")

    monkeypatch.setattr(client, "ask", ask)
    [found] = migrate(FORK, Request(("erf",), proof=Proof()))
    assert isinstance(found, PortedOperator)
    assert found.no_verdict is not None and found.no_verdict.code == "PTR170"
    assert not found.done


def test_the_second_plan_stands_on_the_first() -> None:
    first, second = migrate(FORK, Request(("erf", "log1p")))
    assert isinstance(first, PortedOperator) and isinstance(second, PortedOperator)
    [file] = {functor.file for functor in (*first.plan.functors, *second.plan.functors)}
    assert "struct erf_functor" in second.plan.changes.base[file]


@pytest.mark.parametrize(("failure", "stands"), [(Failure(BUILD, "PTR166 no"), False), (Failure("test_a", "no"), True)])
def test_the_next_plan_does_not_stand_on_one_that_does_not_build(
    monkeypatch: pytest.MonkeyPatch, failure: Failure, stands: bool
) -> None:
    def ask(asked: VerifyRequest, progress: Progress) -> VerdictAnswer:
        return VerdictAnswer(Verdict(asked.target.base, "host", "default", 0, 1, 0, 0, None, 0.5, failures=(failure,)))

    monkeypatch.setattr(client, "ask", ask)
    *_, second = migrate(FORK, Request(("erf", "log1p"), proof=Proof()))
    assert isinstance(second, PortedOperator)
    assert ("struct erf_functor" in second.plan.changes.base[second.plan.functors[0].file]) is stands


def test_one_of_all_that_fails_does_not_stop_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr("porter.workflows.migrate.portable", lambda checkout: ("exp", "erf"))
    refused, ported = migrate(FORK, Request(all=True))
    assert isinstance(refused, NotPlanned)
    assert (refused.op, refused.error.code) == ("exp", "PTR013")
    assert isinstance(ported, PortedOperator)


def test_no_operator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PorterError, match="PTR012"):
        list(migrate(FORK, Request()))
