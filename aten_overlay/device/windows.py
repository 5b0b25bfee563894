"""Which part of a large grid runs, of kernels that `compile_shader` compiled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

WINDOW = 1 << 14  # threads
_window: ContextVar[int] = ContextVar("window", default=0)


@contextmanager
def running_ends(threads: int = WINDOW) -> Iterator[None]:
    """Larger grids run at their start, at their end and around thread 2^31 and 2^32 alone."""
    token = _window.set(threads)
    try:
        yield
    finally:
        _window.reset(token)


def find_window() -> int:
    """How many threads run at each of these places; 0 for all of the grid."""
    return _window.get()
