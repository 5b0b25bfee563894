"""Where a person reads: a terminal through rich, anything else as plain text."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from porter.report.escaping import printable

if TYPE_CHECKING:
    from rich.console import Console, RenderableType


def is_terminal(stream: TextIO) -> bool:
    """Whether a person reads what is written here, on a terminal that can do more than print lines."""
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def console(stream: TextIO, no_color: bool) -> Console:
    """The console of a stream, as wide as its terminal; without color where that is asked for, also by $NO_COLOR."""
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
