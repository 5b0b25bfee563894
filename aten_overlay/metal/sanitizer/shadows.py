"""Which bits of a value are undefined: its shadow, an integer of the value's width with a 1 for each such bit.

What moves or masks bits moves and masks those of the shadow, so that a part of a word which has a value (a member of a
union, a bit-field) keeps it. The result of anything else is undefined as a whole if a bit of an operand is.
Source: Stepanov and Serebryany, "MemorySanitizer: fast detector of uninitialized memory use in C++", 2015.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from aten_overlay.metal.passes.ir import LOCAL, NotUnderstood, first_type
from aten_overlay.metal.sanitizer.layouts import SIZES

_PHI = re.compile(r"\[ (.+?), (%(?:\"[^\"]*\"|[-\w.$]+)) \]")
_UNITED = frozenset(("xor", "add", "sub"))  # bit by bit: what a carry changes is left out
_SHIFTS = frozenset(("shl", "lshr", "ashr"))
_MOVED = frozenset(("bitcast", "freeze"))
_RESIZED = frozenset(("trunc", "zext", "sext"))


def count_bytes(access: str) -> int:
    """The size of what a load or store accesses. Raises NotUnderstood for what has no plain size."""
    kind = first_type(access.removeprefix("volatile "))
    count, element = 1, kind
    if vector := re.fullmatch(r"<(\d+) x (\w+)>", kind):
        count, element = int(vector[1]), vector[2]
    if found := re.fullmatch(r"i(\d+)", element):
        return (count * int(found[1]) + 7) // 8
    if element not in SIZES:
        raise NotUnderstood(access)
    return count * SIZES[element]


def count_bits(kind: str) -> int:
    """The width of a type's shadow; 1 for what is no number."""
    if found := re.fullmatch(r"i(\d+)", kind):
        return int(found[1])
    return 8 * SIZES.get(kind, 0) or 1


def find_width(opcode: str, rest: str) -> int:
    """The width of a result's shadow. Raises NotUnderstood."""
    if opcode in ("icmp", "fcmp"):
        return 1
    if opcode == "select":
        return count_bits(first_type(rest.split(", ", 1)[1]))
    if opcode == "getelementptr":
        return count_bits("ptr")
    if " to " in rest:
        return count_bits(rest.rsplit(" to ", 1)[1])
    return count_bits(first_type(rest))


def shadow_name(name: str) -> str:
    return "%pm.bit." + re.sub(r'[%"]', "", name)


def part_name(name: str) -> str:
    """What the names of the steps to a shadow start with: `x.1` may be a value of its own beside `x`."""
    return "%pm.part." + re.sub(r'[%"]', "", name)


@dataclass(frozen=True)
class Shadows:
    """The widths of the shadows of a function's values, by name."""

    widths: Mapping[str, int]

    def find(self, value: str) -> str:
        """The shadow of a value; of one that has none, no bit is undefined."""
        return shadow_name(value) if value in self.widths else "0"

    def write(self, name: str, opcode: str, rest: str) -> Iterator[str]:
        """Instructions that make the shadow of a result, of those of its operands."""
        shadow, part, kind = shadow_name(name), part_name(name), f"i{self.widths[name]}"
        if opcode == "phi":
            ways = ", ".join(f"[ {self.find(value)}, {label} ]" for value, label in _PHI.findall(rest))
            yield f"  {shadow} = phi {kind} {ways}"
        elif opcode == "select":
            condition, yes, no = (each.rsplit(" ", 1)[-1] for each in rest.split(", "))
            yield f"  {part}.of = select i1 {condition}, {kind} {self.find(yes)}, {kind} {self.find(no)}"
            yield f"  {shadow} = select i1 {self.find(condition)}, {kind} {_ones(kind)}, {kind} {part}.of"
        elif opcode in _RESIZED:
            source = f"i{count_bits(first_type(rest))}"
            yield f"  {shadow} = {opcode} {source} {self.find(rest.split(' to ')[0].rsplit(' ', 1)[-1])} to {kind}"
        elif opcode in _MOVED:
            yield f"  {shadow} = or {kind} {self.find(rest.split(' to ')[0].rsplit(' ', 1)[-1])}, 0"
        elif opcode in _UNITED | _SHIFTS | {"and", "or"}:
            left, right = rest.rsplit(", ", 1)
            yield from self._binary(name, opcode, left.rsplit(" ", 1)[-1], right)
        else:
            yield from self._any(part, [o for o in LOCAL.findall(rest) if o in self.widths])
            yield f"  {shadow} = select i1 {part}.any, {kind} {_ones(kind)}, {kind} 0"

    def _binary(self, name: str, opcode: str, left: str, right: str) -> Iterator[str]:
        shadow, part, kind = shadow_name(name), part_name(name), f"i{self.widths[name]}"
        one, other = self.find(left), self.find(right)
        if opcode in _UNITED:
            yield f"  {shadow} = or {kind} {one}, {other}"
            return
        if opcode in _SHIFTS:
            yield f"  {part}.by = icmp ne {kind} {other}, 0"
            yield f"  {part}.moved = {opcode} {kind} {one}, {right}"
            yield f"  {shadow} = select i1 {part}.by, {kind} {_ones(kind)}, {kind} {part}.moved"
            return
        if opcode == "or":  # a bit that is 1 on one side is one whatever the other's is
            yield f"  {part}.left = xor {kind} {left}, {_ones(kind)}"
            yield f"  {part}.right = xor {kind} {right}, {_ones(kind)}"
            left, right = f"{part}.left", f"{part}.right"
        yield f"  {part}.first = or {kind} {left}, {one}"
        yield f"  {part}.second = or {kind} {right}, {other}"
        yield f"  {part}.open = and {kind} {part}.first, {part}.second"
        yield f"  {part}.any = or {kind} {one}, {other}"
        yield f"  {shadow} = and {kind} {part}.open, {part}.any"

    def _any(self, part: str, operands: list[str]) -> Iterator[str]:
        """Makes `part`.any: whether a bit of an operand is undefined."""
        for number, operand in enumerate(operands):
            yield f"  {part}.is{number} = icmp ne i{self.widths[operand]} {shadow_name(operand)}, 0"
            yield f"  {part}.or{number} = or i1 {part}.is{number}, {f'{part}.or{number - 1}' if number else 'false'}"
        yield f"  {part}.any = or i1 {part}.or{len(operands) - 1}, false"


def _ones(kind: str) -> str:
    return "true" if kind == "i1" else "-1"
