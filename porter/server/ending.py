"""How processes are ended with all that they started, so that none outlives whoever asked."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections import defaultdict
from pathlib import Path

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
    """Ends a child that leads a process group, the group, and all its descendants in other groups."""
    found = _stop_descendants(process)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    for each in (process, *found):
        _send(each, signal.SIGKILL)


def end_descendants() -> None:
    """Ends all that this process and its children started."""
    for each in _stop_descendants(os.getpid()):
        _send(each, signal.SIGKILL)


def _stop_descendants(process: int) -> set[int]:
    """Stopped processes start no others: the set is whole when a look finds none that is new."""
    stopped: set[int] = set()
    while new := _descendants(process) - stopped:
        for each in new:
            _send(each, signal.SIGSTOP)
        stopped |= new
    return stopped


def _descendants(process: int) -> set[int]:
    """By `/proc`; none where there is no such folder."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            fields = entry.read_text(errors="replace").rpartition(")")[2].split()
            children[int(fields[1])].append(int(entry.parent.name))
    found: set[int] = set()
    left = [process]
    while left:
        new = [child for child in children[left.pop()] if child not in found]
        found.update(new)
        left += new
    return found


def _send(process: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, number)


def _prctl(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
