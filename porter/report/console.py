"""Terminal output through rich; plain text elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Console


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal that supports more than plain lines."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def console(stream: TextIO, no_color: bool) -> Console:
    """A rich console for a stream, without color if `no_color` or $NO_COLOR is set."""
    from rich.console import Console

    plain = no_color or bool(os.environ.get("NO_COLOR"))
    return Console(file=stream, color_system=None if plain else "auto", highlight=False, markup=False, emoji=False)
