"""Only verdicts of all tests choose candidates; what they chose is remembered by content."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from porter.cli import main
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.metal.kernel_spec import no_recording
from porter.plan.plan import Plan
from porter.plan.planner import plan_operator
from porter.verdict.errors import NoVerdict
from porter.verdict.result import Failure, Proof, Verdict
from porter.workflows.candidates import choose_candidates, recall_decision
from porter.workflows.explain import explain
from porter.workflows.migrate import PortedOperator, Request, migrate, take_decision

FORK = Checkout(EMBEDDED_FORK, "test")
OP, OTHER = "log1p", "erf"
SELECTED = Proof("error_inputs")
PASSED = Verdict(OP, "host", "default", 7, 0, 0, 9, None, 0.5)
WRONG = Failure("TestConsistencyMPS.test_output_match_log1p_mps_float32", "2 for 1", "float32", kernel_calls=3)
FAILED = replace(PASSED, failed=1, failures=(WRONG,))
Judge = Callable[[Plan, Proof], Verdict]


def index(plan: Plan) -> int:
    return max(origin.index for functor in plan.functors for origin in functor.origins)


class Judging:
    """Rejects the first candidate in a verdict of all tests, and passes all in one of selected tests."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, str | None]] = []

    def __call__(self, plan: Plan, proof: Proof) -> Verdict:
        self.asked.append((index(plan), proof.expr))
        return PASSED if proof.selects or index(plan) else FAILED


def choose(judge: Judge, proof: Proof) -> int:
    return index(choose_candidates(FORK, plan_operator(FORK, OP), judge, proof=proof).plan)


def test_a_selection_takes_the_candidate_that_all_tests_choose() -> None:
    judge = Judging()
    assert choose(judge, SELECTED) == 1
    assert judge.asked == [(0, "error_inputs"), (0, None), (1, None), (1, "error_inputs")]
    judge.asked.clear()
    assert choose(judge, SELECTED) == 1
    assert judge.asked == [(1, "error_inputs")], "the choice is remembered"


def test_a_selection_without_a_test_is_refused_before_all_tests_run() -> None:
    asked: list[str | None] = []

    def judge(_plan: Plan, proof: Proof) -> Verdict:
        asked.append(proof.expr)
        raise NoVerdict("PTR430", "no test is selected")

    with pytest.raises(PorterError, match="PTR430"):
        choose(judge, Proof("nosuch"))
    assert asked == ["nosuch"]


def test_an_operator_with_one_candidate_needs_no_other_verdict_than_the_selected_one() -> None:
    asked: list[str | None] = []

    def judge(_plan: Plan, proof: Proof) -> Verdict:
        asked.append(proof.expr)
        return PASSED

    choose_candidates(FORK, plan_operator(FORK, OTHER), judge, proof=SELECTED)
    assert asked == ["error_inputs"]
    assert recall_decision(FORK, plan_operator(FORK, OTHER)) is None, "a selection decides nothing"


def undecided(op: str = OP) -> PortedOperator:
    return take_decision(FORK, plan_operator(FORK, op), plan_operator, no_recording)


def shown_by_explain() -> str:
    """The title of the functor that `porter explain` shows."""
    return next(stage.title for stage in explain(FORK, OP, record=False) if stage.title.startswith("functor"))


def test_a_plan_without_a_verdict_has_the_candidate_that_the_last_one_chose() -> None:
    assert (index(undecided().plan), undecided().doubt) == (0, "the first of 2 candidates, unverified")
    assert undecided(OTHER).doubt == "unverified"
    assert shown_by_explain().endswith(": the first of 2 candidates, unverified")
    choose(Judging(), Proof())
    assert (index(undecided().plan), undecided().doubt) == (1, "")
    assert "unverified" not in shown_by_explain()


def test_a_choice_by_a_verdict_that_fails_proves_nothing() -> None:
    choose(lambda plan, _: FAILED if index(plan) else replace(FAILED, failed=2), Proof())
    assert (index(undecided().plan), undecided().doubt) == (1, "the best of its candidates by a verdict that fails")


