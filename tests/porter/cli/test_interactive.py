"""`porter migrate -i`: what a person answers decides which candidate is taken, and which hunks of it."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import pytest

from porter.cli import main
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.progress import Progress
from porter.plan.planner import plan_operator
from porter.verdict import client
from porter.verdict.messages import VerdictAnswer, VerifyRequest
from porter.verdict.result import Verdict

OP = "log1p"  # of two candidates
KERNELS = "aten/src/ATen/native/mps/kernels/UnaryKernel.metal"


class Person:
    """Answers questions, beside a server that fails the verdicts with these numbers and remembers what was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fails: frozenset[int]) -> None:
        self._patch, self._fails = monkeypatch, fails
        self.asked: list[VerifyRequest] = []
        monkeypatch.setattr(client, "ask", self._ask)

    def _ask(self, asked: VerifyRequest, progress: Progress) -> VerdictAnswer:
        self.asked.append(asked)
        failed = int(len(self.asked) in self._fails)
        return VerdictAnswer(Verdict(OP, "host", "default", 1, failed, 0, 1, None, 0.5))

    def answers(self, fork: Path, answers: str, *options: str) -> int:
        self._patch.setattr("sys.stdin", io.StringIO("".join(f"{answer}\n" for answer in answers)))
        return main(["migrate", OP, "-i", *options, "--checkout", str(fork)])


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    return shutil.copytree(EMBEDDED_FORK, tmp_path / "fork")


def test_the_second_candidate_is_written_with_a_hunk_left_out(
    fork: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    person = Person(monkeypatch, frozenset({1}))
    assert person.answers(fork, "nyna", "--write") == 0
    shown = capsys.readouterr().err
    assert "candidate 1 of 2" in shown and "candidate 2 of 2" in shown and f"registers {OP} for" in shown
    first, second, partial = (asked.texts.get(KERNELS, "") for asked in person.asked)
    assert first != second and "struct log1p_functor" in second
    assert "struct log1p_functor" not in partial, "the first hunk is left out, and the rest is verified again"
    assert (fork / KERNELS).read_text() == (partial or (EMBEDDED_FORK / KERNELS).read_text())


def test_a_port_that_is_taken_whole_is_not_verified_twice(
    fork: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    person = Person(monkeypatch, frozenset())
    assert person.answers(fork, "ya") == 0
    assert len(person.asked) == 1
    assert capsys.readouterr().out == plan_operator(Checkout(EMBEDDED_FORK, "test"), OP).changes.diff()


@pytest.mark.parametrize("answers", ["q", "yq", "nn", "", "yyy"])
def test_who_quits_writes_nothing(
    fork: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answers: str
) -> None:
    assert Person(monkeypatch, frozenset()).answers(fork, answers, "--write") == 1
    assert "nothing is written" in capsys.readouterr().err
    assert (fork / KERNELS).read_bytes() == (EMBEDDED_FORK / KERNELS).read_bytes()


def test_what_fails_is_written_only_unverified(
    fork: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    person = Person(monkeypatch, frozenset({1, 2}))
    assert person.answers(fork, "ya", "--write") == 2
    assert "PTR432" in capsys.readouterr().err
    assert person.answers(fork, "ya", "--write", "--unverified") == 1
    assert "struct log1p_functor" in (fork / KERNELS).read_text()


@pytest.mark.parametrize("words", [("--json",), ("-k", "float"), ("erf",), ("--pull-request",)])
def test_what_asks_for_something_else_is_refused(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", OP, "-i", *words, "--checkout", str(EMBEDDED_FORK)]) == 2
    assert "-i asks" in capsys.readouterr().err
