"""`porter extension new` as it is called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from porter.cli import main


def test_the_files_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["extension", "new", "my_ops"]) == 0
    told = capsys.readouterr()
    assert sorted(told.out.split()) == sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert "setup.py build_ext --inplace" in told.err


def test_json_names_the_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["extension", "new", "my_ops", "--out", str(tmp_path / "there"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["folder"] == str(tmp_path / "there") and all(Path(path).is_file() for path in told["files"])


def test_a_wrong_name_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["extension", "new", "my-ops", "--out", str(tmp_path / "there")]) == 2
    assert capsys.readouterr().err.startswith("porter: PTR251 ")


def test_no_metallib_of_the_kernels_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "there")
    assert main(["extension", "new", "my_ops", "--from", "silu.py", "--metallib", "--out", out]) == 2
    assert capsys.readouterr().err.startswith("porter: PTR257 ")


def test_without_torch_a_command_that_needs_it_says_so(tmp_path: Path) -> None:
    program = "import sys; sys.modules['torch'] = None; from porter.cli import main; sys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", program, "extension", "new", "swish"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr == ("porter: PTR191 torch is not installed\n  Run `pip install 'torch-porter[verify]'`.\n")
    assert not list(tmp_path.iterdir())
