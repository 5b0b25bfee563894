"""The one exception porter raises for bad input: what, where, and what to do next.

Every code has a page `docs/errors/PTR0xx.md`; a test keeps the pages and the codes in step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_CODE = re.compile(r"\bPTR\d{3}\b")


@dataclass(frozen=True)
class Place:
    """A line of a file in the checkout. `file` is relative to the checkout's root, `line` counts from 1."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class PorterError(Exception):
    """Bad input, refused: a stable `code`, what is wrong, the `place` it was found, and the `hint` of what to do
    next.
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


def code_in(text: str) -> str:
    """The first code in the text of an error that came through others' code, `""` if none of porter's is there."""
    found = _CODE.search(text)
    return found[0] if found else ""
