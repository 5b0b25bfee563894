"""How much of a processor a process has had, and whether it waits for more: on a loaded machine others have turns.

Where the system does not tell (no `/proc`), a process has had all of the time since it began.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

_PROC = Path("/proc")
_STATE, _USER, _SYSTEM = 0, 11, 12  # fields of `stat` behind the name
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
    """The seconds of a processor that a process has had, in all of its threads."""
    fields = _read_stat(_PROC / str(process) / "stat")
    ticks = sum(int(fields[at]) for at in (_USER, _SYSTEM)) if fields else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def _is_running(process: int) -> bool:
    """Whether a thread of a process has a processor, or waits for one alone."""
    threads = (_PROC / str(process) / "task").glob("*/stat")
    return any(fields and fields[_STATE] == "R" for fields in map(_read_stat, threads))


def _read_stat(path: Path) -> list[str]:
    """The fields behind the name; none of what has ended."""
    try:
        return path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
