"""Ctrl-C at any moment ends a command without a traceback, leaves a whole tree, and the next command works."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from porter.core import journal
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.journal import held_back

# Runs the command and interrupts it at the event of a number, which Python's audit hooks count: imports, files, calls.
INTERRUPTED = """\
import os, signal, sys
from porter.__main__ import main
left = int(sys.argv.pop(1))
def count(*_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGINT)
sys.addaudithook(count)
code = main()
print(left, file=sys.stderr)
sys.exit(code)
"""
PARTS = 7


@pytest.fixture(autouse=True)
def _interruptible(request: pytest.FixtureRequest) -> None:
    """Programs started in the background ignore Ctrl-C, and so would the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EMBEDDED_FORK, tmp_path / "fork"))


def read(fork: Path) -> dict[Path, bytes]:
    return {path.relative_to(fork): path.read_bytes() for path in fork.rglob("*") if path.is_file()}


def interrupt(at: int, fork: Path, *command: str) -> subprocess.CompletedProcess[str]:
    arguments = (sys.executable, "-c", INTERRUPTED, str(at), *command, "--checkout", str(fork))
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def test_a_command_is_ended_by_ctrl_c_anywhere(fork: Path) -> None:
    before = read(fork)
    write = ("migrate", "atan2", "--no-verify", "--unverified", "--write")
    whole = interrupt(10**9, fork, *write)
    assert whole.returncode == 0, whole.stderr
    events = 10**9 - int(whole.stderr.split()[-1])
    after = read(fork)
    journal.undo(Checkout(fork, "the test"))
    codes = set()
    for at in [events * part // PARTS + 1 for part in range(PARTS)] + [events - 40, events - 10]:
        done = interrupt(at, fork, *write)
        codes.add(done.returncode)
        assert "Traceback" not in done.stderr, (at, done.stderr)
        journal.require_settled(Checkout(fork, "the test"))
        if read(fork) != before:
            assert read(fork) == after, at
            journal.undo(Checkout(fork, "the test"))
        assert read(fork) == before, at
    assert {130, -signal.SIGINT} <= codes <= {0, 130, -signal.SIGINT}


def test_ctrl_c_waits_for_the_end_of_a_write() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt), held_back():
        os.kill(os.getpid(), signal.SIGINT)
        steps.append("went on")
    assert steps == ["went on"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_failure_in_what_is_held_back_comes_through() -> None:
    with pytest.raises(PorterError), held_back():
        raise PorterError("PTR060", "no")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
