"""Where the values of a type lie, in LLVM's intermediate representation, and between which of them there is padding.

Source: LLVM Language Reference, "Type System"; sizes are those of a 64-bit machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from aten_overlay.metal.passes.ir import LOCAL, NotUnderstood, first_type

_DEFINED = re.compile(rf"^({LOCAL.pattern}) = type (.*)$", re.M)
SIZES = {"half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8}
_REPEATED = re.compile(r"^[\[<](\d+) x (.*)[\]>]$")
_UNION = re.compile(r'^%"?union\.')
_FILLING = re.compile(
    r"^\[(?:\d|1[0-5]) x i8\]$"
)  # what clang writes for padding, where the alignment does not make it
_ADDRESSED = re.compile(rf"getelementptr (?:inbounds |nuw |nusw )*({LOCAL.pattern}), ptr \S+, i32 0, i32 (\d+)")
PADDING = "padding"  # the kind of what may be padding, or bytes that nothing names
OPEN = "open"  # the kind of bytes that may have no value where others beside them have: of unions, of bit-fields
_ALIGNING = re.compile(r"^\[0 x <\d+ x i8>\]$")  # the first member of a vector (include/pm/vector.h)


@dataclass(frozen=True)
class Scalar:
    """A value at a byte of a type, as LLVM names its kind."""

    offset: int
    size: int
    kind: str

    def moved(self, by: int) -> Scalar:
        return Scalar(self.offset + by, self.size, self.kind)


@dataclass(frozen=True)
class Layout:
    """`size` and `alignment` in bytes; `scalars` in the order of their bytes."""

    size: int
    alignment: int
    scalars: tuple[Scalar, ...]


@dataclass
class Layouts:
    """The types of a module by name, and the layouts of those asked for.

    `addressed` are the members that it names, `bit_fields` the bytes where those of a type are.
    """

    types: dict[str, str]
    addressed: frozenset[tuple[str, str]] = frozenset()
    bit_fields: frozenset[tuple[str, int]] = frozenset()
    _known: dict[str, Layout] = field(default_factory=dict)

    @classmethod
    def read(cls, module: str) -> Layouts:
        return cls(dict(_DEFINED.findall(module)), frozenset(_ADDRESSED.findall(module)))

    def find(self, kind: str) -> Layout:
        """Raises NotUnderstood for a type without a size."""
        if kind not in self._known:
            self._known[kind] = self._make(kind)
        return self._known[kind]

    def members(self, kind: str) -> list[tuple[int, str]]:
        """The byte and type of each member of a structure; [] for any other type. Raises NotUnderstood."""
        body = self.types.get(kind, kind)
        packed, inner = body.startswith("<{"), body.removeprefix("<").removesuffix(">")
        if not inner.startswith("{"):
            return []
        found, at = [], 0
        for member in split_types(inner[1:-1]):
            layout = self.find(member)
            at = at if packed else _round_up(at, layout.alignment)
            found.append((at, member))
            at += layout.size
        return found

    def _make(self, kind: str) -> Layout:
        body = self.types.get(kind, kind)
        if body.startswith(("{", "<{")):
            return self._structure(kind, body)
        if repeated := _REPEATED.match(body):
            one, count = self.find(repeated[2]), int(repeated[1])
            scalars = tuple(each.moved(k * one.size) for k in range(count) for each in one.scalars)
            size = count * one.size
            return Layout(size, size or 1, scalars) if body[0] == "<" else Layout(size, one.alignment, scalars)
        size = SIZES.get(body) or (int(body[1:]) + 7) // 8 if body in SIZES or re.fullmatch(r"i\d+", body) else 0
        if not size:
            raise NotUnderstood(kind)
        return Layout(size, size, (Scalar(0, size, body),))

    def _structure(self, kind: str, body: str) -> Layout:
        members = self.members(kind)
        packed = body.startswith("<{")
        alignment = 1 if packed else max((self.find(each).alignment for _, each in members), default=1)
        end = max((at + self.find(each).size for at, each in members), default=0)
        if is_vector := bool(members and _ALIGNING.match(members[0][1])):
            members = members[:2]  # what follows fills up to the alignment
        scalars = tuple(
            Scalar(at + s.offset, s.size, PADDING if self._may_fill(kind, number, each) else s.kind)
            for number, (at, each) in enumerate(members)
            for s in self.find(each).scalars
        )
        if is_vector:  # all of its names are those of all of its components
            scalars = tuple(Scalar(s.offset, s.size, f"i{8 * s.size}") for s in scalars)
        elif _UNION.match(kind):
            scalars = tuple(Scalar(s.offset, s.size, OPEN) for s in (*scalars, *_between(scalars, end)))
        else:
            scalars = tuple(
                Scalar(s.offset, s.size, OPEN) if (kind, s.offset) in self.bit_fields else s for s in scalars
            )
        return Layout(_round_up(end, alignment), alignment, scalars)

    def _may_fill(self, kind: str, number: int, member: str) -> bool:
        """Whether a member may be padding that clang wrote: bytes that no name leads to."""
        is_named = (kind, str(number)) in self.addressed or not number
        return bool(_FILLING.match(member)) and not is_named and kind in self.types and not _UNION.match(kind)


def _between(scalars: tuple[Scalar, ...], end: int) -> Iterator[Scalar]:
    """The bytes up to `end` in none of these: other members of a union may have a value there."""
    taken = {byte for each in scalars for byte in range(each.offset, each.offset + each.size)}
    return (Scalar(byte, 1, "i8") for byte in range(end) if byte not in taken)


def split_types(text: str) -> list[str]:
    """The types in a list with commas between."""
    found, rest = [], text.strip()
    while rest:
        kind = first_type(rest)
        found.append(kind)
        rest = rest[len(kind) :].lstrip(", ")
    return found


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
