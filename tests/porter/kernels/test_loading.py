"""What a script raises gets a code and the script's own line."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from porter.core.errors import PorterError
from porter.kernels.checking import check
from porter.kernels.loading import load, running_script

HEAD = """\
import sys, torch
from porter.core.errors import PorterError
from porter.kernels.script import Case, Kind, Script, Stage

def run(x):
    {line}
    return x
"""
SCRIPT = """\
SCRIPT = Script("s", Kind.ELEMENTWISE, (Stage("run", run, lambda x: x, ("x",)),),
                lambda case: {"x": torch.ones(case.size)}, ((1,),), ())
"""
STOPS = [
    ("raise KeyError('k')", "PTR288", "the script stops: KeyError: 'k'"),
    ("assert False, 'no'", "PTR288", "the script stops: AssertionError: no"),
    ("sys.exit(3)", "PTR288", "the script stops: SystemExit: 3"),
    ("raise RuntimeError('PTR264 kernel `f` reads too far')", "PTR264", "kernel `f` reads too far"),
    ("raise PorterError('PTR211', 'wrong', hint='Mend it.')", "PTR211", "wrong"),
]


def write(folder: Path, line: str) -> Path:
    path = folder / "script.py"
    path.write_text(HEAD.format(line=line) + SCRIPT)
    return path


@pytest.mark.parametrize(("line", "code", "what"), STOPS)
def test_a_function_that_stops(line: str, code: str, what: str, tmp_path: Path) -> None:
    path = write(tmp_path, line)
    with pytest.raises(PorterError) as caught, running_script(path):
        runpy.run_path(str(path))["run"](1)
    error = caught.value
    assert (error.code, error.what, str(error.place)) == (code, what, f"{path}:6")


@pytest.mark.parametrize("line", [line for line, *_ in STOPS])
def test_a_check_counts_it_as_a_failure(line: str, tmp_path: Path) -> None:
    results = list(check(load(write(tmp_path, line))))
    assert results and not any(result.ok for result in results)


@pytest.mark.parametrize(
    ("name", "what"), [(".", "this is a folder, not a script"), ("no.py", "there is no such script")]
)
def test_what_is_no_file(name: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(PorterError) as caught:
        load(tmp_path / name)
    assert (caught.value.code, caught.value.what) == ("PTR238", what)


def test_metal_source_is_no_script(tmp_path: Path) -> None:
    (tmp_path / "fill.metal").write_text("kernel void fill(device float* out) {}\n")
    with pytest.raises(PorterError) as caught:
        load(tmp_path / "fill.metal")
    assert (caught.value.code, caught.value.what) == ("PTR238", "this is Metal source, not a script")


def test_a_script_that_ends_the_program(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(PorterError) as caught:
        load(path)
    assert caught.value.code == "PTR238" and str(caught.value.place) == f"{path}:2"


def test_an_error_of_porter_gets_the_line(tmp_path: Path) -> None:
    path = write(tmp_path, "pass")
    path.write_text(path.read_text().replace("((1,),)", "(1,)"))
    with pytest.raises(PorterError) as caught:
        load(path)
    assert caught.value.code == "PTR287" and str(caught.value.place).startswith(f"{path}:")
