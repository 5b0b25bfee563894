"""Terminal output through rich; plain text elsewhere."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from porter.report.escaping import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def is_terminal(stream: TextIO) -> bool:
    """Whether the stream is a terminal that supports more than plain lines."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def console(stream: TextIO, no_color: bool) -> Console:
    """A rich console for a stream, without color if `no_color` or $NO_COLOR is set."""
    from rich.console import Console

    plain = no_color or bool(os.environ.get("NO_COLOR"))
    return Console(file=stream, color_system=None if plain else "auto", highlight=False, markup=False, emoji=False)


def escaped(shown: RenderableType) -> RenderableType:
    """The same with every character of its text that a terminal obeys written as an escape."""
    from rich.console import ConsoleOptions, RenderResult
    from rich.segment import Segment

    class Escaped:
        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            for each in console.render(shown, options):
                yield each if each.control else Segment(printable(each.text, keep="\n\t"), each.style)

    return Escaped()
