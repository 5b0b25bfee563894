"""Which line of the Metal source an instruction comes from, by LLVM's debug information."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from aten_overlay.metal.headers import INCLUDE

_NODE = re.compile(
    r"^!(\d+) = (?:distinct )?!DI(?:Location|Subprogram|LexicalBlock|LexicalBlockFile|File)\((.*)\)$", re.M
)
_FIELD = re.compile(r"(line|scope|inlinedAt|file): !?(\d+)")
_FILE = re.compile(r'filename: "([^"]*)", directory: "([^"]*)"')
_DEBUG = re.compile(r",? !dbg !\d+|^!llvm\.dbg\.cu = .*\n", re.M)

_LOCATION = re.compile(r"^!(\d+) = (!DILocation\(line: \d+)(?:, column: \d+)?(.*)$", re.M)
_COLUMN = 65535  # the last that there is: of a marked location. What else marks a store does not outlive optimization
_FIRST = 1 << 24  # the number of a marked location, without that of the one it is made of

Place = tuple[str, int]


@dataclass
class Places:
    """The debug information of a module."""

    nodes: dict[str, str]
    _fields: dict[str, dict[str, str]] = field(default_factory=dict)
    _own: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, module: str) -> Places:
        return cls(dict(_NODE.findall(module)))

    def find(self, location: str) -> Place | None:
        """File and line of location number `location`: of the call, where it lies in the standard library."""
        while location:
            found = self._read(location)
            line = int(found.get("line", "0"))
            file = self._file(self._read(found.get("scope", "")).get("file", ""))
            if file and line:
                return file, line
            location = found.get("inlinedAt", "")
        return None

    def is_marked(self, location: str) -> bool:
        return f"column: {_COLUMN}," in self.nodes.get(location, "")

    def _read(self, number: str) -> dict[str, str]:
        if number not in self._fields:
            self._fields[number] = dict(_FIELD.findall(self.nodes.get(number, "")))
        return self._fields[number]

    def _file(self, number: str) -> str:
        """The name of a file that is not of the standard library, else nothing."""
        if number not in self._own:
            found = _FILE.search(self.nodes.get(number, ""))
            ours = found is None or Path(found[2], found[1]).resolve().is_relative_to(INCLUDE)
            self._own[number] = "" if ours or found is None else found[1]
        return self._own[number]


def marked_location(location: str) -> str:
    """The number of a location that is marked, of the same line; `add_marked_locations` writes it."""
    return str(_FIRST + int(location))


def add_marked_locations(module: str) -> str:
    """`module` with the marked locations that it names."""
    named = {int(number) - _FIRST for number in re.findall(r"!dbg !(\d{8,})", module)}
    found = ((int(m[1]), m) for m in _LOCATION.finditer(module))
    added = [f"!{_FIRST + n} = {m[2]}, column: {_COLUMN}{m[3]}" for n, m in found if n in named]
    return "\n".join([module, *added, ""]) if added else module


def without_places(module: str) -> str:
    """The module without its debug information."""
    return _DEBUG.sub("", module)
