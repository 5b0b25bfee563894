"""Counts the turns of loops, in LLVM's intermediate representation: from 0 each time that a lane enters a loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from aten_overlay.metal.passes.control import find_loops, find_successors
from aten_overlay.metal.passes.ir import NotUnderstood, read_function
from aten_overlay.metal.passes.regions import BARRIER, BEGIN

_FACTOR = 0x01000193  # odd and large: turns of nested loops make different numbers


@dataclass
class Turns:
    """The loops of a function that hold a meeting: of each, by its first block, the ways into that block with the count
    they bring; and of each block the loops around it, the outermost first.
    """

    ways: dict[str, list[str]]
    around: dict[str, list[str]]
    _started: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, text: str) -> Turns:
        """Of a function's text; without loops where its control flow is not understood."""
        try:
            function = read_function(text)
            loops = find_loops(function)
        except NotUnderstood:
            return cls({}, {})
        meeting = {b.label for b in function.blocks if any(i.callee in (BARRIER, BEGIN) for i in b.instructions)}
        held = {header: body for header, (_, body) in loops.items() if body & meeting}
        ways: dict[str, list[str]] = {header: [] for header in held}
        for block in function.blocks:
            for target in find_successors(block):
                if target in held:
                    value = _next(target) if block.label in held[target] else "0"
                    ways[target].append(f"[ {value}, %{block.label} ]")
        nested = sorted(held, key=lambda header: -len(held[header]))
        return cls(ways, {b.label: [h for h in nested if b.label in held[h]] for b in function.blocks})

    def start(self, label: str) -> Iterator[str]:
        """The count of the loop that a block starts, as its first instruction."""
        if label in self.ways:
            self._started.add(label)
            yield f"  {_name(label)} = phi i32 {', '.join(self.ways[label])}\n"

    def count_turn(self, label: str) -> Iterator[str]:
        """Adds one to the count, once, behind the first instructions of the block."""
        if label in self._started:
            self._started.remove(label)
            yield f"  {_next(label)} = add i32 {_name(label)}, 1\n"

    def find_turn(self, label: str, number: int) -> tuple[str, str]:
        """Instructions that make one number of the turns around a block, and its name; `number` tells places apart."""
        made, turn = "", "0"
        for depth, header in enumerate(self.around.get(label, [])):
            if depth == 0:
                turn = _name(header)
                continue
            name = f"%pm.turn.of.{number}.{depth}"
            made += f"  {name}.by = mul i32 {turn}, {_FACTOR}\n  {name} = add i32 {name}.by, {_name(header)}\n"
            turn = name
        return made, turn


def _name(header: str) -> str:
    return f'%"pm.turn.{header.replace(chr(34), "")}"'


def _next(header: str) -> str:
    return f'%"pm.turn.{header.replace(chr(34), "")}.next"'
