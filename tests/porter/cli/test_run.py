"""`porter run`: a program of any kind, the report of its kernels, and the exit code."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from aten_overlay.runs.origin import Origin
from aten_overlay.runs.reading import Finding, Kernel, Run
from porter.cli import main
from porter.report.run import run_lines, run_object
from porter.workflows.run import find_folder, find_program
from tests import conftest

INDUCTOR = Origin("Inductor", "train.py:8", "step", "cabc.py:40", ("aten.sin", "aten.sum"))
RUN = Run(
    2,
    3,
    (
        Kernel("generated_kernel_0", INDUCTOR, "source-1.metal", "", 12),
        Kernel("atan2_float", Origin("operator"), "", "aten::atan2", 1),
        Kernel("atan2_half", Origin("operator"), "", "", 0),
    ),
    (
        Finding(
            "PTR264", "kernel `generated_kernel_0` reads 4 bytes", "generated_kernel_0", ("aten::sum",),
            Origin("Inductor", "train.py:9", "<module>", "cabc.py:80"), INDUCTOR, "source-1.metal", 3,
        ),
    ),
)  # fmt: skip
OUT_OF_BOUNDS = """\
import subprocess, sys, torch
SOURCE = "kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i + 1] = 2; }"
def step(x):
    torch.mps.compile_shader(SOURCE).f(x)
try:
    step(torch.ones(4, device="mps"))
except RuntimeError:
    print("caught", sys.argv[1:], flush=True)
if "child" in sys.argv:
    sys.exit(subprocess.run([sys.executable, __file__]).returncode)
"""


def test_the_report_names_producers_lines_and_operators() -> None:
    assert_expected_inline(
        "\n".join(run_lines(RUN, ("bounds",), Path("kept"))),
        """\
porter run: 3 kernels compiled, 13 launches, in 2 processes (sanitizer: bounds)
  Inductor: 1 kernel, 12 launches
    generated_kernel_0 of aten.sin, aten.sum: 12 launches, train.py:8 in step
  operator: 2 kernels, 1 launch
    atan2_float of aten::atan2: 1 launch
    and 1 compiled and not launched
PTR264 (3 times): kernel `generated_kernel_0` reads 4 bytes
  launched at train.py:9
  in aten::sum
  kernel made by Inductor, of aten.sin, aten.sum, cabc.py:40
  source: kept/source-1.metal
  sources: kept""",
    )


def test_the_keys_of_the_report_stay() -> None:
    report = run_object(RUN, ("bounds",), 1)
    assert (
        " ".join(report) == "version exit_code processes sanitizer as_mac compiled launches producers kernels findings"
    )
    origin = "producer place function generated operators"
    assert " ".join(report["kernels"][0]) == f"name {origin} launched_by launches source"
    assert " ".join(report["findings"][0]) == "code text kernel place function running made_by source count"
    assert " ".join(report["findings"][0]["made_by"]) == origin


def test_a_finding_that_the_program_catches_is_told(python: conftest.Run, tmp_path: Path) -> None:
    """In the program, and in a process that it starts."""
    program, report, kept = tmp_path / "train.py", tmp_path / "run.json", tmp_path / "kept"
    program.write_text(OUT_OF_BOUNDS)
    options = ("--sanitize", "bounds", "--keep", str(kept), "--json", str(report))
    done = python("-m", "porter", "run", *options, str(program), "--json", "child")
    assert (done.returncode, done.stdout) == (1, "caught ['--json', 'child']\ncaught []\n"), done.stderr
    values = json.loads(report.read_text())
    assert values["producers"] == {"compile_shader": {"kernels": 1, "launches": 2}} and values["processes"] == 2
    (finding,) = values["findings"]
    assert (finding["code"], finding["place"], finding["function"]) == ("PTR264", f"{program}:4", "step")
    assert "x[i + 1]" in (kept / finding["source"]).read_text()
    assert f"launched at {program}:4 in step" in done.stderr


def test_the_operators_of_a_graph_that_inductor_compiles_are_named(python: conftest.Run, tmp_path: Path) -> None:
    program, report = tmp_path / "train.py", tmp_path / "run.json"
    program.write_text(
        "import torch\nx = torch.randn(8, 16, device='mps')\n"
        "compiled = torch.compile(lambda x: torch.sin(x).amax(1))\n"
        "assert torch.allclose(compiled(x), torch.sin(x).amax(1))\n"
    )
    done = python("-m", "porter", "run", "--json", str(report), str(program))
    assert done.returncode == 0, done.stderr
    (kernel,) = json.loads(report.read_text())["kernels"]
    assert (kernel["producer"], kernel["operators"]) == ("Inductor", ["aten.sin", "aten.amax"])
    assert kernel["place"] == f"{program}:4" and kernel["launches"] == 1


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        (["-m", "pytest", "-q"], ["-m", "pytest", "-q"]),
        (["-c", "pass"], ["-c", "pass"]),
        (["python3.11", "-m", "pytest"], ["-m", "pytest"]),
        ([__file__, "-m"], [__file__, "-m"]),
        (["pytest", "-q"], [str(Path(sys.executable).parent / "pytest"), "-q"]),
    ],
)
def test_a_program_is_named_as_python_takes_it(
    words: list[str], arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    assert find_program(words) == arguments


def test_the_folder_of_a_program_is_a_file_s_own_or_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    monkeypatch.chdir(tmp_path)
    here = Path(__file__).parent
    assert [find_folder(words) for words in ([__file__], ["python", __file__, "-m"])] == [here, here]
    assert {find_folder(words) for words in (["-m", "pytest"], ["-c", "pass"], ["pytest", __file__])} == {tmp_path}


def test_a_report_says_which_files_saw_a_mac() -> None:
    assert run_object(RUN, (), 0, ("a", "b"))["as_mac"] == ["a", "b"]
    assert run_lines(RUN, (), None, ("a", "b"))[1] == "  files below a, b saw a Mac"


@pytest.mark.parametrize("words", [["nothing.py"], ["-m"], ["python"], ["ls"]])
def test_what_is_no_program_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--", *words]) == 2
    assert "PTR190" in capsys.readouterr().err


def test_metal_source_is_no_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scale.metal").write_text("kernel void scale() {}")
    assert main(["run", str(tmp_path / "scale.metal")]) == 2
    assert "torch.mps.compile_shader" in capsys.readouterr().err
