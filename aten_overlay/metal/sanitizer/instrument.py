"""Adds to compiled code, in LLVM's intermediate representation, a call of the runtime before each access to memory.

The call tells the address, and a site: the line of the source, what is accessed and how (`pm_site` in
include/pm/host/internal.h). Works on code that is optimized already, so that a kernel is one function and private
variables are values; what `defer_to` marks keeps the optimizer from accesses that the source does not make.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from aten_overlay.metal.passes.ir import GLOBAL, LOCAL, NotUnderstood, first_type, functions, write_string
from aten_overlay.metal.passes.lockstep import SOURCE
from aten_overlay.metal.sanitizer.copies import find_copied
from aten_overlay.metal.sanitizer.places import Place, Places, without_places
from aten_overlay.metal.sanitizer.roots import Kind, Root, Roots

STORES, ATOMIC, LOADS, IN_VARIABLE = 1, 2, 4, 8
FIRST_THREADGROUP = 1000  # in `pm_site.argument`: threadgroup arguments count from here
_POINTER = rf"({LOCAL.pattern}|{GLOBAL.pattern}|getelementptr [^()]*\([^()]*(?:\([^()]*\)[^()]*)*\))"
_ACCESS = re.compile(rf"^  (?:{LOCAL.pattern} = )?(load|store|atomicrmw|cmpxchg) (.*)$")
_ADDRESS = re.compile(rf"ptr {_POINTER}(?=, |$| (?:syncscope|unordered|monotonic|acquire|release|acq_rel|seq_cst)|\n)")
_RANGE = re.compile(
    rf"^  (?:tail )?call void @llvm\.(?:memcpy|memmove|memset)\.p0[.\w]*\(ptr ([^,]*?){_POINTER}, (.*)$"
)
_SOURCE = re.compile(rf"^ptr ([^,]*?){_POINTER}, i64 (\S+),")
_LENGTH = re.compile(r"^i8 [^,]*, i64 ([^,\s]+),")
_ANNOUNCED = re.compile(rf"call void @pm_threadgroup_variable\(ptr [^%@]*({LOCAL.pattern}), i64 (?:noundef )?(\d+)\)")
_ALIGNED = re.compile(r"\balign (\d+)")
_LOCATION = re.compile(r", !dbg !(\d+)")
_ATTRIBUTES = re.compile(r"^(attributes #\d+ = \{ )", re.M)
_VARIABLE = re.compile(rf"^({GLOBAL.pattern}) = (?!external)[^\n]*?(?:global|constant) ([^\n]*)$", re.M)
_NUMBERED = re.compile(r"E?(_\d+|__\d+_)?")  # what ends a mangled name
_SKIPPED = frozenset(("@pm_open_value", "@__ehdr_start", "@_end"))
_SIMPLE = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}
# Functions that no thread of a kernel runs.
_TABLE = re.compile(r"pm_make_|@pm_library|@__cxx_global_var_init|@_GLOBAL__sub_")


def defer_to_sanitizer(module: str) -> str:
    """Makes optimizations keep to the accesses of the source: none is made earlier than where it says so."""
    return _ATTRIBUTES.sub(r"\1sanitize_thread ", module)


def watch_accesses(module: str) -> str:
    """`module` with the calls, and without the debug information that they are made of."""
    return _Watched.of(module).write(module)


@dataclass
class _Watched:
    """A module whose accesses get calls: its debug information, its variables, and the sites so far."""

    places: Places
    variables: dict[str, str]
    files: dict[str, int] = field(default_factory=dict)
    sites: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, module: str) -> _Watched:
        return cls(Places.read(module), {m[1]: m[2] for m in _VARIABLE.finditer(module)})

    def write(self, module: str) -> str:
        pieces, at = [], 0
        for start, end, name in functions(module):
            if not _TABLE.search(name):
                pieces += [module[at:start], self._function(module[start:end], name)]
                at = end
        text = without_places("".join([*pieces, module[at:]]))
        return "\n".join([text, *self._tables(), *_DECLARATIONS, ""])

    def _function(self, text: str, name: str) -> str:
        roots = Roots.read(text, name.startswith(SOURCE))
        copied = find_copied(text)
        place: Place | None = None
        lines = []
        for line in text.split("\n"):
            if found := _LOCATION.search(line):
                place = self.places.find(found[1]) or place
            if copied and any(line.startswith(f"  {name} = ") for name in copied):
                lines.append(line)
                continue
            lines += [*self._calls(line, roots, place or ("?", 0)), self._name_variable(line, roots)]
        return "\n".join(lines)

    def _calls(self, line: str, roots: Roots, place: Place) -> list[str]:
        if found := _ACCESS.match(line):
            return self._call(*_read_access(found[1], found[2]), roots, place)
        if found := _RANGE.match(line):
            attributes, to, rest = found.groups()
            calls = []
            if source := _SOURCE.match(rest):
                calls += self._call_range(source[2], LOADS, source[1], source[3], roots, place)
            length = source[3] if source else (m[1] if (m := _LENGTH.match(rest)) else "")
            return [*calls, *self._call_range(to, STORES, attributes, length, roots, place)] if length else calls
        return []

    def _call(self, address: str, kind: int, size: str, align: int, roots: Roots, place: Place) -> list[str]:
        root = roots.find(_base(address))
        within = roots.private_type(address) if root and root.kind is Kind.PRIVATE else ""
        if not self._matters(root) and not within:
            return []
        if root and (within or root.kind is Kind.CONSTANT):
            site = self._site(place, kind | IN_VARIABLE, size, align, root, within)
            return [f"  call void @pm_access_in(ptr {address}, ptr {root.name}, ptr {site})"]
        return [f"  call void @pm_access(ptr {address}, ptr {self._site(place, kind, size, align, root)})"]

    def _call_range(
        self, address: str, kind: int, attributes: str, length: str, roots: Roots, place: Place
    ) -> list[str]:
        align = int(found[1]) if (found := _ALIGNED.search(attributes)) else 1
        root = roots.find(_base(address))
        if not self._matters(root) or (root and root.kind is Kind.CONSTANT):
            return []
        site = self._site(place, kind, "0", align, root)
        return [f"  call void @pm_access_range(ptr {address}, i64 {length}, ptr {site})"]

    def _name_variable(self, line: str, roots: Roots) -> str:
        """Gives the announcement of a threadgroup variable the name that its sites have."""
        found = _ANNOUNCED.search(line)
        root = roots.find(found[1]) if found else None
        if found is None or root is None or root.kind is not Kind.VARIABLE:
            return line
        return f"  call void @pm_name_variable(ptr {found[1]}, i64 {found[2]}, ptr {self._name(root)})"

    def _name(self, root: Root) -> str:
        """The name of a variable, which no other has because of what comes after its end."""
        return f"@pm.file.{self._text(f'{_plain_name(root.name)}{chr(0)}{root.name}')}"

    def _matters(self, root: Root | None) -> bool:
        """Whether other threads, or the host, may know of what is accessed."""
        if root is None:
            return True
        if root.kind is Kind.CONSTANT:
            return root.name in self.variables and root.name not in _SKIPPED
        return root.kind not in (Kind.PRIVATE, Kind.INTERNAL)

    def _site(self, place: Place, kind: int, size: str, align: int, root: Root | None, within: str = "") -> str:
        """The name of a site; `within` is the type of the private variable that is accessed, if one is."""
        argument = -1
        if root and root.kind is Kind.ARGUMENT:
            argument = root.index
        elif root and root.kind is Kind.THREADGROUP:
            argument = FIRST_THREADGROUP + root.index
        variable = root.name if root and root.kind in (Kind.VARIABLE, Kind.CONSTANT) else ""
        extent = _size(first_type(self.variables[variable])) if variable in self.variables else "0"
        name = f"ptr {self._name(root)}" if root and variable else "ptr null"
        if root and within:
            name, extent = f"ptr @pm.file.{self._text(_private_name(root.name))}", _size(first_type(within))
        text = (
            f"{{ ptr @pm.file.{self._text(place[0])}, {name}, i32 {place[1]}, i32 {size}, i32 {align}, "
            f"i32 {argument}, i32 {kind}, i32 {extent} }}"
        )
        return f"@pm.site.{self.sites.setdefault(text, len(self.sites))}"

    def _text(self, text: str) -> int:
        return self.files.setdefault(text, len(self.files))

    def _tables(self) -> list[str]:
        files = [f"@pm.file.{number} = private constant {write_string(text)}" for text, number in self.files.items()]
        layout = "{ ptr, ptr, i32, i32, i32, i32, i32, i32 }"
        return [*files, *(f"@pm.site.{n} = private constant {layout} {text}" for text, n in self.sites.items())]


_DECLARATIONS = (
    "declare void @pm_access(ptr, ptr)",
    "declare void @pm_access_in(ptr, ptr, ptr)",
    "declare void @pm_access_range(ptr, i64, ptr)",
    "declare void @pm_name_variable(ptr, i64, ptr)",
)


def _read_access(opcode: str, text: str) -> tuple[str, int, str, int]:
    """Address, kind, size and alignment of an access. Raises NotUnderstood."""
    places = list(_ADDRESS.finditer(text))
    if not places:
        raise NotUnderstood(text)
    align = int(found[1]) if (found := _ALIGNED.search(text, places[-1].end())) else 1
    if opcode in ("atomicrmw", "cmpxchg"):
        address = places[0]
        size = _size(first_type(text[address.end() :].lstrip(", ")))
        return address[1], STORES | LOADS | ATOMIC, size, align
    kind = (LOADS if opcode == "load" else STORES) | (ATOMIC if text.startswith("atomic ") else 0)
    return places[-1][1], kind, _size(first_type(text)), align


def _base(address: str) -> str:
    """The name that an address is written with."""
    if address.startswith(("%", "@")):
        return address
    found = GLOBAL.search(address)
    return found[0] if found else address


def _size(kind: str) -> str:
    """The bytes that an access of a type touches, as a number or as a constant expression."""
    if kind in _SIMPLE:
        return str(_SIMPLE[kind])
    if kind.startswith("i") and kind[1:].isdigit():
        return str((int(kind[1:]) + 7) // 8)
    if vector := re.fullmatch(r"<(\d+) x (\w+)>", kind):
        element = _size(vector[2])
        return str(int(vector[1]) * int(element))
    return f"trunc (i64 ptrtoint (ptr getelementptr ({kind}, ptr null, i32 1) to i64) to i32)"


def _plain_name(symbol: str) -> str:
    """A variable's name without the function it is in: the last of a mangled name, before what numbers it."""
    text = re.sub(r"(\.\d+)*$", "", symbol.strip('@"'))
    for start in range(len(text) - 1, -1, -1):
        found = re.match(r"[1-9]\d*", text[start:])
        if not found or text[start - 1 : start].isdigit():
            continue
        at = start + found.end()
        name, rest = text[at : at + int(found[0])], text[at + int(found[0]) :]
        if len(name) == int(found[0]) and re.fullmatch(r"[A-Za-z_]\w*", name) and _NUMBERED.fullmatch(rest):
            return name
    return text


def _private_name(value: str) -> str:
    """The name of a private variable without what inlining added to that of its value."""
    return re.sub(r"(\.i|\.sroa\.\d+|\.\d+|(?<=\D)\d+(?=\.i|$))*$", "", value.strip('%"')) or value
