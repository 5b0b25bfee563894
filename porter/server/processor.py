"""How much of a processor a process has had, and whether it waits for more: on a loaded machine others have turns.

Where the system does not tell (no `/proc`), a process has had all of the time since it began.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

_PROC = Path("/proc")
# Fields of `stat` behind the name; the last two are of children that have ended.
_STATE, _USER, _SYSTEM, _ENDED_USER, _ENDED_SYSTEM = 0, 11, 12, 13, 14
# So many times its limit has passed on the clock when a process is ended that has had less of a processor.
PATIENCE = 4.0


@dataclass(frozen=True)
class Turn:
    """A step of a process, from its start on."""

    process: int
    started: float = field(default_factory=time.monotonic)
    had: float = 0.0  # seconds of a processor, before

    @classmethod
    def begin(cls, process: int) -> Turn:
        """The step that a process begins now."""
        return cls(process, had=_read_seconds(process))

    def seconds_left(self, limit: float) -> float:
        """The seconds of a limit that are left: of the clock, and of a processor for one that computes and waits."""
        passed = time.monotonic() - self.started
        if passed < limit or passed >= PATIENCE * limit or not _is_running(self.process):
            return limit - passed
        return limit - (_read_seconds(self.process) - self.had)


def _read_seconds(process: int) -> float:
    """The seconds of a processor that a process has had, in all of its threads, with its children that have ended and
    with those that have not: a compiler works for the test that waits for it.
    """
    ticks = 0
    for member in _list_family(process):
        fields = _read_stat(_PROC / str(member) / "stat")
        ticks += sum(int(fields[at]) for at in (_USER, _SYSTEM, _ENDED_USER, _ENDED_SYSTEM)) if fields else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def _is_running(process: int) -> bool:
    """Whether a thread of a process, or of a child of it, has a processor, or waits for one alone."""
    threads = (path for member in _list_family(process) for path in (_PROC / str(member) / "task").glob("*/stat"))
    return any(fields and fields[_STATE] == "R" for fields in map(_read_stat, threads))


def _list_family(process: int) -> list[int]:
    """A process and its children, their children, and so on; the process alone where the system does not tell."""
    family = [process]
    for member in family:
        for path in (_PROC / str(member) / "task").glob("*/children"):
            with suppress(OSError):  # the thread has ended
                family += map(int, path.read_text().split())
    return family


def _read_stat(path: Path) -> list[str]:
    """The fields behind the name; none of what has ended."""
    try:
        return path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
