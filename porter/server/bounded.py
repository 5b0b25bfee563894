"""A process that has so long to end, and ends with all that it started."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from porter.server.ending import end_tree


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
