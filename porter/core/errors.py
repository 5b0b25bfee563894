"""The exception that porter raises for bad input: what is wrong, where, and what to do next.

Every code has a page `docs/errors/PTR0xx.md`; a test keeps pages and codes in sync.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path

_REFUSALS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE)
_OF_CHECKOUT = ("PTR003", "PTR004", "PTR005", "PTR007", "PTR064", "PTR065", "PTR066")
_CODE = re.compile(r"\bPTR\d{3}\b")


@dataclass(frozen=True)
class Place:
    """A line of a file. `file` is relative to the checkout's root, `line` counts from 1."""

    file: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


class PorterError(Exception):
    """Bad input: a stable `code`, what is wrong, the `place` it was found, and a `hint` on what to do next."""

    def __init__(self, code: str, what: str, place: Place | None = None, hint: str = "") -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.place = place
        self.hint = hint

    @property
    def of_checkout(self) -> bool:
        """Whether a file cannot be read, or the style not be used: whatever is planned, nothing else would do."""
        return self.code in _OF_CHECKOUT

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        hint = f"\n  {self.hint}" if self.hint else ""
        return f"{where}{self.code} {self.what}{hint}"


def explained(code: str, what: str, place: Place | None = None) -> PorterError:
    """The error whose page has what to do next."""
    return PorterError(code, what, place, f"`porter explain {code}` says more.")


def coded(error: OSError) -> PorterError | None:
    """PTR182 for what a system refuses whatever the program: rights, a read-only or full disk. None for the rest."""
    if error.errno not in _REFUSALS:
        return None
    place = Place(str(error.filename)) if error.filename else None
    return PorterError(
        "PTR182", f"the system refused: {error.strerror}", place, "Make it writable, or make room, and try again."
    )


def refused(error: OSError) -> PorterError | None:
    """PTR182 for whatever a system refuses of a file that it names, such as one in a cache that is no folder."""
    if error.filename is None or error.strerror is None:
        return coded(error)
    place = Place(os.fsdecode(error.filename) if isinstance(error.filename, bytes) else str(error.filename))
    hint = "Check the path, and $PORTER_CACHE, $PORTER_STATE and $TMPDIR if it is in one of these folders."
    return coded(error) or PorterError("PTR182", f"the system refused: {error.strerror}", place, hint)


def unwritable(error: OSError, path: Path) -> PorterError:
    """Why a file that a command was to write is not there: PTR182 as in `coded`, otherwise PTR353."""
    what = f"the file cannot be written: {error.strerror or error}"
    return coded(error) or PorterError("PTR353", what, Place(str(path)), "Name another folder with --out.")


def code_in(text: str) -> str:
    """Returns the first porter code in the text of another exception, or `""`."""
    found = _CODE.search(text)
    return found[0] if found else ""
