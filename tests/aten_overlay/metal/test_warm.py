"""Compilers that are loaded already: they do what others do, and end with who asks them."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from aten_overlay.metal import compiler
from aten_overlay.metal.warm import WarmCompiler

SHELL = "/bin/sh"  # which is loaded as a compiler is, and does what a test asks it to
ECHO = (SHELL, "-c", 'cat; echo "$0" "$1"; pwd; echo wrong >&2; exit 7', "a b", "c\udce9")


def make() -> WarmCompiler:
    """One that has run a first command, and keeps a process from now on."""
    warm = WarmCompiler(compiler._find_warm_library)
    assert warm.run([SHELL, "-c", ":"], None) is None
    return warm


def run_cold(command: Sequence[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, input=text, capture_output=True, text=True, check=False, errors="surrogateescape"
    )  # fmt: skip


def find_parent(warm: WarmCompiler) -> int:
    """The process that forks."""
    done = warm.run([SHELL, "-c", "echo $PPID"], None)
    assert done
    return int(done.stdout)


def holds_in_fork(condition: Callable[[], bool]) -> bool:
    child = os.fork()
    if child == 0:
        holds = False
        try:
            holds = condition()
        finally:
            os._exit(not holds)
    return os.waitpid(child, 0)[1] == 0


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until_ended(process: int) -> None:
    end = time.monotonic() + 60
    while is_running(process):
        assert time.monotonic() < end
        time.sleep(0.01)


@pytest.mark.parametrize("text", [None, "", "one\r\ntwo \udce9\n", "x" * 1_000_000])
def test_a_command_does_what_it_does_anywhere(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = make()
    find_parent(warm)
    monkeypatch.chdir(tmp_path)  # after it was started
    done, cold = warm.run(ECHO, text), run_cold(ECHO, text or "")
    assert done and (done.returncode, done.stdout, done.stderr) == (7, cold.stdout, "wrong\n")
    assert str(tmp_path) in done.stdout


def test_clang_says_the_same() -> None:
    warm, clang = make(), compiler.find_clang()
    for command, text in (
        ((clang, "-x", "c++", "-E", "-"), "#define X 3\nX\n"),
        ((clang, "-x", "c++", "-S", "-"), "a;"),
    ):
        done, cold = warm.run(command, text), run_cold(command, text)
        assert done and (done.returncode, done.stdout, done.stderr) == (cold.returncode, cold.stdout, cold.stderr)


def test_one_process_serves_all_commands_and_forks() -> None:
    warm = make()
    first = find_parent(warm)
    assert first not in (os.getpid(), find_parent(make()))
    assert holds_in_fork(lambda: find_parent(warm) == first) and find_parent(warm) == first


def test_another_environment_limit_or_group_has_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    warm = make()
    parents = [find_parent(warm)]
    monkeypatch.setenv("PYTEST_OTHER", "what no compiler reads")
    assert find_parent(warm) == parents[0]
    monkeypatch.setenv("CPATH", "/other")
    parents.append(find_parent(warm))
    done = warm.run([SHELL, "-c", "echo $CPATH $LD_PRELOAD $PM_WARM_SOCKET"], None)
    assert done and done.stdout == "/other\n"

    def is_another_in_group_and_limit() -> bool:
        os.setpgrp()
        in_group = find_parent(warm)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
        return len({in_group, find_parent(warm), *parents}) == 4

    assert holds_in_fork(is_another_in_group_and_limit) and len(set(parents)) == 2


def test_it_ends_with_who_asks_it() -> None:
    code = (
        "from tests.aten_overlay.metal.test_warm import find_parent, make\n"
        "warm = make()\nprint(find_parent(warm), flush=True)\nimport os; os.kill(os.getpid(), 9)"
    )
    done = run_cold([sys.executable, "-c", code])
    assert done.returncode == -signal.SIGKILL, done.stderr
    wait_until_ended(int(done.stdout))


def test_a_command_that_nobody_waits_for_is_killed(tmp_path: Path) -> None:
    warm, listed = make(), tmp_path / "process"
    child = os.fork()
    if child == 0:
        try:
            warm.run([SHELL, "-c", f"echo $$ > {listed}.part; mv {listed}.part {listed}; exec sleep 600"], None)
        finally:
            os._exit(1)
    while not listed.exists():
        time.sleep(0.01)
    process = int(listed.read_text())
    assert is_running(process)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    wait_until_ended(process)


def test_when_it_has_ended_commands_run_elsewhere_and_the_next_starts_another() -> None:
    warm = make()
    os.kill(first := find_parent(warm), signal.SIGKILL)
    wait_until_ended(first)
    assert warm.run([SHELL, "-c", ":"], None) is None
    assert find_parent(warm) != first


def test_what_cannot_be_kept_runs_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert make().run([SHELL, "-c", "x" * (1 << 17)], None) is None
    for library in (None, tmp_path / "missing.so"):
        warm = WarmCompiler(lambda library=library: library)  # type: ignore[misc]
        assert [warm.run([SHELL, "-c", ":"], None) for _ in range(3)] == [None] * 3
    monkeypatch.setenv("LD_PRELOAD", "other.so")
    assert make().run([SHELL, "-c", ":"], None) is None
