"""Reports lines of the source to the runtime, for who asks which line wrote an element (see `tracing.py`)."""

from __future__ import annotations

import re
from pathlib import Path

from aten_overlay.metal.headers import INCLUDE
from aten_overlay.metal.passes.ir import write_string

FLAGS = ("-gline-tables-only",)
_NODE = re.compile(r"^!(\d+) = (?:distinct )?!(DI\w+)\((.*)\)$", re.M)
_PLACED = re.compile(r"^(  +(?:%\S+ = )?(?:tail )?(store|call|atomicrmw|cmpxchg) .*), !dbg !(\d+)(.*)$", re.M)
_DEBUG = re.compile(r",? !dbg !\d+|^!llvm\.dbg\.cu = .*\n", re.M)


def mark_lines(module: str) -> str:
    """LLVM IR with a call that tells of the line before each store and call, instead of debug information.

    Lines of the standard library do not count: the line that called it stays.
    """
    nodes = {number: (kind, text) for number, kind, text in _NODE.findall(module)}
    files: dict[str, int] = {}

    def mark(access: re.Match[str]) -> str:
        place = _find_place(nodes, access[3])
        if place is None or "@llvm." in access[1]:
            return access[0]
        number = files.setdefault(place[0], len(files))
        return f"  call void @pm_trace_line(ptr @pm.trace.{number}, i32 {place[1]})\n{access[0]}"

    marked = _DEBUG.sub("", _PLACED.sub(mark, module))
    names = [f"@pm.trace.{number} = private constant {write_string(file)}" for file, number in files.items()]
    return "\n".join([marked, *names, "declare void @pm_trace_line(ptr, i32)", ""])


def _find_place(nodes: dict[str, tuple[str, str]], location: str) -> tuple[str, int] | None:
    """File and line of a location that is not in the standard library."""
    text = nodes.get(location, ("", ""))[1]
    line, scope = re.search(r"line: (\d+)", text), re.search(r"scope: !(\d+)", text)
    file = re.search(r"file: !(\d+)", nodes.get(scope[1], ("", ""))[1]) if scope else None
    name = re.search(r'filename: "([^"]*)", directory: "([^"]*)"', nodes.get(file[1], ("", ""))[1]) if file else None
    if not line or not name or Path(name[2], name[1]).resolve().is_relative_to(INCLUDE):
        return None
    return name[1], int(line[1])
