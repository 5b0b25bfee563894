"""What the addresses of a function point into: an argument of its kernel, a variable, or nothing that can be told."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from aten_overlay.metal.passes.ir import GLOBAL, LOCAL, first_type

_NAME = rf"(?:{LOCAL.pattern}|{GLOBAL.pattern})"
_RESULT = re.compile(rf"^  ({LOCAL.pattern}) = (?:tail |musttail |notail )?(.*)$", re.M)
_DERIVED = re.compile(rf"^(?:getelementptr .*?, ptr|freeze ptr) ({_NAME})(?:,|$)")
_LOADED = re.compile(rf"^load ptr, ptr ({_NAME})")
_STEP = re.compile(rf"^getelementptr (?:inbounds |nuw |nusw )*(i8|ptr), ptr ({LOCAL.pattern}), i64 (\d+)")
_PHI = re.compile(rf"\[ ({_NAME}|null|undef|poison), ")
_SELECT = re.compile(rf", ptr ({_NAME}|null|undef|poison)")
_INDEXED = re.compile(rf"^getelementptr .*?, ptr {_NAME}(?:,|$)(.*)")
_ALLOCATED = re.compile(r"^alloca (.*), align \d+$")
_THREAD_LOCAL = re.compile(rf"^call .*@llvm\.threadlocal\.address\.p0\(ptr [^@]*({GLOBAL.pattern})\)")
_TABLES = {"%buffers": "argument", "%threadgroup": "threadgroup"}


class Kind(Enum):
    """What an address points into. INTERNAL is what the overlay adds, CONSTANT a variable of the program."""

    ARGUMENT = "argument"
    THREADGROUP = "threadgroup"
    VARIABLE = "variable"
    CONSTANT = "constant"
    PRIVATE = "private"
    INTERNAL = "internal"


@dataclass(frozen=True)
class Root:
    """`index` is that of an argument's binding, `name` a variable's in the module."""

    kind: Kind
    index: int = 0
    name: str = ""


@dataclass
class Roots:
    """The values of one function by their names; `is_kernel` if it has a kernel's tables of bindings."""

    values: dict[str, str]
    is_kernel: bool
    _known: dict[str, Root | None] = field(default_factory=dict)

    @classmethod
    def read(cls, function: str, is_kernel: bool) -> Roots:
        return cls(dict(_RESULT.findall(function)), is_kernel)

    def find(self, name: str) -> Root | None:
        """What `name` points into; None where it cannot be told."""
        if name not in self._known:
            found = self._trace(name, set())
            self._known[name] = found if isinstance(found, Root) else None
        return self._known[name]

    def private_type(self, address: str) -> str:
        """The type of the private variable that an address was computed in when the kernel runs; "" for any other."""
        root = self.find(address)
        if not root or root.kind is not Kind.PRIVATE or root.name.startswith("%pm."):
            return ""
        found = _ALLOCATED.match(self.values[root.name].split(", !")[0])
        if not found or first_type(found[1]) != found[1]:  # an array whose length is known only when it runs
            return ""
        return found[1] if self._is_computed(address, set()) else ""

    def _is_computed(self, address: str, seen: set[str]) -> bool:
        text = self.values.get(address, "")
        if text.startswith(("phi ", "select ")):
            return True
        if address in seen or not (found := _INDEXED.match(text)):
            return False
        base = _DERIVED.match(text)
        return bool(LOCAL.search(found[1])) or bool(base and self._is_computed(base[1], {*seen, address}))

    def _trace(self, name: str, seen: set[str]) -> Root | bool | None:
        """As `find`, and True for a value that depends on itself alone."""
        if name.startswith("@"):
            return Root(Kind.CONSTANT, name=name)
        if name in ("null", "undef", "poison") or name in seen:
            return True
        seen.add(name)
        text = self.values.get(name)
        if text is None:
            return Root(Kind.INTERNAL) if self.is_kernel else None
        if derived := _DERIVED.match(text):
            return self._trace(derived[1], seen)
        if text.startswith("phi ptr"):
            return self._merge(_PHI.findall(text), seen)
        if text.startswith("select "):
            return self._merge(_SELECT.findall(text), seen)
        return self._origin(name, text)

    def _merge(self, names: list[str], seen: set[str]) -> Root | bool | None:
        found = {each for name in names if (each := self._trace(name, seen)) is not True}
        return next(iter(found)) if len(found) == 1 else None

    def _origin(self, name: str, text: str) -> Root | None:
        if text.startswith("alloca "):
            return Root(Kind.PRIVATE, name=name)
        if variable := _THREAD_LOCAL.match(text):
            return Root(Kind.VARIABLE, name=variable[1])
        if "@pm_simd_begin(" in text:
            return Root(Kind.INTERNAL)
        loaded = _LOADED.match(text)
        if not loaded or not self.is_kernel:
            return None
        table, offset = loaded[1], 0
        if step := _STEP.match(self.values.get(table, "")):
            table, offset = step[2], int(step[3]) // (8 if step[1] == "i8" else 1)
        if table in _TABLES:
            return Root(Kind(_TABLES[table]), offset)
        return Root(Kind.INTERNAL) if table == "%where" else None
