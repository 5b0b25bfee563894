"""Runs a function in a forked process: host code registers itself once only in each."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, Pipe
from typing import Any, TypeVar

T = TypeVar("T")


def run_isolated(make: Callable[[], Iterable[T]], crashed: T, seconds: float | None = None) -> Iterator[T]:
    """What `make` yields in a forked process, as it comes; then `crashed` if that process died before its end.

    After `seconds` without anything new the process is ended, with all that it started.
    """
    receive, send = Pipe(duplex=False)
    child = get_context("fork").Process(target=_send_results, args=(make, send))
    child.start()
    send.close()
    while (found := _next(receive, seconds)) is not None:
        if not found:
            break
        yield from found
    else:
        yield crashed
    with suppress(ProcessLookupError):
        os.killpg(child.pid or 0, signal.SIGKILL)
    child.join()


def _send_results(make: Callable[[], Iterable[T]], send: Connection[Any, Any]) -> None:
    """The child's whole life: a tuple of one for each thing made, and an empty one at the end."""
    os.setpgid(0, 0)
    for each in make():
        send.send((each,))
    send.send(())


def _next(receive: Connection[Any, Any], seconds: float | None) -> Any:
    """The next tuple, or None where there will be none."""
    with suppress(EOFError):
        return receive.recv() if receive.poll(seconds) else None
    return None
