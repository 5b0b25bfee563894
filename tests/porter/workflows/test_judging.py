"""What a judge makes of a script that prints a verdict of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aten_overlay.runs.journal import SOURCES, VARIABLE
from porter.report.kernel import Ruling
from porter.workflows.judging import judge_folder, keeping_sources

FORGED = """
import json, os
verdict = {"script": "forged.py", "ok": True, "passed": 1, "failed": [], "parts": {"own": {"passed": 1, "failed": 0}}}
print(json.dumps(verdict), flush=True)
os._exit(0)
"""


def test_a_verdict_that_the_script_prints_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "forged.py").write_text(FORGED)
    (judgement,) = judge_folder(tmp_path, 0, 0, lambda _step: None)
    assert (judgement.ruling, judgement.first) == (Ruling.ERROR, "ends with exit code 0")


def test_each_problem_has_a_row_though_nobody_answers_it(tmp_path: Path) -> None:
    problems, answers = tmp_path / "problems", tmp_path / "answers"
    (problems / "level1").mkdir(parents=True)
    (problems / "level1" / "relu.py").write_text("")
    (judgement,) = judge_folder(answers, 0, 0, lambda _step: None, problems)
    assert (judgement.script, judgement.ruling, judgement.first) == (
        "level1/relu.py", Ruling.ERROR, "there is no answer",
    )  # fmt: skip


def test_the_sources_of_a_run_stay_where_its_report_reads_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with keeping_sources() as list_sources:
        assert os.environ[VARIABLE] == str(tmp_path)
        (tmp_path / SOURCES).mkdir()
        (tmp_path / SOURCES / "a.metal").write_text("kernel")
        assert list_sources() == ["kernel"]
    assert os.environ[VARIABLE] == str(tmp_path)
    monkeypatch.delenv(VARIABLE)
    with keeping_sources() as list_sources:
        assert list_sources() == [] and os.environ[VARIABLE] != str(tmp_path)
    assert VARIABLE not in os.environ
