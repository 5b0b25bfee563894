"""Tells the runtime, in LLVM's intermediate representation, where in the source threads are about to wait for others.

Works on code that is optimized so far that a kernel is one function: a barrier that two branches reach by one function
is two calls there, with two numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count

from aten_overlay.metal.passes.control import find_loops, find_successors
from aten_overlay.metal.passes.ir import NotUnderstood, functions, read_function, write_string
from aten_overlay.metal.passes.regions import BARRIER, BEGIN
from aten_overlay.metal.sanitizer.places import Places

_MEETING = re.compile(rf"^  (?:\S+ = )?(?:tail )?call [^\n]*?({BARRIER}|{BEGIN})\([^\n]*?!dbg !(\d+)[^\n]*$", re.M)
_LABEL = re.compile(r'^("[^"]*"|[-\w.$]+):')
_HOOK = "@pm_at_meeting"
_SHUFFLE = re.compile(r"(simd|quad)_(shuffle|broadcast)")
SHUFFLED = "lanes"  # the check that only kernels need which shuffle: it keeps what they write


_OF_MEETINGS = frozenset((SHUFFLED, "barriers"))  # checks that need to know of no access to memory


def watches_accesses(checks: Iterable[str]) -> bool:
    """Whether some of these checks watch accesses to memory, which takes far longer."""
    return not _OF_MEETINGS.issuperset(checks)


def shuffles(reached: Iterable[str]) -> bool:
    """Whether a kernel may read what another lane holds, by the names that it reaches."""
    return any(_SHUFFLE.match(name) for name in reached)


def mark_meetings(module: str) -> str:
    """`module` with a call before each barrier and simdgroup operation that tells file, line, number and turn.

    The turn is that of the loops around it, by a number: lanes that wait there in different turns do not meet.
    """
    places = Places.read(module)
    files: dict[str, int] = {}
    numbers = count(1)
    pieces, at = [], 0
    for start, end, _ in functions(module):
        if _MEETING.search(module, start, end):
            pieces += [module[at:start], *_mark_function(module[start:end], places, files, numbers)]
            at = end
    names = [f"@pm.meeting.{number} = private constant {write_string(file)}" for file, number in files.items()]
    marked = "".join([*pieces, module[at:]])
    return "\n".join([marked, *names, f"declare void {_HOOK}(ptr, i32, i32, i32)", ""]) if files else module


def _mark_function(text: str, places: Places, files: dict[str, int], numbers: Iterator[int]) -> Iterator[str]:
    turns = Turns.read(text)
    label = ""
    for line in text.removesuffix("\n").split("\n"):
        if found := _LABEL.match(line):
            label = found[1]
        elif not line.startswith("  %") or " = phi " not in line:
            yield from turns.count_turn(label)
        if meeting := _MEETING.match(line):
            file, place = places.find(meeting[2]) or ("?", 0)
            name, number = f"@pm.meeting.{files.setdefault(file, len(files))}", next(numbers)
            made, turn = turns.find_turn(label, number)
            yield f"{made}  call void {_HOOK}(ptr {name}, i32 {place}, i32 {number}, i32 {turn})\n"
        yield f"{line}\n"
        if found:
            yield from turns.start(label)


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
