"""Who wrote an element: the thread, and the line of its source.

A traced library reports each line to the runtime before the line stores or calls anything (see `passes/lines.py`), and
its bounds checks report each store. The last store to the watched bytes is kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache

from aten_overlay.metal import compiler


@dataclass(frozen=True)
class Write:
    """The last of `count` stores to the watched bytes. `thread` is its position in the grid."""

    thread: tuple[int, int, int]
    file: str
    line: int
    count: int


class _Watch(ctypes.Structure):
    _fields_ = [
        ("low", ctypes.c_uint64),
        ("high", ctypes.c_uint64),
        ("file", ctypes.c_char_p),
        ("line", ctypes.c_uint32),
        ("thread", ctypes.c_uint32 * 3),
        ("count", ctypes.c_uint32),
    ]


class Watcher:
    """Watches memory while it is entered."""

    def __init__(self, watch: _Watch) -> None:
        self._watch = watch

    def move(self, address: int, size: int) -> None:
        """Watches `size` bytes at an address of the host; none if 0."""
        self._watch.low, self._watch.high = address, address + size

    def last_write(self) -> Write | None:
        """The last store; None if there was none."""
        watch = self._watch
        if not watch.count:
            return None
        x, y, z = watch.thread
        return Write((x, y, z), (watch.file or b"").decode(), watch.line, watch.count)


@contextmanager
def watching() -> Iterator[Watcher]:
    """Watches the memory that `move` names until the block ends."""
    watch = _Watch.in_dll(_runtime(), "pm_watch")
    ctypes.memset(ctypes.addressof(watch), 0, ctypes.sizeof(watch))
    watcher = Watcher(watch)
    try:
        yield watcher
    finally:
        watcher.move(0, 0)


@lru_cache(maxsize=1)
def _runtime() -> ctypes.CDLL:
    return ctypes.CDLL(str(compiler.runtime_library()))
