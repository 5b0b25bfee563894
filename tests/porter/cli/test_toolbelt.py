"""The commands that a fork's own tools call, and the one that installs them there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from porter.cli import main
from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNELS, MATCHER, PRE_COMMIT


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    return shutil.copytree(EMBEDDED_FORK, tmp_path / "fork")


@pytest.fixture
def run(fork: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def run(*words: str) -> dict[str, Any]:
        assert main(["--checkout", str(fork), "--json", "toolbelt", "install", *words]) == 0
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return run


def test_nothing_is_written_without_write_and_undo_reverts_it(fork: Path, run: Callable[..., dict[str, Any]]) -> None:
    shown = run()
    assert set(shown["left_out"]) == {"spin", "lintrunner"} and shown["written"] == []
    assert shown["diff"].count("new file") == 2 and not (fork / MATCHER).exists()
    assert run("--write") == {**shown, "written": [MATCHER, PRE_COMMIT]}
    assert run("--write") == {**shown, "diff": "", "written": []}
    assert main(["--checkout", str(fork), "undo", "toolbelt"]) == 0
    assert not (fork / MATCHER).exists() and not (fork / PRE_COMMIT).exists()


def test_an_adapter_that_finds_an_error_ends_well(fork: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next((fork / KERNELS).glob("*.metal"))
    path.write_text(f"{path.read_text()}kernel void k(device float* x [[buffer(0)]]) {{ x[0] = tanh(x[0]); }}\n")
    words = ["--checkout", str(fork), "lint", "--base", str(EMBEDDED_FORK)]
    assert main(words) == 1
    capsys.readouterr()
    assert main([*words, "--format", "lintrunner"]) == 0
    assert json.loads(capsys.readouterr().out)["severity"] == "error"
