"""Python is started in one way, and no module of the folder that porter is called in runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import porter.__main__
import porter.kernels.script
from porter.core.garbage import SELDOM
from porter.core.progress import ignore
from porter.core.python import PACKAGES, Program, foreign_module, own_module
from porter.verdict.new_operator import process
from porter.verdict.result import Verdict
from porter.workflows.scheduler import make_shares, run_share
from tests.conftest import ROOT
from tests.hostile import fill_with_traps, list_sprung
from tests.porter.core import told_garbage, told_modules

# Where an interpreter is named or replaced, and why it is not `porter.core.python`.
ELSEWHERE = {
    "aten_overlay/apple/commands.py": "imports nothing of porter; isolated by -I",
    "porter/workflows/run.py": "knows the word that users type before a program; starts it by porter.core.python",
}
# What names an interpreter, or starts a process that imports modules anew.
STARTS = re.compile(
    r"""sys\.executable|sys\._base_executable|["']python[\d.]*["']|\bexec[lv]p?e?\(\s*["']python|\bspawn[lv]"""
    r"""|["'](?:spawn|forkserver)["']|set_start_method|\bmultiprocessing\.Process\b|["']-m["'],\s*["']porter"""
)


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which an empty entry of $PYTHONPATH names too."""
    folder = fill_with_traps(tmp_path / "current folder")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", f"{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    return folder


def run(program: Program, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        program.command, env=program.environment, cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("package", ["porter", "aten_overlay"])
def test_no_other_code_starts_python(package: str) -> None:
    sources = [path for path in (ROOT / package).rglob("*.py") if "fork" not in path.relative_to(ROOT).parts]
    assert len(sources) > 50
    names = {path.relative_to(ROOT).as_posix() for path in sources if STARTS.search(path.read_text())}
    assert names - {"porter/core/python.py"} == {name for name in ELSEWHERE if name.startswith(package)}


def test_a_module_of_porter_runs_in_any_folder(hostile: Path) -> None:
    done = run(own_module(told_modules.__name__, "a b", "--x"), hostile)
    assert done.returncode == 7, done.stderr
    arguments, path, file = done.stdout.splitlines()
    assert arguments == repr(["a b", "--x"])
    assert not {"", str(hostile), str(hostile.resolve())} & set(path.split(os.pathsep))
    assert Path(file) == Path(told_modules.__file__)
    assert list_sprung(hostile) == []


def test_garbage_is_seldom_looked_for_only_while_a_module_is_imported() -> None:
    """Then as often as Python does by itself, but for porter's own commands."""
    plain = [sys.executable, "-c", "import gc; print(gc.get_threshold())"]
    usual = subprocess.run(plain, capture_output=True, text=True, check=True).stdout.strip()
    done = run(own_module(told_garbage.__name__), PACKAGES)
    assert done.stdout.splitlines() == [str(SELDOM), usual, str(porter.__main__.GARBAGE)], done.stderr


def test_the_folders_that_the_user_names_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", "mine", str(tmp_path / "other"))))
    program = own_module(told_modules.__name__)
    assert program.environment["PYTHONPATH"] == os.pathsep.join((str(tmp_path / "mine"), str(tmp_path / "other")))
    assert str(tmp_path / "mine") in run(program, tmp_path).stdout.splitlines()[1].split(os.pathsep)


def test_a_module_of_others_runs_isolated(hostile: Path) -> None:
    done = run(foreign_module("json.tool", "--help"), hostile)
    assert done.returncode == 0, done.stderr
    assert list_sprung(hostile) == []


def test_porter_itself_runs_in_any_folder(hostile: Path) -> None:
    done = run(own_module("porter.__main__", "status", "exp"), hostile)
    assert (done.returncode, "exp" in done.stdout) == (0, True), done.stderr
    assert list_sprung(hostile) == []


@pytest.mark.parametrize("module", ["porter", "aten_overlay"])
def test_with_m_only_what_python_itself_looks_for_can_come_from_the_folder(tmp_path: Path, module: str) -> None:
    folder = fill_with_traps(tmp_path)
    for package in ("porter", "aten_overlay"):  # Python looks for the package itself, there first
        (folder / package / "__init__.py").unlink()
        (folder / package).rmdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "usage" in (done.stdout + done.stderr).lower(), done.stderr
    assert list_sprung(folder) == ["sitecustomize"] * ("sitecustomize" in list_sprung(folder))


def test_a_proof_runs_in_any_folder(hostile: Path) -> None:
    verdict = process.run_proof("tests.porter.core.told_proof", "{}", "told", ignore)
    assert isinstance(verdict, Verdict) and verdict.op == "told"
    assert list_sprung(hostile) == []


def test_a_share_runs_in_any_folder(hostile: Path) -> None:
    share = make_shares(("status", "--all", "--checkout", str(ROOT / "aten_overlay/fork")), "", 1)[0]
    result = run_share(share)
    assert "PTR006" in result.notes, result.notes  # `status` has no shares, which porter itself says
    assert list_sprung(hostile) == []


def test_a_script_becomes_a_check_that_runs_in_any_folder(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, tuple[str, ...], dict[str, str]]] = []
    monkeypatch.setattr(os, "execve", lambda *call: calls.append(call))
    porter.kernels.script.run_script("rows.py")
    ((file, command, environment),) = calls
    assert (file, command[-3:]) == (sys.executable, ("kernel", "check", "rows.py"))
    done = run(Program((*command[:-1], "--help"), environment, PACKAGES), hostile)
    assert done.returncode == 0 and "kernel check" in done.stdout, done.stderr
    assert list_sprung(hostile) == []


def test_a_relative_folder_is_the_same_one_in_each_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PORTER_CACHE", "a cache")
    monkeypatch.setattr("porter.cli.main", lambda: 0)
    monkeypatch.setattr("porter.__main__.gc", SimpleNamespace(set_threshold=lambda *_: None, freeze=lambda: None))
    assert porter.__main__.main() == 0
    assert own_module("told").environment["PORTER_CACHE"] == str(tmp_path / "a cache")
