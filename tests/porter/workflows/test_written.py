"""A port that is written is verified as it was before: the same target, the same tests, against the same fork."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from porter.aten.declarations import parse_base_name
from porter.core import journal
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, MPS
from porter.core.progress import ignore
from porter.core.writing import write
from porter.plan.plan import Draft, Plan
from porter.plan.planner import plan_operator
from porter.verdict.messages import VerifyRequest
from porter.verdict.result import Proof, Verdict
from porter.verdict.verify import find_target, make_request, select_tests
from porter.workflows import verify as verify_room
from porter.workflows.migrate import PortedOperator, Request, migrate
from porter.workflows.status import portable
from porter.workflows.verify import NO_BASELINE, find_baseline, request_written, verify_operator

Edit = Callable[[str], str]


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    return shutil.copytree(EMBEDDED_FORK, tmp_path / "fork")


def opened(fork: Path) -> Checkout:
    return Checkout(fork, "test")


def ask(draft: Draft, plan: Plan) -> VerifyRequest:
    """What `migrate` asks of a plan that follows a draft."""
    after = draft.follow(plan.changes)
    target = find_target(plan, parse_base_name(plan.op), after.fork)
    return make_request(draft.fork.root, after.changes.apply(), target, Proof(), select_tests(plan, None))


def ask_again(fork: Path, op: str, named: str | None = None) -> VerifyRequest:
    before = find_baseline(opened(fork), op, named)
    assert before is not None
    return request_written(opened(fork), before, op, Proof(), ignore)


def read(root: Path, request: VerifyRequest, path: str) -> str:
    """A file of the fork that a request compares with: empty for none."""
    if path in request.earlier:
        return request.earlier[path] or ""
    return (root / path).read_text() if (root / path).is_file() else ""


def test_every_port_of_the_embedded_fork_is_asked_for_as_it_was_before_it_was_written(fork: Path) -> None:
    ops = portable(opened(fork))
    assert len(ops) > 15
    for op in ops:
        before = opened(fork)
        plan = plan_operator(before, op)
        asked = ask(Draft(before), plan)
        write(before, plan.changes)
        again = ask_again(fork, op)
        assert again == replace(asked, texts=again.texts, earlier=again.earlier), op
        assert dict(again.texts) == dict(asked.texts), op
        assert {path: read(fork, again, path) for path in asked.texts} == {
            path: read(EMBEDDED_FORK, asked, path) for path in asked.texts
        }, op
        journal.undo(opened(fork))


def test_ports_that_were_written_together_and_one_by_one_are_told_apart(fork: Path) -> None:
    for op in ("hypot", "erf"):
        write(opened(fork), plan_operator(opened(fork), op).changes)
    first, second = ask_again(fork, "hypot"), ask_again(fork, "erf")
    assert first.earlier.keys() > second.earlier.keys(), "erf was written to a fork that had hypot's port"
    assert (first.target.kernels, second.target.kernels) == (("hypot",), ("erf",))
    assert find_baseline(opened(fork), "log1p", None) is None, "it has no port"


def test_the_candidate_is_that_of_the_checkout(fork: Path) -> None:
    first = plan_operator(opened(fork), "log1p")
    [(functor, origin)] = [(f.name, o) for f in first.functors for o in f.origins if o.count > 1]
    plan = plan_operator(opened(fork), "log1p", {(functor, origin.kinds[0]): 1})
    assert plan.functors != first.functors
    write(opened(fork), plan.changes)
    assert ask_again(fork, "log1p").target == ask(Draft(Checkout(EMBEDDED_FORK, "test")), plan).target


def edit(fork: Path, folder: str, change: Edit, word: str) -> None:
    [file] = [each for each in (fork / folder).iterdir() if each.is_file() and word in each.read_text()]
    file.write_text(change(file.read_text()))


def test_a_fault_in_a_written_port_is_not_part_of_what_it_is_compared_with(fork: Path) -> None:
    write(opened(fork), plan_operator(opened(fork), "hypot").changes)
    right = ask_again(fork, "hypot")
    edit(
        fork,
        KERNELS,
        lambda text: text.replace("struct hypot_functor", "// a fault\nstruct hypot_functor"),
        "hypot_functor",
    )
    wrong = ask_again(fork, "hypot")
    assert (wrong.target, wrong.earlier) == (right.target, right.earlier)
    assert [path for path in wrong.texts if wrong.texts[path] != right.texts[path]] == [f"{KERNELS}/BinaryKernel.metal"]


def test_a_port_of_another_hand_is_read_from_the_checkout(fork: Path) -> None:
    write(opened(fork), plan_operator(opened(fork), "hypot").changes)

    def rename(text: str) -> str:
        renamed = text.replace("hypot_functor", "own_length_functor").replace('"hypot"', '"own_length"')
        return renamed.replace("(hypot)", "(own_length)")

    edit(fork, KERNELS, rename, "hypot_functor")
    edit(fork, f"{MPS}/operations", rename, "hypot_mps_kernel")
    found = ask_again(fork, "hypot")
    assert (found.target.kernels, found.target.stubs) == (("own_length",), ("hypot_stub",))
    assert found.earlier


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[VerifyRequest]:
    """What is asked of the server, which passes it."""
    requests: list[VerifyRequest] = []

    def answer(request: VerifyRequest, _progress: object) -> Verdict:
        requests.append(request)
        return Verdict(request.target.base, "host", "default", 1, 0, 0, 1, None, 0.5)

    monkeypatch.setattr(verify_room, "ask_verdict", answer)
    monkeypatch.setattr("porter.verdict.verify.ask_verdict", answer)
    return requests


def test_a_verdict_without_a_baseline_says_so(fork: Path, asked: list[VerifyRequest]) -> None:
    assert verify_operator(opened(fork), "exp", Proof()).notes == (NO_BASELINE,)
    assert not asked[0].texts and not asked[0].earlier


def test_a_written_port_is_as_thorough_as_before(fork: Path, asked: list[VerifyRequest]) -> None:
    list(migrate(opened(fork), Request(("hypot",), write=True, proof=Proof(thorough=True))))
    notes = verify_operator(opened(fork), "hypot", Proof()).notes
    assert notes[0] == "verified against the fork before its port, of porter's journal"
    assert notes[1].startswith("thorough")
    verify_operator(opened(fork), "hypot", Proof(thorough=False))
    assert [each.thorough for each in asked] == [True, True, False]


def git(fork: Path, *arguments: str) -> None:
    command = ["git", "-c", "user.name=n", "-c", "user.email=e", *arguments]
    subprocess.run(command, cwd=fork, check=True, capture_output=True)


def test_a_port_that_git_applied_is_compared_with_the_last_commit_or_a_named_one(fork: Path, tmp_path: Path) -> None:
    git(fork, "init", "-q")
    git(fork, "add", ".")
    git(fork, "commit", "-qm", "before")
    plan = plan_operator(opened(fork), "hypot")
    expected = ask(Draft(opened(fork)), plan).target
    subprocess.run(["git", "apply", "-"], input=plan.changes.diff(), text=True, cwd=fork, check=True)
    assert ask_again(fork, "hypot").target == expected
    git(fork, "add", ".")
    git(fork, "commit", "-qm", "after")
    assert find_baseline(opened(fork), "hypot", None) is None
    by_commit, by_folder = ask_again(fork, "hypot", "HEAD~1"), ask_again(fork, "hypot", str(EMBEDDED_FORK))
    assert by_commit == by_folder and by_commit.target == expected
    assert by_commit.texts.keys() == {*plan.changes.files}


@pytest.mark.parametrize(("op", "named", "code"), [("exp", str(EMBEDDED_FORK), "PTR433"), ("exp", "nowhere", "PTR063")])
def test_what_is_no_baseline_is_refused(fork: Path, op: str, named: str, code: str) -> None:
    with pytest.raises(PorterError) as caught:
        find_baseline(opened(fork), op, named)
    assert caught.value.code == code


def test_a_written_port_has_the_verdict_that_it_had_before(fork: Path) -> None:
    """The same counts, of the tests of every kind in one type, by the server."""
    proof = Proof("float32")
    [ported] = migrate(opened(fork), Request(("signbit",), proof=proof))
    assert isinstance(ported, PortedOperator) and ported.verdict and ported.verdict.ok
    write(opened(fork), ported.plan.changes)
    again = verify_operator(opened(fork), "signbit", proof)
    assert replace(again, notes=again.notes[: len(ported.verdict.notes)]) == untimed(ported.verdict, again)
    assert ported.verdict.old_path == again.old_path and again.old_path


def untimed(verdict: Verdict, other: Verdict) -> Verdict:
    seconds = {row.dtype: row.seconds for row in other.dtypes}
    rows = tuple(replace(row, seconds=seconds.get(row.dtype, -1)) for row in verdict.dtypes)
    return replace(verdict, seconds=other.seconds, dtypes=rows)
