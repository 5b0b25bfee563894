"""Marks private variables that have no value yet, for `private` to follow, before anything is optimized.

Clang gives each such variable a pattern of its own (`-ftrivial-auto-var-init`). The pattern becomes the results of
calls that nothing can be known of, one for each value of the variable and none for its padding; the optimizer removes
all that is overwritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from aten_overlay.metal.passes.ir import LOCAL, NotUnderstood
from aten_overlay.metal.passes.undefined import UNDEFINED, write_mark
from aten_overlay.metal.sanitizer.layouts import PADDING, Layouts, Scalar

FOR_PRIVATE = "-ftrivial-auto-var-init=pattern"
SCALAR = r"i\d+|half|bfloat|float|double"
MOST_BYTES = 2048  # of a variable that is followed
_NODE = re.compile(r'^!(\d+) = !\{!"auto-init"\}$', re.M)
_STORE = re.compile(rf"^  store ({SCALAR}|<(\d+) x i8>) .*, ptr ({LOCAL.pattern}), align (\d+)(.*)$")
_FILL = re.compile(
    rf"^  call void @llvm\.memset\.p0\.i64\(ptr align (\d+) ({LOCAL.pattern}), i8 -(?:86|1), i64 (\d+), .*?\)(.*)$"
)
_COPY = re.compile(
    rf"^  call void @llvm\.memcpy\.p0\.p0\.i64\(ptr align (\d+) ({LOCAL.pattern}), ptr [^,]*, i64 (\d+), .*?\)(.*)$"
)
_ALLOCATED = re.compile(rf"^  ({LOCAL.pattern}) = alloca (.*), align \d+$")
_LOCATION = re.compile(r"!dbg !(\d+)")


def mark_undefined(module: str) -> str:
    """`module` as clang wrote it, with a call in place of each pattern."""
    node = _NODE.search(module)
    return _Marks(f"!annotation !{node[1]}", Layouts.read(module)).write(module) if node else module


@dataclass
class _Marks:
    """The patterns of a module: the words that mark them, and the types of the calls and variables so far."""

    mark: str
    layouts: Layouts
    kinds: set[str] = field(default_factory=lambda: {"i32"})
    types: dict[str, str] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=count)

    def write(self, module: str) -> str:
        lines: list[str] = []
        for line in module.split("\n"):
            if variable := _ALLOCATED.match(line):
                self.types[variable[1]] = variable[2]
            lines += (self._pattern(line) if self.mark in line else None) or [line]
        return "\n".join([*lines, *map(write_mark, sorted(self.kinds)), ""])

    def _pattern(self, line: str) -> list[str] | None:
        """What stands for a pattern; None for one that is not followed."""
        rest = f", {found[0]}" if (found := _LOCATION.search(line)) else ""
        if store := _STORE.match(line):
            if store[2] is None:
                return list(self._write(Scalar(0, 0, store[1]), store[3], store[4], rest))
            return self._write_values(store[3], int(store[2]), store[4], rest)
        if (fill := _FILL.match(line) or _COPY.match(line)) and int(fill[3]) <= MOST_BYTES:
            return self._write_values(fill[2], int(fill[3]), fill[1], rest)
        return None

    def _write_values(self, address: str, size: int, align: str, rest: str) -> list[str] | None:
        values = self._find_values(address, size)
        return [line for value in values for line in self._write(value, address, align, rest)] if values else None

    def _find_values(self, address: str, size: int) -> list[Scalar]:
        """The values in a variable; words where its type is not known."""
        try:
            found = self.layouts.find(self.types.get(address, ""))
        except NotUnderstood:
            found = None
        if found and found.size == size:
            return [
                Scalar(each.offset, each.size, f"i{8 * each.size}") for each in found.scalars if each.kind != PADDING
            ]
        return [] if size % 4 else [Scalar(offset, 4, "i32") for offset in range(0, size, 4)]

    def _write(self, value: Scalar, address: str, align: str, rest: str) -> Iterator[str]:
        name = f"%pm.undefined.{next(self._numbers)}"
        self.kinds.add(value.kind)
        to, aligned = address, int(align)
        if value.offset:
            to, aligned = f"{name}.at", min(aligned, value.offset & -value.offset)
            yield f"  {to} = getelementptr i8, ptr {address}, i64 {value.offset}"
        yield f"  {name} = call {value.kind} {UNDEFINED}{value.kind}(){rest}"
        yield f"  store {value.kind} {name}, ptr {to}, align {aligned}"
