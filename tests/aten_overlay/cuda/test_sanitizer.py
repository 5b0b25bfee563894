"""What compute-sanitizer prints, read as findings with Metal's lines."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from aten_overlay.cuda import sanitizer
from aten_overlay.cuda.sanitizer import Finding, read_findings, run_sanitized
from aten_overlay.errors import OverlayError

from . import planted

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ read of size 4 bytes
=========     at reads_one_past__flat+0x70 in planted.metal:43
=========     by thread (255,0,0) in block (3,0,0)
=========     Access at 0x7f3fd0a01000 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f3fd0a00000 of size 4096 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: python3 [0x1a2b]
=========
========= Invalid __global__ read of size 4 bytes
=========     at reads_one_past__flat+0x70 in planted.metal:43
=========     by thread (254,0,0) in block (3,0,0)
=========
========= ERROR SUMMARY: 2 errors
"""
RACECHECK = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at missing_barrier__flat+0x80 in /a/planted.metal:9
=========     and Read access at missing_barrier__flat+0xa0 in /a/planted.metal:10 [4096 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
CLEAN = "done\n========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"


def test_accesses_at_one_line_are_one_finding() -> None:
    (found,) = read_findings("bounds", MEMCHECK)
    wanted = Finding(
        "bounds", "Invalid __global__ read of size 4 bytes", "reads_one_past", (("planted.metal", 43),), count=2
    )
    assert found == wanted
    said = "bounds: Invalid __global__ read of size 4 bytes in reads_one_past at planted.metal:43 (2)"
    assert str(found) == said


def test_a_race_has_both_lines() -> None:
    (found,) = read_findings("races", RACECHECK)
    assert found.lines == (("/a/planted.metal", 9), ("/a/planted.metal", 10))
    assert found.kernel == "missing_barrier"


def test_a_clean_run_has_no_findings() -> None:
    assert read_findings("bounds", CLEAN) == []


def test_every_planted_fault_has_a_check_and_marked_lines() -> None:
    text = planted.SOURCE.read_text()
    for kernel, check in planted.FAULTS.items():
        assert check in sanitizer.TOOLS
        assert planted.find_lines(kernel)
        assert f"kernel void {kernel}(" in text
    assert len(planted.FAULTS) >= 10 and all(planted.find_lines(kernel) for kernel in planted.MISSED)
    assert text.count("kernel void") == len({*planted.FAULTS, *planted.MISSED})


def test_the_tool_runs_the_program_with_every_allocation_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "compute-sanitizer"
    tool.write_text('#!/bin/sh\necho "========= $PYTORCH_NO_CUDA_MEMORY_CACHING: $*"\n')
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    found, printed = run_sanitized("races", ["program", "argument"])
    assert found == []
    assert printed == (
        "========= 1: --tool racecheck --racecheck-report analysis --target-processes all --print-limit 1000 "
        "program argument\n"
    )


def test_without_the_tool_there_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sanitizer, "_PLACES", ())
    with pytest.raises(OverlayError) as error:
        sanitizer.find_sanitizer()
    assert error.value.code == "PTR394"
