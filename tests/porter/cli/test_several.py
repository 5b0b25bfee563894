"""Several operators in one command: what one of them lacks ends no others, and the last lines say what became of each."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.cli import main
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.plan.planner import plan_operator
from porter.report.results import read_json
from porter.verdict.result import Failure, Verdict
from porter.workflows.migrate import NotPlanned, PortedOperator
from porter.workflows.verify import NotVerified

FORK = ("--checkout", str(EMBEDDED_FORK))
PASSED = Verdict("erf", "host", "default", 4, 0, 0, 8, None, 0.5)
FAILED = Verdict("log1p", "host", "default", 3, 1, 0, 8, None, 0.5, failures=(Failure("test_values", "not close"),))
REFUSED = PorterError("PTR013", "exp is already native", hint="There is nothing to migrate.")


def read_outcomes(path: Path) -> dict[str, str]:
    return {result.op: f"{result.outcome} {result.code}" for result in read_json(path.read_text(), path.name).operators}


def last_lines(text: str) -> str:
    return text[text.index("what became of each:") :]


def test_only_diffs_are_printed_of_plans_and_the_others_are_told_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.json"
    assert main(["migrate", "erf", "exp", "log1p", "--no-verify", "--results", str(results), *FORK]) == 1
    printed = capsys.readouterr()
    assert "what became" not in printed.out and printed.out.count("_functor {") == 2
    assert "porter: exp: aten/src/ATen/native/native_functions.yaml:95: PTR013 exp is already native" in printed.err
    assert_expected_inline(
        last_lines(printed.err),
        """\
what became of each:
  erf: planned
  exp: not planned: PTR013 aten/src/ATen/native/native_functions.yaml:95: exp is already native
  log1p: planned
""",
    )
    assert read_outcomes(results) == {
        "erf": "no verdict PTR330",
        "exp": "not planned PTR013",
        "log1p": "no verdict PTR330",
    }


def test_results_are_kept_of_ports_that_are_not_written_in_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fork, results = tmp_path / "fork", tmp_path / "results.json"
    shutil.copytree(EMBEDDED_FORK, fork)
    given = ("--no-verify", "--write", "--results", str(results), "--checkout", str(fork))
    assert main(["migrate", "erf", "exp", "log1p", *given]) == 2
    printed = capsys.readouterr().err
    assert "PTR432" in printed and "what became of each:" in printed
    assert [*read_outcomes(results)] == ["erf", "exp", "log1p"]


def test_one_operator_without_a_plan_has_a_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results.json"
    assert main(["migrate", "exp", "--no-verify", "--results", str(results), *FORK]) == 2
    assert capsys.readouterr().err.count("PTR013") == 1
    assert read_outcomes(results) == {"exp": "not planned PTR013"}


def test_no_operator_with_a_plan_is_no_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "exp", "copysign", "--no-verify", *FORK]) == 2
    assert "  copysign: not planned: PTR013" in capsys.readouterr().err


def test_verdicts_of_several_are_told_in_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fork = Checkout(EMBEDDED_FORK, "test")
    plans = {op: plan_operator(fork, op) for op in ("erf", "log1p")}

    def migrate(*_: object) -> Iterator[PortedOperator | NotPlanned]:
        yield PortedOperator(plans["erf"], PASSED)
        yield NotPlanned("exp", REFUSED)
        yield PortedOperator(plans["log1p"], FAILED)
        yield PortedOperator(plans["log1p"], no_verdict=PorterError("PTR170", "torch is not installed"))

    monkeypatch.setattr("porter.workflows.migrate.migrate", migrate)
    assert main(["migrate", "erf", "exp", "log1p", *FORK]) == 1
    assert_expected_inline(
        last_lines(capsys.readouterr().out),
        """\
what became of each:
  erf: PASS
  exp: not planned: PTR013 exp is already native
  log1p: FAIL: PTR331 test_values: not close
  log1p: no verdict: PTR170 torch is not installed
""",
    )


@pytest.mark.parametrize(("judged", "code"), [((PASSED, FAILED), 1), ((PASSED,), 1), ((), 2)])
def test_an_operator_without_a_verdict_fails_the_command_but_not_the_others(
    judged: tuple[Verdict, ...], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = [NotVerified(op, REFUSED) for op in ("exp", "copysign")]
    monkeypatch.setattr("porter.workflows.verify.verify_operators", lambda *_: iter([*lacking, *judged]))
    assert main(["verify", "exp", "copysign", "erf", *FORK]) == code
    printed = capsys.readouterr()
    assert "no verdict on copysign: PTR013 exp is already native" in printed.err
    told = last_lines(printed.out).splitlines()
    assert told[1] == "  exp: no verdict: PTR013 exp is already native"
    assert [line.split(":")[0].strip() for line in told[3:]] == [verdict.op for verdict in judged]
