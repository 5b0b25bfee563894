"""Tells the runtime, in LLVM's intermediate representation, where in the source threads are about to wait for others.

Works on code that is optimized so far that a kernel is one function: a barrier that two branches reach by one function
is two calls there, with two numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count

from aten_overlay.metal.passes.ir import functions, write_string
from aten_overlay.metal.passes.regions import BARRIER, BEGIN
from aten_overlay.metal.sanitizer.places import Places
from aten_overlay.metal.sanitizer.turns import Turns

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
