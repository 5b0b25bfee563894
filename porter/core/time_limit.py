"""A bound on the processor's time that reading somebody else's text takes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from porter.core.errors import PorterError


@contextmanager
def within(seconds: float, error: PorterError) -> Iterator[None]:
    """Raises an error once the block has taken so long; a regular expression that goes back and forth stops for it too.

    A machine that is busy with other work counts for nothing. In a thread of a server there is no bound: signals are
    the main thread's.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise error

    before = signal.signal(signal.SIGPROF, stop)
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
