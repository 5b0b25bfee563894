"""A benchmark that measured nothing, or whose commands failed, says so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["benchmarks/plan.py", "--checkout", "{}"], "FileNotFoundError"),
        (["tools/signatures.py", "{}"], "nothing to compare"),
        (["tools/declarations.py"], "the following arguments are required: wheels"),
        (["tools/modernize.py", "{}", "{}", "{}/new"], "no PyTorch tree: it lacks aten"),
    ],
)
def test_a_script_without_its_input_fails(arguments: list[str], told: str, tmp_path: Path) -> None:
    name, *rest = arguments
    command = [sys.executable, name, *(each.format(tmp_path) for each in rest)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode != 0
    assert told in done.stderr


def test_planning_is_not_timed_where_porter_fails(tmp_path: Path) -> None:
    """The OpInfo file parses, but nothing else of a checkout is there."""
    file = tmp_path / "torch/testing/_internal/common_methods_invocations.py"
    file.parent.mkdir(parents=True)
    file.write_text("op_db = []\n")
    command = [sys.executable, "benchmarks/plan.py", "--checkout", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode != 0
    assert "porter: " in done.stderr
    assert "of the parse" not in done.stdout
