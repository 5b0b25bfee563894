"""`porter extension check`: a made-up package, whose extension is plain C, and what is no package at all."""

from __future__ import annotations

import io
import json
import os
import tarfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from porter.cli import main
from porter.core.errors import PorterError
from porter.kernels.extension.build_log import Cause
from porter.report.package import package_object
from porter.server.ending import Bounds, run_bounded
from porter.workflows import package
from porter.workflows.package import CheckSettings, check_package

SETUP = """\
import sys
from setuptools import Extension, setup

if sys.platform != "darwin":
    sys.exit("toy needs macOS")
setup(name="toy", version="0.1", packages=["toy"], ext_modules=[Extension("toy._c", ["toy/toy.c"])])
"""
MODULE = """\
#include <Python.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_c", 0, -1, 0};
PyMODINIT_FUNC PyInit__c(void) { return PyModule_Create(&definition); }
"""
PACKAGE = """\
import platform
import torch
from . import _c
SOURCE = "kernel void f(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 2; }"
def fill(x):
    assert platform.system() == "Darwin"
    torch.mps.compile_shader(SOURCE).f(x)
    return x
"""
TESTS = """\
import pytest, sys, toy, torch
def test_fill():
    assert toy.fill(torch.ones(4, device="mps")).tolist() == [2] * 4 and "site" in toy.__file__
def test_system():
    assert sys.platform == "darwin" and torch.sys.platform != "darwin"
def test_wrong():
    assert toy is None
@pytest.mark.skip
def test_later():
    pass
"""
SCRIPT = """\
def test_kind(kind):
    print("FAILED", kind)
if __name__ == "__main__":
    test_kind("half")
"""
FILES = {
    "setup.py": SETUP, "toy/toy.c": MODULE, "toy/__init__.py": PACKAGE, "tests/test_toy.py": TESTS,
    "tests/test_script.py": SCRIPT,
}  # fmt: skip


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_package_that_asks_for_macos_says_so(tmp_path: Path) -> None:
    refused = check_package(str(write(tmp_path / "toy", FILES)), CheckSettings())
    assert refused.build.failure is not None and refused.build.failure.cause is Cause.PLATFORM
    assert refused.build.failure.error.what == "the package refuses this system: toy needs macOS"
    assert "--as-mac" in refused.build.failure.error.hint
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(tmp_path / "toy")) for path in files) == sorted(FILES)


def test_a_package_that_sees_a_mac_is_built_and_tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORTER_SANITIZE", "bounds")
    source, kept = write(tmp_path / "toy", FILES), tmp_path / "kept"
    sdist = tmp_path / "toy-0.1.tar.gz"
    with tarfile.open(sdist, "w:gz") as archive:
        archive.add(source, "toy-0.1")
    checked = check_package(str(sdist), CheckSettings(as_mac=True, keep=kept))
    assert checked.build.failure is None, (kept / "logs" / "build.log").read_text()
    assert checked.tests is not None and checked.build.modules[0].startswith("toy/_c.")
    assert (checked.build.name, checked.build.version) == ("toy", "0.1")
    counts = (checked.tests.passed, checked.tests.failed, checked.tests.skipped)
    assert counts == (2, 2, 1), (kept / "logs" / "tests.log").read_text()
    assert [line.partition(":")[0] for line in checked.tests.failures] == ["tests/test_toy.py", "tests/test_script.py"]
    assert checked.tests.failures[1] == "tests/test_script.py: FAILED half (exit code 0)"
    assert not checked.ok and checked.tests.runs[0].launches == 1
    assert [path.suffix for path in (kept / "kernels").iterdir()] == [".metal"]
    json.dumps(package_object(checked))


@pytest.mark.parametrize("source", ["nothing/there", "../toy", "toy==", "-r", "toy-0.1.tar.gz", "toy.whl", ""])
def test_what_is_no_source_is_refused(source: str) -> None:
    with pytest.raises(PorterError, match="neither a folder") as refused:
        check_package(source, CheckSettings())
    assert refused.value.code == "PTR198"


def test_a_folder_without_a_package_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PORTER_SANITIZE", "none")
    assert main(["extension", "check", str(tmp_path)]) == 2
    assert "PTR198 there is no package to build: there is no setup.py" in capsys.readouterr().err


@pytest.mark.parametrize("has_filter", [True, False])
def test_an_archive_reaches_nothing_outside(has_filter: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by a name nor by a link; and one that holds too much is not unpacked. Python 3.11.2 has no filter."""
    if not has_filter:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    for name, link in (("../../out.py", ""), ("setup.py", "/etc/passwd")):
        entry = tarfile.TarInfo(name)
        entry.type, entry.linkname = (tarfile.SYMTYPE, link) if link else (tarfile.REGTYPE, "")
        with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as archive:
            archive.addfile(entry, io.BytesIO())
        with pytest.raises(PorterError, match="it cannot be copied"):
            check_package(str(tmp_path / "bad.tar.gz"), CheckSettings())
    with zipfile.ZipFile(tmp_path / "out.zip", "w") as zipped:
        zipped.writestr("../../../out.py", "")
    with pytest.raises(PorterError, match=r"there is no setup\.py"):
        check_package(str(tmp_path / "out.zip"), CheckSettings())
    assert not list(tmp_path.parent.glob("out.py"))
    monkeypatch.setattr(package, "_MOST", 1000)
    with zipfile.ZipFile(tmp_path / "large.zip", "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("setup.py", " " * 1001)
    with pytest.raises(PorterError, match="it holds more than"):
        check_package(str(tmp_path / "large.zip"), CheckSettings())


def test_a_step_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    command = ("sh", "-c", f"sleep 100 & echo $! > {tmp_path}/child; sleep 100")
    assert run_bounded(command, os.environ, Bounds(tmp_path, tmp_path / "log", 0.5)) is None
    child = int((tmp_path / "child").read_text())
    for _ in range(100):
        try:
            state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            break
        if state == "Z":
            break
        time.sleep(0.05)
    else:
        pytest.fail("it goes on")


def test_a_step_tells_its_exit_code_and_keeps_its_output(tmp_path: Path) -> None:
    bounds = Bounds(tmp_path, tmp_path / "log", 60, {"WORD": "told"})
    assert run_bounded(("sh", "-c", "echo $WORD; pwd >&2; exit 3"), os.environ, bounds) == 3
    assert (tmp_path / "log").read_text() == f"told\n{tmp_path}\n"
