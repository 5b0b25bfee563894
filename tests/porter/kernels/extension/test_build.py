"""Projects built by their own setup.py, and their tests run, under the stand-in device."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.device_pool import DevicePool

HERE = Path(__file__).resolve().parent
PYTHON = (sys.executable, "-m", "aten_overlay")
PAIR = re.compile(r"(\d+) (passed|failed)")
# Python's own flags ask for -O3 -g: most of what it takes to compile torch's headers.
QUICK = {"CFLAGS": "-O0 -g0 -DNDEBUG", "CXXFLAGS": "-O0 -g0 -DNDEBUG"}


def run(folder: Path, *arguments: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(str(each) for each in (ROOT, path, os.environ.get("PYTHONPATH")) if each)
    environment = {**os.environ, **QUICK, "PYTHONPATH": paths}
    return subprocess.run(
        [*PYTHON, *arguments], cwd=folder, capture_output=True, text=True, check=False, env=environment
    )


def build(folder: Path) -> None:
    done = run(folder, "setup.py", "build_ext", "--inplace")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def run_tests(
    pool: DevicePool, folder: Path, *arguments: str, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What `python -m aten_overlay -m pytest` does in a folder, in a fork of a process that has the device already."""
    first = [str(each) for each in (folder, ROOT, path) if each]
    words = ["-q", "-p", "no:cacheprovider", *arguments]
    code = f"import os, sys, pytest; os.chdir({first[0]!r}); sys.path[:0] = {first!r}; sys.exit(pytest.main({words!r}))"
    return pool.run("-c", code)


def count_tests(pool: DevicePool, folder: Path, *arguments: str, path: Path | None = None) -> dict[str, int]:
    done = run_tests(pool, folder, *arguments, path=path)
    found = {what: int(count) for count, what in PAIR.findall(done.stdout)}
    assert found and "error" not in done.stdout.splitlines()[-1], done.stdout[-3000:] + done.stderr[-3000:]
    return found


def make(folder: Path, name: str, *arguments: str) -> None:
    command = (sys.executable, "-m", "porter", "extension", "new", name, "--out", str(folder), *arguments)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("example") / "fused_ops"
    make(folder, "fused_ops")
    build(folder)
    return folder


def test_the_tests_of_a_new_project_pass(device_pool: DevicePool, example: Path) -> None:
    assert count_tests(device_pool, example, "tests") == {"passed": 54}


def test_pip_installs_what_the_package_needs_and_no_more(example: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    options = ("--no-build-isolation", "--no-deps", "--no-index", "--no-compile", "--target", str(site))
    done = run(example, "-m", "pip", "install", "-q", *options, ".")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    found = {path.name.partition(".cpython")[0] for path in (site / "fused_ops").iterdir()}
    assert found == {"__init__.py", "ops.py", "_C"}
    assert [path.name for path in site.iterdir() if path.suffix != ".dist-info"] == ["fused_ops"]
    code = (
        f"import sys; sys.path.insert(0, {str(site)!r}); import torch, fused_ops; "
        "one = torch.ones(2, device='mps'); print(fused_ops.__file__, fused_ops.swiglu(one, one).tolist())"
    )
    told = run(tmp_path, "-c", code)
    assert told.stdout.startswith(f"{site / 'fused_ops' / '__init__.py'} [0.731"), told.stdout + told.stderr


def test_an_installed_package_is_tested_beside_its_sources(
    device_pool: DevicePool, example: Path, tmp_path: Path
) -> None:
    site, sources = tmp_path / "site", tmp_path / "sources"
    shutil.copytree(example / "fused_ops", site / "fused_ops")
    shutil.copytree(example, sources, ignore=shutil.ignore_patterns("_C.*", "build"))
    for each in (sources / "fused_ops").iterdir():
        assert not each.name.startswith("_C")
    assert count_tests(device_pool, sources, "tests", "-k", "slice", path=site) == {"passed": 2}


def test_what_has_no_library_or_no_kernels_says_so(device_pool: DevicePool, example: Path, tmp_path: Path) -> None:
    sources, site = tmp_path / "sources", tmp_path / "site" / "fused_ops"
    shutil.copytree(example, sources, ignore=shutil.ignore_patterns("_C.*", "build"))
    assert "setup.py build_ext --inplace" in run_tests(device_pool, sources, "tests").stderr
    site.mkdir(parents=True)
    (site / "__init__.py").touch()
    assert "built without the Metal kernels" in run_tests(device_pool, sources, "tests", path=site.parent).stderr


def test_they_find_an_offset_in_elements(device_pool: DevicePool, example: Path) -> None:
    """Runs last: it breaks the project."""
    header = example / "csrc" / "launch.h"
    right = header.read_text()
    wrong = right.replace("tensor.storage_offset() * tensor.element_size()", "tensor.storage_offset()")
    assert wrong != right
    header.write_text(wrong)
    (example / "csrc" / "ops_mps.mm").touch()
    build(example)
    assert count_tests(device_pool, example, "tests", "-k", "slice") == {"failed": 1, "passed": 1}


def test_an_extension_of_kernels_computes_what_they_do(device_pool: DevicePool, tmp_path: Path) -> None:
    folder = tmp_path / "kernel_ops"
    make(folder, "kernel_ops", "--from", str(HERE / "kernels.py"))
    build(folder)
    assert count_tests(device_pool, folder, "tests") == {"passed": 9}
    assert count_tests(
        device_pool, folder, "-c", "pyproject.toml", "--rootdir", ".", str(HERE / "check_kernels.py")
    ) == {"passed": 15}