@pytest.mark.parametrize(("backend", "arithmetic"), [("kernels", "default"), ("host", "flush")])
def test_a_verdict_that_judges_less_is_not_remembered(backend: str, arithmetic: str) -> None:
    def judge(plan: Plan, _proof: Proof) -> Verdict:
        return replace(PASSED if index(plan) else FAILED, backend=backend, arithmetic=arithmetic)

    choose(judge, Proof())
    assert undecided().doubt.startswith("the first of")


def test_a_choice_is_of_one_fork() -> None:
    choose(Judging(), Proof())
    kernel = "aten/src/ATen/native/mps/kernels/UnaryKernel.metal"
    changed = FORK.as_before({kernel: f"// changed\n{FORK.read(kernel)}"})
    assert recall_decision(changed, plan_operator(changed, OP)) is None


def test_a_thorough_verdict_stays_known_after_another_of_the_same_port() -> None:
    for thorough in (True, None):
        choose(lambda plan, _: PASSED, Proof(thorough=thorough))
        found = recall_decision(FORK, plan_operator(FORK, OP))
        assert found and found.thorough and found.passed


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    return shutil.copytree(EMBEDDED_FORK, tmp_path / "fork")


def test_a_selection_writes_nothing(fork: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", OP, "-k", "error_inputs", "--write", "--checkout", str(fork)]) == 2
    shown = capsys.readouterr()
    assert "PTR431" in shown.err and "wrote" not in shown.err and not shown.out
    assert main(["undo", "--checkout", str(fork)]) == 2


def test_what_no_verdict_passed_is_written_only_if_told_so(fork: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write = ["migrate", OP, "--no-verify", "--write", "--checkout", str(fork)]
    assert main(write) == 2
    shown = capsys.readouterr()
    assert shown.err.count("PTR432") == 1 and "log1p: the first of 2 candidates, unverified" in shown.err
    assert main(["undo", "--checkout", str(fork)]) == 2
    assert main([*write, "--unverified"]) == 0
    assert main(["undo", "--checkout", str(fork)]) == 0


@pytest.mark.parametrize("command", ["migrate", "add"])
def test_what_a_verdict_fails_is_written_only_if_told_so(
    command: str, fork: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    op = OP if command == "migrate" else "copysign"
    where = f"porter.workflows.{command}"
    plan = plan_operator(FORK, OP)
    monkeypatch.setattr(f"{where}.prove_candidates", lambda *_: PortedOperator(plan, FAILED))
    if command == "add":
        monkeypatch.setattr(f"{where}.plan_addition", lambda *_, **__: plan)
    write = [command, op, "--write", "--checkout", str(fork)]
    assert main(write) == 2
    shown = capsys.readouterr().err
    assert "PTR432" in shown and "wrote" not in shown
    assert main(["undo", "--checkout", str(fork)]) == 2
    assert main([*write, "--unverified"]) == 1
    assert "wrote" in capsys.readouterr().err


def test_a_port_whose_verdict_passed_is_written_without_another(fork: Path) -> None:
    def opened() -> Checkout:
        return Checkout(fork, "test")

    choose_candidates(opened(), plan_operator(opened(), OP), Judging())
    ported, _ = migrate(opened(), Request((OP,), write=True))
    assert isinstance(ported, PortedOperator) and index(ported.plan) == 1 and not ported.doubt
    assert ported.plan.functors[0].source in opened().read(ported.plan.functors[0].file)


def test_git_applies_what_is_printed_of_unverified_plans(fork: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", OP, OTHER, "logaddexp", "--no-verify", "--checkout", str(fork)]) == 0
    diff = capsys.readouterr().out
    doubts = [line for line in diff.splitlines() if line.startswith("porter: ")]
    assert doubts == [f"porter: {op}: the first of 2 candidates, unverified" for op in (OP, "logaddexp")]
    subprocess.run(["git", "apply", "-"], input=diff, text=True, cwd=fork, check=True)
    assert all(f"struct {op}_functor" in (fork / "aten/src/ATen/native/mps/kernels" / name).read_text()
               for op, name in ((OP, "UnaryKernel.metal"), ("logaddexp", "BinaryKernel.metal")))  # fmt: skip
