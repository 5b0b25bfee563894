"""The one exception this package raises for bad input: what, where, and what to do next."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A line of a compiler or a linker that names no line of a source.
_REFUSED = re.compile(r"^(?!.*:\d+:\d+: )[^\n]*\b(No space left on device|Disk quota exceeded)\b", re.M | re.I)


@dataclass(frozen=True)
class Place:
    """A line of a source file. `line` counts from 1; 0 is the file as a whole."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class OverlayError(Exception):
    """Bad input, refused: a stable `code` (`PTR101`), what is wrong, the `place` it was found, and a `hint` of what to
    do next.
    """

    def __init__(self, code: str, what: str, place: Place | None = None, hint: str = "") -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.place = place
        self.hint = hint

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        hint = f"\n  {self.hint}" if self.hint else ""
        return f"{where}{self.code} {self.what}{hint}"


def refuse_full_disk(stderr: str) -> None:
    """Raises PTR182 where a compiler or a linker ended because a disk is full, which says nothing of the source."""
    if found := _REFUSED.search(stderr):
        what = f"the system refused: {found[1]}, while a compiler wrote"
        raise OverlayError("PTR182", what, hint="Make room in the cache's folder and in $TMPDIR, and try again.")
