"""With $PORTER_SANITIZE every launch of a program is watched, whoever bound it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aten_overlay.metal.sanitizer.checks import VARIABLE
from aten_overlay.runs import journal
from aten_overlay.runs.reading import read_run
from tests.conftest import ROOT

PROGRAMS = Path(__file__).parent / "programs"


@pytest.mark.parametrize("checks", ["bounds,races,uninitialized", "none"])
def test_one_fault_is_found_through_each_route(
    checks: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "watched_routes"  # built once
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "aten_overlay", str(PROGRAMS / "watched.py"), str(PROGRAMS / "slices.mm"), str(folder)],
        cwd=ROOT, env={**os.environ, VARIABLE: checks, journal.VARIABLE: str(tmp_path)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    silent, answers = ("nothing",) * 4 + ("stale ",), ("PTR264", "PTR262", "PTR124", "PTR278", "PTR269")
    answer, part, unbound, outside, early = silent if checks == "none" else answers
    assert done.stdout.splitlines() == [
        f"compile_shader: {answer}",
        f"extension: {answer}",
        f"extension, part of a buffer: {answer}",
        f"extension, no operator: {answer}",
        f"extension, no operator, part of a buffer: {answer}",
        "extension, right: nothing",
        f"extension, a part unwritten: {part}",
        "extension, all written: nothing",
        f"encoder outside of the queue: {outside}",
        "second encoder, after an operator: PTR124",
        "second encoder, the first ended: nothing",
        "second encoder, after a copy to the host: nothing",
        "second encoder, after random numbers: nothing",
        "second encoder, after a copy: nothing",
        f"own queue, a copy: {early}",
        f"own queue, an operator: {early}",
        f"own queue, a number: {early}",
        "own queue, waited for: nothing",
        "extension, all bound: nothing",
        f"extension, one left over: {unbound}",
    ]
    run = read_run(tmp_path)
    launches = {(kernel.name, kernel.operator): kernel.origin.producer for kernel in run.kernels}
    assert launches == {
        ("further", ""): "compile_shader", ("copy", "slices_test::reads_further"): "extension slices.so",
        ("copy", ""): "extension slices.so",
        ("copy", "slices_test::copies"): "extension slices.so",
        ("copy", "slices_test::binds"): "extension slices.so",
    }  # fmt: skip
    findings = {(finding.code, finding.operators) for finding in run.findings if finding.code == "PTR264"}
    watched = {("PTR264", ()), ("PTR264", ("slices_test::reads_further",))}
    assert findings == (set() if checks == "none" else watched)
