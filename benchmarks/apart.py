"""Runs a function in a forked process: host code registers itself once only in each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from multiprocessing import get_context
from multiprocessing.connection import Pipe
from typing import TypeVar

T = TypeVar("T")


def apart(make: Callable[[], Iterable[T]], died: T) -> list[T]:
    """What `make` yields in a process of its own; `died` where that process did not live to tell."""
    receive, send = Pipe(duplex=False)
    child = get_context("fork").Process(target=lambda: send.send(list(make())))
    child.start()
    send.close()
    try:
        found: list[T] = receive.recv()
    except EOFError:
        found = [died]
    child.join()
    return found
