"""Ports as commits: one a group, in the order in which they stand on each other, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.progress import Progress
from porter.verdict import client
from porter.verdict.messages import VerdictAnswer, VerifyRequest
from porter.verdict.result import Proof, Verdict
from porter.workflows.candidates import Trial
from porter.workflows.commits import Committed, changes_alike
from porter.workflows.migrate import PortedOperator, Request, Wrote, migrate, settle
from porter.workflows.stacking import Grouping, OldCode, read_old_code, stack_plans
from porter.workflows.together import Proven

OPS = ("erf", "hypot", "log1p")
NAME = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.c", "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@b.c"}
SETTINGS = ("-c", "core.autocrlf=false")


@pytest.fixture
def fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository with a hook that refuses, and a server that passes every port."""

    def ask(asked: VerifyRequest, progress: Progress) -> VerdictAnswer:
        return VerdictAnswer(Verdict(asked.target.base, "host", "default", 1, 0, 0, 1, None, 0.5))

    monkeypatch.setattr(client, "ask", ask)
    for name, value in NAME.items():
        monkeypatch.setenv(name, value)
    root = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, root)
    git(root, "init", "-q")
    git(root, "add", ".")
    git(root, "commit", "-qm", "before")
    hook = root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    yield root


def git(root: Path, *words: str) -> str:
    command = ["git", *SETTINGS, *words]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def commit(root: Path, grouping: Grouping) -> tuple[list[Committed], list[PortedOperator]]:
    events = list(migrate(Checkout(root, "test"), Request(OPS, write=True, proof=Proof(), commits=grouping)))
    ports = [event for event in events if isinstance(event, PortedOperator)]
    return [event for event in events if isinstance(event, Committed)], ports


def test_a_family_is_one_commit_of_its_ports_alone(fork: Path) -> None:
    (fork / "version.txt").write_text("staged, and of no port\n")
    git(fork, "add", "version.txt")
    commits, ports = commit(fork, Grouping())
    assert [each.ops for each in commits] == [("erf", "log1p"), ("hypot",)], "those of a family follow each other"
    assert git(fork, "log", "--format=%H", "-2").split() == [each.commit for each in reversed(commits)]
    assert git(fork, "diff", "--name-only", "HEAD~2", "HEAD").split() == sorted({f for c in commits for f in c.files})
    assert git(fork, "status", "--short", "-uno") in ("M  version.txt\n", "A  version.txt\n")
    hypot = ports[-1].plan
    assert hypot.changes.apply().items() <= {f: (fork / f).read_text() for f in hypot.changes.files}.items()
    text = git(fork, "log", "--format=%B", "-1", commits[0].commit)
    assert text.splitlines()[0] == commits[0].title == "[MPS] Migrate erf, log1p to Metal"
    assert "## log1p" in text, "a heading is no comment"


def test_each_commit_has_what_was_verified(fork: Path) -> None:
    commits, ports = commit(fork, Grouping(by_family=False))
    assert [each.ops for each in commits] == [("erf",), ("log1p",), ("hypot",)]
    for committed, port in zip(commits, ports, strict=True):
        for file, text in port.plan.changes.apply().items():
            assert git(fork, "show", f"{committed.commit}:{file}") == text


def test_lines_bound_a_commit(fork: Path) -> None:
    assert [each.ops for each in commit(fork, Grouping(most=1))[0]] == [("erf",), ("log1p",), ("hypot",)]


def test_git_that_cannot_commit_is_found_before_anything_is_planned(tmp_path: Path) -> None:
    root = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, root)
    with pytest.raises(PorterError, match="PTR435"):
        next(migrate(Checkout(root, "test"), Request(OPS, write=True, proof=Proof(), commits=Grouping())))


def test_plans_are_alike_where_they_change_the_same_lines() -> None:
    fork = Checkout(EMBEDDED_FORK, "test")
    first, second = migrate(fork, Request(("erf", "log1p")))
    [alone] = migrate(fork, Request(("log1p",)))
    assert (
        isinstance(first, PortedOperator) and isinstance(second, PortedOperator) and isinstance(alone, PortedOperator)
    )
    assert changes_alike(second.plan, alone.plan) and not changes_alike(first.plan, alone.plan)


@pytest.mark.parametrize("passes", [True, False])
def test_what_changes_as_others_leave_is_verified_again(monkeypatch: pytest.MonkeyPatch, passes: bool) -> None:
    asked: list[str] = []

    def ask(request: VerifyRequest, progress: Progress) -> VerdictAnswer:
        asked.append(request.target.base)
        return VerdictAnswer(Verdict(request.target.base, "host", "default", 1, 0 if passes else 1, 0, 1, None, 0.5))

    monkeypatch.setattr(client, "ask", ask)
    checkout = Checkout(EMBEDDED_FORK, "test")
    old = read_old_code(checkout, run=False)
    steps = stack_plans(checkout, OPS, old, {})
    plans = {step.op: step.plan for step in steps if step.plan}
    ports = {op: PortedOperator(plan) for op, plan in plans.items()}
    ports["log1p"] = PortedOperator(plans["hypot"])  # as if its verdict had been on other lines
    failed = {"erf"}
    kept = settle(checkout, steps, failed, ports, old, Proof(), lambda _step: None)
    assert asked == ["log1p"]
    assert [step.op for step in kept] == (["hypot", "log1p"] if passes else ["hypot"])
    assert failed == ({"erf"} if passes else {"erf", "log1p"})
    assert ports["log1p"].verdict is None or passes


def test_of_all_operators_those_that_fail_are_in_no_commit(fork: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def prove(checkout: Checkout, ops: Sequence[str], proof: Proof, old: OldCode, *_: object) -> Iterator[Proven]:
        for step in stack_plans(checkout, ops, old, {}):
            assert step.plan is not None
            failed = int(step.op == "erf")
            yield Proven(step, Trial({}, step.plan, Verdict(step.op, "host", "default", 1, failed, 0, 1, None, 0.5)))

    monkeypatch.setattr("porter.workflows.migrate.portable", lambda checkout: ("hypot", *OPS))
    monkeypatch.setattr("porter.workflows.together.prove_together", prove)
    monkeypatch.setattr("porter.workflows.stacking.record_ahead", lambda *_: ())
    monkeypatch.setattr("porter.workflows.setup.start_preparation", lambda *_: SimpleNamespace(wait=None))
    request = Request(all=True, write=True, proof=Proof(), commits=Grouping())
    events = list(migrate(Checkout(fork, "test"), request))
    assert [event.ops for event in events if isinstance(event, Committed)] == [("hypot",), ("log1p",)]
    assert [event.left_out for event in events if isinstance(event, Wrote)] == [("erf",)]
    assert "erf_functor" not in git(fork, "show", "HEAD:aten/src/ATen/native/mps/kernels/UnaryKernel.metal")
    assert git(fork, "status", "--short") == ""
