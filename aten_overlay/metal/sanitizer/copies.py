"""Copies of structures and vectors, made copies of their values: what lies between those is never read.

A copy of a union, or of bit-fields, reads none of its bytes: which of them have a value, only a member tells. Nor does
a store to a bit-field read the others that it leaves as they are.

Works on LLVM's intermediate representation as clang writes it, of code that aliases by type (`ALIASING`): a copy then
says what it copies, but for structures in arrays, unions, and classes with bases (LLVM Language Reference,
"tbaa.struct"). Those are known by the type of the variable or member that is copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from aten_overlay.metal.passes.ir import GLOBAL, LOCAL, NotUnderstood, functions
from aten_overlay.metal.sanitizer.layouts import OPEN, PADDING, Layouts, Scalar
from aten_overlay.metal.sanitizer.objects import Object, Objects
from aten_overlay.metal.sanitizer.places import add_marked_locations, marked_location

ALIASING = "-fstrict-aliasing"  # for what `copy_values` reads; it takes the marks out again
UNREAD = "!pm.unread"  # marks a load of what is copied whether or not it has a value; its store has a marked location
_COPY = re.compile(
    rf"^  call void @llvm\.memcpy\.p0\.p0\.i64\(ptr align (\d+) ({LOCAL.pattern}|{GLOBAL.pattern}), "
    rf"ptr align (\d+) ({LOCAL.pattern}|{GLOBAL.pattern}), i64 (\d+), i1 false\)(?!.*!annotation)(.*)$",
    re.M,
)
_MARK = re.compile(r", !tbaa(?:\.struct)? !\d+")
_STRUCT = re.compile(r", !tbaa\.struct !(\d+)")
_NODE = re.compile(r"^!(\d+) = !\{(i64 \d+, i64 \d+, !\d+(?:, i64 \d+, i64 \d+, !\d+)*)\}$", re.M)
_FIELD = re.compile(r"i64 (\d+), i64 (\d+), !\d+")
_LOCATION = re.compile(r"!dbg !(\d+)")
_MOST_PARTS = 256  # of one copy
_WORD, _LONG = 8, 64
_LOADED = re.compile(rf"^  ({LOCAL.pattern}) = load .*, {UNREAD} ", re.M)
_USE = re.compile(rf"^  (?:{LOCAL.pattern} = )?(?:tail )?(\w+) (.*)$", re.M)
_MOVES = frozenset(["store", "phi", "select", "freeze", "bitcast", "trunc", "zext", "shl", "lshr", "and", "or"])

Spans = list[tuple[int, int]]


def copy_values(module: str) -> str:
    """`module` with each copy of something with padding made one or more copies without it, and without the marks."""
    layouts = Layouts.read(module)
    layouts = Layouts(layouts.types, layouts.addressed, find_bit_fields(module, layouts))
    nodes = {m[1]: [(int(a), int(b)) for a, b in _FIELD.findall(m[2])] for m in _NODE.finditer(module)}
    numbers = count()
    pieces, at = [], 0
    for start, end, _ in functions(module):
        text = module[start:end]
        if _COPY.search(text) or ACCESS in text:
            pieces += [module[at:start], _Copies(text, layouts, nodes, numbers).write()]
            at = end
    return add_marked_locations(_MARK.sub("", "".join([*pieces, module[at:]])))


def find_copied(function: str) -> frozenset[str]:
    """What marked loads of optimized code yield that is moved, whole or in parts, and not used otherwise."""
    loaded = frozenset(_LOADED.findall(function))
    if not loaded:
        return loaded
    uses = ((m[1], m[2]) for m in _USE.finditer(function) if m[1] not in _MOVES)
    return loaded - {name for _, operands in uses for name in LOCAL.findall(operands)}


@dataclass
class _Copies:
    """The copies of a function; `nodes` are what they say of themselves, by number."""

    text: str
    layouts: Layouts
    nodes: dict[str, Spans]
    numbers: Iterator[int]

    def write(self) -> str:
        self.objects = Objects.read(self.text, self.layouts)
        return _COPY.sub(self._write_copy, mark_kept(self.text, f"{UNREAD} !{{}}"))

    def _write_copy(self, copy: re.Match[str]) -> str:
        size, rest = int(copy[5]), copy[6]
        whole = [(0, size)]
        marked = _STRUCT.search(rest)
        spans = _merge(self.nodes.get(marked[1], whole)) if marked else whole
        known = next((found for name in (copy[2], copy[4]) if (found := self._find_values(name, size))), whole)
        spans, padding = _common(spans, known), self._find_padding(copy, size)
        parts = [part for span in _without(spans, padding) for part in _split(*span)]
        between = [part for span in _common(spans, padding) for part in _split(*span)]
        if (spans == whole and not between) or len(parts) + len(between) > _MOST_PARTS:
            return copy[0]
        values = (line for part in parts for line in self._write_part(copy, *part, is_value=True))
        others = (line for part in between for line in self._write_part(copy, *part, is_value=False))
        return "\n".join([*values, *others])

    def _write_part(self, copy: re.Match[str], offset: int, size: int, is_value: bool) -> Iterator[str]:
        name = f"%pm.copy.{next(self.numbers)}"
        to, source = (f"{name}.{way}" for way in ("to", "from"))
        aligned = [min(int(align), offset & -offset or int(align)) for align in (copy[1], copy[3])]
        yield f"  {to} = getelementptr i8, ptr {copy[2]}, i64 {offset}"
        yield f"  {source} = getelementptr i8, ptr {copy[4]}, i64 {offset}"
        if not is_value:
            yield f"  {name} = load i{8 * size}, ptr {source}, align {aligned[1]}, {UNREAD} !{{}}"
            location = f", !dbg !{marked_location(found[1])}" if (found := _LOCATION.search(copy[6])) else ""
            yield f"  store i{8 * size} {name}, ptr {to}, align {aligned[0]}{location}"
            return
        operands = f"ptr align {aligned[0]} {to}, ptr align {aligned[1]} {source}, i64 {size}, i1 false"
        yield f"  call void @llvm.memcpy.p0.p0.i64({operands}){_STRUCT.sub('', copy[6])}"

    def _find_padding(self, copy: re.Match[str], size: int) -> Spans:
        """Where there may be padding, or bytes without a value, of which only that they are copied is known."""
        scalars = next((found for name in (copy[2], copy[4]) if (found := self._find_scalars(name, size))), [])
        return _merge((each.offset, each.size) for each in scalars if each.kind in (PADDING, OPEN))

    def _find_values(self, name: str, size: int) -> Spans:
        """Where `size` bytes from an address on hold values; [] where that is not known."""
        values = _merge((each.offset, each.size) for each in self._find_scalars(name, size))
        return _common([(0, size)], values)

    def _find_scalars(self, name: str, size: int) -> list[Scalar]:
        """What lies in `size` bytes from an address on; [] where that is not known."""
        try:
            found = self.objects.find(name)
            layout = self.layouts.find(found.kind) if found else None
        except NotUnderstood:
            return []
        if found is None or layout is None or layout.size - found.offset < size:
            return []
        return [each.moved(-found.offset) for each in layout.scalars]


def _merge(fields: Iterable[tuple[int, int]]) -> Spans:
    """Offsets and sizes, in order, those that touch made one."""
    found: Spans = []
    for offset, size in sorted(fields):
        if found and offset <= found[-1][0] + found[-1][1]:
            start, before = found[-1]
            found[-1] = (start, max(before, offset + size - start))
        elif size:
            found.append((offset, size))
    return found


def _common(one: Spans, other: Spans) -> Spans:
    overlaps = ((max(a, c), min(a + b, c + d)) for a, b in one for c, d in other)
    return _merge((low, high - low) for low, high in overlaps if low < high)


def _without(one: Spans, other: Spans) -> Spans:
    """What of `one` is not in `other`, whose parts lie apart."""
    left = one
    for start, size in other:
        left = [
            part
            for a, b in left
            for part in ((a, min(b, start - a)), (max(a, start + size), min(b, a + b - start - size)))
        ]
        left = [(a, b) for a, b in left if b > 0]
    return left


def _split(offset: int, size: int) -> Iterator[tuple[int, int]]:
    """A span in pieces that an instruction can load, but for long ones."""
    if size > _LONG:
        yield offset, size
        return
    while size:
        piece = min(_WORD, 1 << size.bit_length() - 1)
        yield offset, piece
        offset, size = offset + piece, size - piece


ACCESS = "%bf.load"
# Bit-fields, by the names that clang gives to what it makes of an access to one.
_LOAD = re.compile(rf"^  (%bf\.load\d*) = load (?:volatile )?i\d+, ptr ({LOCAL.pattern}), .*$", re.M)
_CLEARED = re.compile(r"^  (%bf\.clear\d*) = and i\d+ (%bf\.load\d*), ", re.M)
_SET = re.compile(r"^  %bf\.set\d* = or i\d+ (%bf\.clear\d*), ", re.M)


def find_bit_fields(module: str, layouts: Layouts) -> frozenset[tuple[str, int]]:
    """Types, and the bytes of them at which words of bit-fields start, of those that the module accesses."""
    texts = (module[start:end] for start, end, _ in functions(module))
    return frozenset(word for text in texts if ACCESS in text for word in _find_words(text, layouts))


def mark_kept(function: str, mark: str) -> str:
    """`function` with the loads marked whose other bit-fields a store leaves as they are."""
    cleared = dict(_CLEARED.findall(function))
    loaded = {cleared[name] for name in _SET.findall(function) if name in cleared}
    return _LOAD.sub(lambda load: f"{load[0]}, {mark}" if load[1] in loaded else load[0], function)


def _find_words(function: str, layouts: Layouts) -> Iterator[tuple[str, int]]:
    objects = Objects.read(function, layouts)
    for _, address in _LOAD.findall(function):
        try:
            member = objects.find(address)
            while member:
                yield member.kind, member.offset
                inner = dict(layouts.members(member.kind)).get(member.offset, "")
                member = Object(inner) if layouts.members(inner) else None
        except NotUnderstood:
            continue
