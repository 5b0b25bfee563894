"""Private variables that are used before they have a value.

What is left of the marks (see marks.py) is followed through the values computed from it, next to each of which a shadow
tells which of its bits are undefined. A call of the runtime comes where one decides a branch, is an address, or is
stored where others see it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from aten_overlay.metal.passes.ir import GLOBAL, LOCAL, NotUnderstood, functions, write_string
from aten_overlay.metal.passes.undefined import UNDEFINED
from aten_overlay.metal.sanitizer.marks import SCALAR
from aten_overlay.metal.sanitizer.places import Place, Places
from aten_overlay.metal.sanitizer.roots import Kind, Roots
from aten_overlay.metal.sanitizer.shadows import Shadows, count_bytes, find_width, part_name, shadow_name

_RESULT = re.compile(rf"^  ({LOCAL.pattern}) = (?:tail )?(\w+) (.*)$")
_USE = re.compile(rf"^  (?:({LOCAL.pattern}) = )?(?:tail )?(store|br|switch|load|atomicrmw|cmpxchg) (.*)$")
_ADDRESS = re.compile(rf", ptr ({LOCAL.pattern})(?=,|$)")
_PLACE = re.compile(rf"\bptr ({LOCAL.pattern})")  # of an atomic access
_FILL = re.compile(
    rf"^  (?:tail )?call void @llvm\.memset\.p0\.i64\(ptr [^%@,]*({LOCAL.pattern}), i8 (\S+), (i64 \S+), .*$"
)
_COPY = re.compile(
    rf"^  (?:tail )?call void @llvm\.mem(?:cpy|move)\.p0\.p0\.i64\(ptr [^%@,]*({LOCAL.pattern}), "
    rf"ptr [^%@,]*({LOCAL.pattern}|{GLOBAL.pattern}), (i64 \S+), .*$"
)
_LOCATION = re.compile(r"!dbg !(\d+)")
_NANS = {"half": "0xH7E00", "bfloat": "0xR7FC0", "float": "0x7FF8000000000000", "double": "0x7FF8000000000000"}
_FUNCTION = re.compile(r"@(?!pm_)(?:llvm\.\w|[a-z]\w*\()")
_OPERATIONS = """
    add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem fneg freeze trunc zext sext
    fptrunc fpext fptoui fptosi uitofp sitofp bitcast icmp fcmp select phi getelementptr"""
_ATOMIC = frozenset(("atomicrmw", "cmpxchg"))
_STEPS = frozenset(("getelementptr", "phi", "select", "alloca"))
_FOLLOWED = frozenset(_OPERATIONS.split())

_DECLARATIONS = (
    "declare void @pm_check_private(i1 zeroext, ptr, i32)",
    "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)",
)


def watch_undefined(module: str) -> str:
    """`module`, optimized, with calls where something depends on a variable without a value; the marks go."""
    places, files = Places.read(module), dict[str, int]()
    pieces, at = [], 0
    for start, end, _ in functions(module):
        text = module[start:end]
        if f"{UNDEFINED}" in text:
            pieces += [module[at:start], _Function(text, places, files).write()]
            at = end
    rest = re.sub(rf"^declare .*{UNDEFINED}.*\n", "", "".join([*pieces, module[at:]]), flags=re.M)
    tables = [f"@pm.private.{number} = private constant {write_string(file)}" for file, number in files.items()]
    declarations = [line for line in _DECLARATIONS if line.split("(")[0] not in rest]
    return "\n".join([rest, *tables, *declarations, ""])


@dataclass
class _Function:
    """A function whose values may be undefined; `bits` are the widths of those that may, by name.

    `arrays` are the private variables that may hold one.
    """

    text: str
    places: Places
    files: dict[str, int]
    bits: dict[str, int] = field(default_factory=dict)
    arrays: set[str] = field(default_factory=set)

    def write(self) -> str:
        self.lines = self.text.split("\n")
        self.roots = Roots.read(self.text, False)
        self.shadows = Shadows(self.bits)
        self.escaping = self._find_escaping()
        while self._grow():
            pass
        place: Place = ("?", 0)
        written = []
        for line in self.lines:
            if found := _LOCATION.search(line):
                place = self.places.find(found[1]) or place
            before, after = self._bits_of(line), self._after(line)
            written += [*before, *self._checks(line, place), self._without_mark(line), *after]
        return "\n".join(written)

    def _find_escaping(self) -> set[str]:
        """Private variables whose address goes where it cannot be followed."""
        found = set()
        for line in self.lines:
            known = _RESULT.match(line)
            if known and (known[2] in _STEPS or (known[2] == "load" and _has_size(known[3]))):
                continue
            if fill := _FILL.match(line):
                line = fill[2]
            elif (copy := _COPY.match(line)) and (self._is_private(copy[1]) or not self._is_private(copy[2])):
                line = ""
            elif line.startswith("  store ") and _has_size(line.removeprefix("  store ")):
                line = line.split(", ptr ")[0]
            elif re.match(r"  (?:tail )?call void @llvm\.lifetime", line):
                line = ""
            for name in LOCAL.findall(line):
                root = self.roots.find(name) if name in self.roots.values else None
                if root and root.kind is Kind.PRIVATE:
                    found.add(root.name)
        return found

    def _is_private(self, address: str) -> bool:
        root = self.roots.find(address)
        return bool(root and root.kind is Kind.PRIVATE)

    def _array(self, address: str) -> str:
        """The private variable that an address is in, if it can be followed; else nothing."""
        root = self.roots.find(address)
        return root.name if root and root.kind is Kind.PRIVATE and root.name not in self.escaping else ""

    def _grow(self) -> bool:
        before = len(self.bits) + len(self.arrays)
        for line in self.lines:
            store = _USE.match(line)
            if store and store[2] == "store" and (to := _ADDRESS.search(store[3])):
                value = store[3][: to.start()].rsplit(" ", 1)[-1]
                if value in self.bits and (array := self._array(to[1])):
                    self.arrays.add(array)
            if (fill := _FILL.match(line)) and fill[2] in self.bits and (array := self._array(fill[1])):
                self.arrays.add(array)
            if (copy := _COPY.match(line)) and self._array(copy[2]) in self.arrays and (array := self._array(copy[1])):
                self.arrays.add(array)
            found = _RESULT.match(line)
            if found and self._may_be_undefined(found[2], found[3]):
                self.bits[found[1]] = find_width(found[2], found[3].split(", !")[0])
        return len(self.bits) + len(self.arrays) > before

    def _may_be_undefined(self, opcode: str, rest: str) -> bool:
        if opcode == "call" and not _FUNCTION.search(rest):
            return UNDEFINED in rest
        if opcode == "load":
            address = _ADDRESS.search(rest)
            return bool(address and self._array(address[1]) in self.arrays) and not rest.startswith("<")
        return (
            (opcode in _FOLLOWED or opcode == "call")
            and ("<" not in rest.split(",")[0] or opcode == "getelementptr")
            and any(o in self.bits for o in LOCAL.findall(rest))
        )

    def _bits_of(self, line: str) -> list[str]:
        """The shadow of the line's result, made before it."""
        found = _RESULT.match(line)
        if not found or found[1] not in self.bits:
            return []
        name, opcode, rest = found[1], found[2], found[3].split(", !")[0]
        shadow, part, width = shadow_name(name), part_name(name), self.bits[name]
        if UNDEFINED in rest:
            return [f"  {shadow} = sext i1 true to i{width}" if width > 1 else f"  {shadow} = or i1 true, false"]
        if opcode == "load":
            address = _ADDRESS.search(rest)
            assert address
            return [*self._place_bit(part, address[1]), f"  {shadow} = load i{width}, ptr {part}.at, align 1"]
        return list(self.shadows.write(name, opcode, rest))

    def _place_bit(self, bit: str, address: str) -> list[str]:
        """Where the shadow of what is at an address of a private variable is kept."""
        array = self._array(address)
        return [
            f"  {bit}.to = ptrtoint ptr {address} to i64",
            f"  {bit}.from = ptrtoint ptr {array} to i64",
            f"  {bit}.by = sub i64 {bit}.to, {bit}.from",
            f"  {bit}.at = getelementptr i8, ptr {shadow_name(array)}, i64 {bit}.by",
        ]

    def _after(self, line: str) -> list[str]:
        """Keeps the bits of private memory beside it."""
        found = _RESULT.match(line)
        if found and found[2] == "alloca" and found[1] in self.arrays:
            kind = found[3].rsplit(", align", 1)[0]
            size = f"ptrtoint (ptr getelementptr ({kind}, ptr null, i32 1) to i64)"
            bits = shadow_name(found[1])
            clear = f"  call void @llvm.memset.p0.i64(ptr {bits}, i8 0, i64 {size}, i1 false)"
            return [f"  {bits} = alloca {kind}, align 16", clear]
        if moved := _FILL.match(line) or _COPY.match(line):
            return self._keep_range(moved) if self._array(moved[1]) in self.arrays else []
        store = _USE.match(line)
        if not store or store[2] != "store" or not (to := _ADDRESS.search(store[3])):
            return []
        if self._array(to[1]) not in self.arrays:
            return []
        value = store[3][: to.start()].rsplit(" ", 1)[-1]
        bit = f"%pm.kept.{len(self.text)}.{next(_numbers)}"
        kept = f"i{self.bits.get(value) or 8 * count_bytes(store[3])}"
        return [*self._place_bit(bit, to[1]), f"  store {kept} {self.shadows.find(value)}, ptr {bit}.at, align 1"]

    def _keep_range(self, moved: re.Match[str]) -> list[str]:
        """Keeps the bits of what a private array is filled with, or copied from."""
        to, value, size = moved.groups()
        bit = f"%pm.kept.{len(self.text)}.{next(_numbers)}"
        lines = self._place_bit(bit, to)
        if moved.re is _COPY and self._array(value) in self.arrays:
            lines += self._place_bit(f"{bit}.of", value)
            return [*lines, f"  call void @llvm.memmove.p0.p0.i64(ptr {bit}.at, ptr {bit}.of.at, {size}, i1 false)"]
        filled = f"  call void @llvm.memset.p0.i64(ptr {bit}.at, i8 {self.shadows.find(value)}, {size}, i1 false)"
        return [*lines, filled]

    def _checks(self, line: str, place: Place) -> list[str]:
        """Before what the program's course or others' memory comes to depend on."""
        found = _USE.match(line)
        if not found:
            return []
        opcode, rest = found[2], found[3].split(", !")[0]
        used = [address[1]] if (address := (_PLACE if opcode in _ATOMIC else _ADDRESS).search(rest)) else []
        if opcode in ("br", "switch"):
            used = LOCAL.findall(rest.split(",")[0])
        elif opcode == "store" and address and self._is_seen(address[1], line):
            used.append(rest[: address.start()].rsplit(" ", 1)[-1])
        named = f"@pm.private.{self.files.setdefault(place[0], len(self.files))}"
        return [text for value in used if value in self.bits for text in self._check(value, named, place[1])]

    def _is_seen(self, address: str, line: str) -> bool:
        """Whether others may see what a line stores. A copy of bytes that may have no value uses none of them."""
        location = _LOCATION.search(line)
        return not (self._is_private(address) or (location and self.places.is_marked(location[1])))

    def _check(self, value: str, file: str, line: int) -> Iterator[str]:
        is_open = f"%pm.open.{next(_numbers)}"
        yield f"  {is_open} = icmp ne i{self.bits[value]} {shadow_name(value)}, 0"
        yield f"  call void @pm_check_private(i1 zeroext {is_open}, ptr {file}, i32 {line})"

    def _without_mark(self, line: str) -> str:
        """The pattern itself is any value."""
        return re.sub(rf"(?:tail )?call ({SCALAR}) {UNDEFINED}\w+\(\)[^,]*(,.*)?$", _plain_value, line)


_numbers = count()


def _plain_value(found: re.Match[str]) -> str:
    kind = found[1]
    value = "0" if kind.startswith("i") else _NANS[kind]
    return f"select i1 true, {kind} {value}, {kind} {value}"


def _has_size(access: str) -> bool:
    try:
        return bool(count_bytes(access))
    except NotUnderstood:
        return False
