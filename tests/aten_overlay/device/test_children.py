"""Processes that a program with the device starts have it too."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import ROOT, Run

HEAD = "import subprocess, sys, os\ndef child(code, **more): return subprocess.run([sys.executable, '-c', code], text=True, "
HEAD += "stdout=subprocess.PIPE, env={**os.environ, **more}).stdout\n"


def test_a_child_has_the_device(on_device: Run) -> None:
    code = "import torch; print(torch.ones(2, device='mps').sum().item(), torch.__spec__.name, len(torch.__path__))"
    done = on_device(f"{HEAD}print(child({code!r}), end='')")
    assert (done.returncode, done.stdout) == (0, "2.0 torch 1\n"), done.stderr


def test_a_child_without_torch_stays_without(on_device: Run) -> None:
    done = on_device(f"{HEAD}print(child(\"import sys; print('aten_overlay.device' in sys.modules)\"), end='')")
    assert done.stdout == "False\n", done.stderr


def test_a_sitecustomize_of_the_program_still_runs(on_device: Run, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins; builtins.found = 'mine'\n")
    paths = f"os.environ['PYTHONPATH'] + os.pathsep + {str(tmp_path)!r}"
    done = on_device(f"{HEAD}print(child('print(found)', PYTHONPATH={paths}), end='')")
    assert done.stdout == "mine\n", done.stderr


def test_compiled_code_is_told_what_the_device_alone_lacks(python: Run, tmp_path: Path) -> None:
    source = ROOT / "tests" / "aten_overlay" / "device" / "programs" / "commit.cpp"
    done = python(
        "-c",
        "import aten_overlay; aten_overlay.start(); import torch\n"
        "from torch.utils import cpp_extension\n"
        f"cpp_extension.load('commit', [{str(source)!r}], build_directory={str(tmp_path)!r}, is_python_module=False)\n"
        "try: torch.ops.commit_test.commit()\n"
        "except RuntimeError as error: print(str(error)[:6])\n"
        "aten_overlay.start_frameworks(); torch.ops.commit_test.commit(); print('committed')\n",
    )
    assert done.stdout == "PTR250\ncommitted\n", done.stderr[-2000:]
