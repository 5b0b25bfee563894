"""Copies of structures and vectors, made copies of their values: what lies between those is never read.

Works on LLVM's intermediate representation as clang writes it, of code that aliases by type (`ALIASING`): a copy then
says what it copies, but for structures in arrays, unions, and classes with bases (LLVM Language Reference,
"tbaa.struct"). Those are known by the type of the variable or member that is copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count

from aten_overlay.metal.ir import GLOBAL, LOCAL, NotUnderstood, first_type, functions
from aten_overlay.metal.sanitizer.layouts import PADDING, Layouts, Scalar, split_types

ALIASING = "-fstrict-aliasing"  # for what `copy_values` reads; it takes the marks out again
UNREAD = "!pm.unread"  # marks a load of what is copied and never used
_COPY = re.compile(
    rf"^  call void @llvm\.memcpy\.p0\.p0\.i64\(ptr align (\d+) ({LOCAL.pattern}|{GLOBAL.pattern}), "
    rf"ptr align (\d+) ({LOCAL.pattern}|{GLOBAL.pattern}), i64 (\d+), i1 false\)(?!.*!annotation)(.*)$",
    re.M,
)
_MARK = re.compile(r", !tbaa(?:\.struct)? !\d+")
_STRUCT = re.compile(r", !tbaa\.struct !(\d+)")
_NODE = re.compile(r"^!(\d+) = !\{(i64 \d+, i64 \d+, !\d+(?:, i64 \d+, i64 \d+, !\d+)*)\}$", re.M)
_FIELD = re.compile(r"i64 (\d+), i64 (\d+), !\d+")
_ALLOCATED = re.compile(rf"^  ({LOCAL.pattern}) = alloca (.*), align \d+", re.M)
_STEP = re.compile(rf"^  ({LOCAL.pattern}) = getelementptr (?:inbounds |nuw |nusw )*(.*)$", re.M)
_PASSED = re.compile(rf"(?:sret|byval)\(({LOCAL.pattern}|\{{.*?\}})\)[^,]*? ({LOCAL.pattern})(?=[,)])")
_MOST_PARTS = 256  # of one copy
_WORD, _LONG = 8, 64

Spans = list[tuple[int, int]]


@dataclass(frozen=True)
class _Object:
    """Byte `offset` of something of a type."""

    kind: str
    offset: int = 0


def copy_values(module: str) -> str:
    """`module` with each copy of something with padding made one or more copies without it, and without the marks."""
    layouts = Layouts.read(module)
    nodes = {m[1]: [(int(a), int(b)) for a, b in _FIELD.findall(m[2])] for m in _NODE.finditer(module)}
    numbers = count()
    pieces, at = [], 0
    for start, end, _ in functions(module):
        text = module[start:end]
        if _COPY.search(text):
            pieces += [module[at:start], _Copies(text, layouts, nodes, numbers).write()]
            at = end
    return _MARK.sub("", "".join([*pieces, module[at:]]))


@dataclass
class _Copies:
    """The copies of a function; `nodes` are what they say of themselves, by number."""

    text: str
    layouts: Layouts
    nodes: dict[str, Spans]
    numbers: Iterator[int]

    def write(self) -> str:
        head = self.text[: self.text.index("\n")]
        self.objects = {name: _Object(kind) for kind, name in _PASSED.findall(head)}
        self.objects |= {name: _Object(kind) for name, kind in _ALLOCATED.findall(self.text)}
        self.steps = dict(_STEP.findall(self.text))
        return _COPY.sub(self._write_copy, self.text)

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
            yield f"  store i{8 * size} {name}, ptr {to}, align {aligned[0]}"
            return
        operands = f"ptr align {aligned[0]} {to}, ptr align {aligned[1]} {source}, i64 {size}, i1 false"
        yield f"  call void @llvm.memcpy.p0.p0.i64({operands}){_STRUCT.sub('', copy[6])}"

    def _find_padding(self, copy: re.Match[str], size: int) -> Spans:
        """Where there may be padding, of which only that it is copied is known."""
        scalars = next((found for name in (copy[2], copy[4]) if (found := self._find_scalars(name, size))), [])
        return _merge((each.offset, each.size) for each in scalars if each.kind == PADDING)

    def _find_values(self, name: str, size: int) -> Spans:
        """Where `size` bytes from an address on hold values; [] where that is not known."""
        values = _merge((each.offset, each.size) for each in self._find_scalars(name, size))
        return _common([(0, size)], values)

    def _find_scalars(self, name: str, size: int) -> list[Scalar]:
        """What lies in `size` bytes from an address on; [] where that is not known."""
        try:
            found = self._find_object(name)
            layout = self.layouts.find(found.kind) if found else None
        except NotUnderstood:
            return []
        if found is None or layout is None or layout.size - found.offset < size:
            return []
        return [each.moved(-found.offset) for each in layout.scalars]

    def _find_object(self, name: str) -> _Object | None:
        """What an address is that of. Raises NotUnderstood."""
        if name not in self.steps:
            return self.objects.get(name)
        kind = first_type(self.steps[name])
        indices = self.steps[name][len(kind) :].split(", !")[0].split(", ")[3:]
        found = _Object(kind)
        for index in indices:
            members = self.layouts.members(kind)
            if members:
                at, kind = members[int(index.split(" ")[1])]
                found = _Object(found.kind, at) if index is indices[-1] else _Object(kind)
            else:
                kind = _element(self.layouts.types.get(kind, kind))
                found = _Object(kind)
        return found


def _element(kind: str) -> str:
    """Raises NotUnderstood for a type without elements."""
    found = re.match(r"^\[\d+ x (.*)\]$", kind)
    if not found:
        raise NotUnderstood(kind)
    [element] = split_types(found[1])
    return element


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
