"""On a terminal: color where it is wanted, tables as wide as there is room, diffs as they are."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK
from tests.porter.cli.pseudo_terminal import COLOR, ROOT, in_pipe, on_terminal, shown

PLAN = ("migrate", "atan2", "--no-verify")


@pytest.mark.parametrize("arguments", [PLAN, ("status",), ("explain", "atan2", "--no-record")])
def test_a_terminal_gets_color_unless_told_otherwise(arguments: tuple[str, ...]) -> None:
    assert COLOR.search(on_terminal(*arguments))
    assert not COLOR.search(on_terminal(*arguments, "--no-color"))
    assert not COLOR.search(on_terminal(*arguments, NO_COLOR="1"))


def test_an_empty_no_color_means_nothing() -> None:
    assert COLOR.search(on_terminal("status", NO_COLOR=""))


@pytest.mark.parametrize("width", [50, 90])
def test_the_status_table_is_no_wider_than_the_terminal(width: int) -> None:
    checkout, *lines = shown(on_terminal("status", width=width)).split("\n")
    assert checkout.startswith("checkout: ")  # a path is never cut
    assert max(map(len, lines)) <= width
    assert any(line.startswith("floor_divide") for line in lines)


def test_the_summary_is_no_wider_than_the_terminal() -> None:
    text = shown(on_terminal(*PLAN, width=60))
    summary = text[text.rindex("\natan2 ") :].split("\n")
    assert any("BinaryKernel" in line for line in summary)
    assert max(map(len, summary)) <= 60


def test_the_diff_on_a_narrow_terminal_is_that_of_a_pipe() -> None:
    diff = in_pipe(*PLAN).stdout.decode()
    assert max(map(len, diff.splitlines())) > 60
    assert diff in shown(on_terminal(*PLAN, width=60)) + "\n"


def test_a_dumb_terminal_gets_plain_text() -> None:
    assert "\x1b" not in on_terminal("status", TERM="dumb")


def test_a_pipe_gets_the_whole_reason_on_one_line(tmp_path: Path) -> None:
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    (tmp_path / "c10/metal/indexing.h").write_text("")
    done = in_pipe("status", "erf", "--checkout", str(tmp_path))
    assert "erf " in done.stdout.decode()
    assert done.stdout.decode().splitlines()[1].endswith("PTR002 this fork predates the functor dialect")


def test_a_diff_has_the_bytes_of_the_fork(tmp_path: Path) -> None:
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    yaml = tmp_path / "aten/src/ATen/native/native_functions.yaml"
    line = b"    MPS: atan2_out_mps\n"
    assert line in yaml.read_bytes()
    host = tmp_path / "aten/src/ATen/native/mps/operations/BinaryOps.mm"
    signature = b"TORCH_IMPL_FUNC(atan2_out_mps)"
    assert signature in host.read_bytes()
    host.write_bytes(host.read_bytes().replace(signature, b"// caf\xe9\n" + signature))
    assert b"// caf\xe9\n" in in_pipe(*PLAN, "--checkout", str(tmp_path)).stdout


def test_a_reader_that_leaves_is_no_error() -> None:
    command = [sys.executable, "-m", "porter", "status"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.close()
        assert b"Traceback" not in child.stderr.read()
