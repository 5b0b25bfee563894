"""Who wrote an element: the thread, and the line of its source.

A traced library tells the runtime of each line before the line stores or calls anything, and its bounds checks tell of
each store. The last store to the watched bytes is kept.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from aten_overlay.metal import compiler

FLAGS = ("-gline-tables-only",)
_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)$", re.M)
_PLACED = re.compile(r"^(  +(?:%\S+ = )?(?:tail )?(store|call|atomicrmw|cmpxchg) .*), !dbg !(\d+)(.*)$", re.M)
_DEBUG = re.compile(r",? !dbg !\d+|^!llvm\.dbg\.cu = .*\n", re.M)


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


def mark_lines(module: str) -> str:
    """LLVM IR with a call that tells of the line before each store and call, instead of debug information.

    Lines of the standard library do not count: the line that called it stays.
    """
    nodes = {number: (kind, text) for number, kind, text in _NODE.findall(module)}
    files: dict[str, int] = {}

    def mark(found: re.Match[str]) -> str:
        place = _find_place(nodes, found[3])
        if place is None or "@llvm." in found[1]:
            return found[0]
        number = files.setdefault(place[0], len(files))
        return f"  call void @pm_trace_line(ptr @pm.trace.{number}, i32 {place[1]})\n{found[0]}"

    marked = _DEBUG.sub("", _PLACED.sub(mark, module))
    names = [f"@pm.trace.{number} = private constant {_string(file)}" for file, number in files.items()]
    return "\n".join([marked, *names, "declare void @pm_trace_line(ptr, i32)", ""])


def _find_place(nodes: dict[str, tuple[str, str]], location: str) -> tuple[str, int] | None:
    """File and line of a location that is not in the standard library."""
    text = nodes.get(location, ("", ""))[1]
    line, scope = re.search(r"line: (\d+)", text), re.search(r"scope: !(\d+)", text)
    file = re.search(r"file: !(\d+)", nodes.get(scope[1], ("", ""))[1]) if scope else None
    name = re.search(r'filename: "([^"]*)", directory: "([^"]*)"', nodes.get(file[1], ("", ""))[1]) if file else None
    if not line or not name or Path(name[2], name[1]).resolve().is_relative_to(compiler.INCLUDE):
        return None
    return name[1], int(line[1])


def _string(text: str) -> str:
    data = text.encode() + b"\0"
    escaped = "".join(f"\\{byte:02X}" for byte in data)
    return f'[{len(data)} x i8] c"{escaped}"'
