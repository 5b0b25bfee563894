"""Tells the runtime, in LLVM's intermediate representation, where in the source threads are about to wait for others.

Works on code that is optimized so far that a kernel is one function: a barrier that two branches reach by one function
is two calls there, with two numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import count

from aten_overlay.metal.regions import BARRIER, BEGIN
from aten_overlay.metal.sanitizer.places import Places

_MEETING = re.compile(rf"^  (?:\S+ = )?(?:tail )?call [^\n]*?({BARRIER}|{BEGIN})\([^\n]*?!dbg !(\d+)[^\n]*$", re.M)
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
    """`module` with a call before each barrier and simdgroup operation that tells file, line and number."""
    places = Places.read(module)
    files: dict[str, int] = {}
    numbers = count(1)

    def mark(found: re.Match[str]) -> str:
        file, line = places.find(found[2]) or ("?", 0)
        name = f"@pm.meeting.{files.setdefault(file, len(files))}"
        return f"  call void {_HOOK}(ptr {name}, i32 {line}, i32 {next(numbers)})\n{found[0]}"

    marked = _MEETING.sub(mark, module)
    names = [f"@pm.meeting.{number} = private constant {_string(file)}" for file, number in files.items()]
    return "\n".join([marked, *names, f"declare void {_HOOK}(ptr, i32, i32)", ""]) if files else module


def _string(text: str) -> str:
    data = text.encode() + b"\0"
    escaped = "".join(f"\\{byte:02X}" for byte in data)
    return f'[{len(data)} x i8] c"{escaped}"'
