"""Converts between the errors of porter and aten_overlay: two classes with the same codes and text.

Calls into aten_overlay are wrapped where porter handles errors, so that the rest of porter needs only its own class.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path

from aten_overlay import errors as overlay
from aten_overlay.errors import OverlayError
from porter.core.errors import Place, PorterError, code_in


@contextmanager
def raising_porter_errors() -> Iterator[None]:
    """Converts an OverlayError to the same PorterError."""
    try:
        yield
    except OverlayError as error:
        raise porter_error(error) from error


def porter_error(error: OverlayError) -> PorterError:
    """The same error of porter's own class."""
    place = Place(error.place.file, error.place.line) if error.place else None
    return PorterError(error.code, error.what, place, error.hint)


@contextmanager
def raising_overlay_errors() -> Iterator[None]:
    """Converts a PorterError to the same OverlayError, for what aten_overlay calls."""
    try:
        yield
    except PorterError as error:
        place = overlay.Place(error.place.file, error.place.line) if error.place else None
        raise OverlayError(error.code, error.what, place, error.hint) from error


def name_in_fork(error: PorterError, root: Path) -> PorterError:
    """The error with files of the private tree at `root` named as they are in the fork."""
    prefix = f"{root}/"
    place = Place(error.place.file.removeprefix(prefix), error.place.line) if error.place else None
    return PorterError(error.code, error.what.replace(prefix, ""), place, error.hint)


class NoVerdict(PorterError):
    """There is no verdict, because of the machine, its processes or the backend (PTR100, PTR170 to PTR172)."""


class NotNative(PorterError):
    """An operator has no row that runs Metal kernels (PTR019)."""


class NoKernelNamed(PorterError):
    """The host code of an operator names no kernel (PTR018)."""


class Refusal(Enum):
    """A class of errors with a code. Errors of the fork's own checks have none.

    Errors of aten_overlay reach Python through the fork's C++, which keeps only their message; it starts with their
    code.
    """

    NOT_MODELED = auto()  # the stand-in for Apple cannot run it
    VALIDATION = auto()  # Metal's API validation would refuse it on a Mac
    UNDEFINED = auto()  # no graph can compute it
    OTHER = auto()


_BY_CODE = {
    "PTR120": Refusal.NOT_MODELED,
    "PTR123": Refusal.NOT_MODELED,
    "PTR124": Refusal.VALIDATION,
    "PTR125": Refusal.VALIDATION,
    "PTR126": Refusal.VALIDATION,
    "PTR127": Refusal.UNDEFINED,
    **{f"PTR13{digit}": Refusal.NOT_MODELED for digit in range(10)},
}


def refusal_in(text: str) -> Refusal | None:
    """The class of the error in a message; None if it has no code."""
    code = code_in(text)
    return _BY_CODE.get(code, Refusal.OTHER) if code else None
