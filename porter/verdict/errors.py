"""Where the coded errors of porter and of aten_overlay meet: two classes, the same codes and text.

Calls into aten_overlay are wrapped where porter handles errors, so that no other room knows its class.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aten_overlay import errors as overlay
from aten_overlay.errors import OverlayError
from porter.core.errors import Place, PorterError


@contextmanager
def raising_porter_errors() -> Iterator[None]:
    """Turns an OverlayError into the PorterError that says the same, for callers that know nothing of aten_overlay."""
    try:
        yield
    except OverlayError as error:
        place = Place(error.place.file, error.place.line) if error.place else None
        raise PorterError(error.code, error.what, place, error.hint) from error


@contextmanager
def raising_overlay_errors() -> Iterator[None]:
    """The other way round, for what aten_overlay calls."""
    try:
        yield
    except PorterError as error:
        place = overlay.Place(error.place.file, error.place.line) if error.place else None
        raise OverlayError(error.code, error.what, place, error.hint) from error


class NoVerdict(PorterError):
    """Says nothing about a port: the machine, its processes or the backend are at fault (PTR100, PTR170 to PTR172)."""


class NotNative(PorterError):
    """An operator has no row that runs Metal kernels (PTR019)."""


class NoKernelNamed(PorterError):
    """The host code of an operator names no kernel (PTR018)."""
