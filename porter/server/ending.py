"""How processes are ended with all that they started, so that none outlives whoever asked."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

_PROC = Path("/proc")
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """Makes this process the parent of every descendant whose own parent ends, where the system knows of it."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_with_parent(parent: int) -> None:
    """Makes this process end when the process that forked it does."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # it ended before


def end_tree(process: int) -> None:
    """Ends a child that leads a process group, the group, and all its descendants in other groups.

    The child must not have been waited for, as its number may be another process's then. Raises ValueError for what
    is no child of this process: everything that is not one's own stays alone.
    """
    if process <= 1 or (_PROC.is_dir() and process not in _children()[os.getpid()]):
        raise ValueError(f"{process} is no child of {os.getpid()}")
    found = _stop_descendants(process)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    for each in (process, *found):
        _send(each, signal.SIGKILL)


def end_descendants() -> None:
    """Ends all that this process and its children started."""
    for each in _stop_descendants(os.getpid()):
        _send(each, signal.SIGKILL)


def has_exited(process: int) -> bool:
    """Whether a child is over, without waiting for it: its number stays its own. No where the system cannot tell."""
    if not hasattr(os, "waitid"):
        return False
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def catches(process: int, number: signal.Signals) -> bool:
    """Whether a process has a handler for a signal, which would end it otherwise; by `/proc`, else no."""
    with contextlib.suppress(OSError):
        for line in (_PROC / str(process) / "status").read_text().splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def _stop_descendants(process: int) -> set[int]:
    """Stopped processes start no others: the set is whole when a look finds none that is new."""
    stopped: set[int] = set()
    while new := _descendants(process) - stopped:
        for each in new:
            _send(each, signal.SIGSTOP)
        stopped |= new
    return stopped


def _descendants(process: int) -> set[int]:
    children = _children()
    found: set[int] = set()
    left = [process]
    while left:
        new = [child for child in children[left.pop()] if child not in found]
        found.update(new)
        left += new
    return found


def _children() -> Mapping[int, list[int]]:
    """The children of every process, zombies included."""
    found: dict[int, list[int]] = defaultdict(list)
    for entry in _PROC.iterdir() if _PROC.is_dir() else ():
        with contextlib.suppress(OSError, ValueError):  # it ended meanwhile, or is no process
            process = int(entry.name)
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            found[int(fields[1])].append(process)
    return found


def _send(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, number)


def _prctl(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


# A process that has so long to end, and ends with all that it started.


@dataclass(frozen=True)
class Bounds:
    """Where a process runs: its folder, the file that its output is added to, its time, and variables of its own."""

    folder: Path
    log: Path
    seconds: float
    variables: Mapping[str, str] = field(default_factory=dict)


def run_bounded(command: Sequence[str], environment: Mapping[str, str], bounds: Bounds) -> int | None:
    """Runs a command to its end and returns what it exits with; None where its time is over."""
    handle = os.open(bounds.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as log, _raising_terminate():
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=bounds.folder,
            env={**environment, **bounds.variables},
            start_new_session=True,
        )
        try:
            return process.wait(bounds.seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.returncode is None:
                end_tree(process.pid)
                process.wait()


@contextmanager
def _raising_terminate() -> Iterator[None]:
    """Has a request to end this process end what it started first. Signals are the main thread's."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
