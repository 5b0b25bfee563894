"""Terminal output: text that is safe to print, rich or plain, and a live progress line."""

from __future__ import annotations

import codecs
import os
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from porter.core.progress import Step

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.progress import Progress, Task, TaskID


ANY_ENCODING = "porter"  # the name under which `replace_unprintable` is registered
# Control characters, format characters (such as right-to-left marks) and lone surrogates.
_HIDDEN = ("Cc", "Cf", "Cs")


def align(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Lines of cells in columns, of which the last one is as wide as it is."""
    widths = [max(map(len, column)) for column in zip(*(row[:-1] for row in rows), strict=True)]
    for row in rows:
        yield "  ".join((*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]))


def show_ulp(value: float | None) -> str:
    """A distance in units in the last place; nothing where none was measured."""
    return "" if value is None else f"{value:.2f}"


def printable(text: str, keep: str = "") -> str:
    """Escapes every character that a terminal would interpret or cannot show, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(_escape(c) if c not in keep and unicodedata.category(c) in _HIDDEN else c for c in text)


def replace_unprintable(error: UnicodeError) -> tuple[str | bytes, int]:
    """The handler `porter`: what an encoding lacks is written as an escape; bytes of a file stay these bytes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return b"".join(map(_encode, found)), error.end


def _encode(character: str) -> bytes:
    if "\udc80" <= character <= "\udcff":  # a byte that was no text, as `surrogateescape` keeps it
        return bytes([ord(character) - 0xDC00])
    return _escape(character).encode("ascii")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


codecs.register_error(ANY_ENCODING, replace_unprintable)


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


# Long enough for every operator of a run to count toward the estimate.
_ESTIMATE_SECONDS = 24 * 3600.0
_TIME = 14  # columns of the spinner, 0:00:00 and the gaps
_SHORTEST = 8  # columns of a step that are shown on the narrowest terminal


class LiveLine:
    """Shows the current step on a terminal. Hidden while other output is printed."""

    def __init__(self, stream: TextIO, no_color: bool) -> None:
        self._stream, self._no_color = stream, no_color
        self._shown = is_terminal(stream)
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def show(self, step: Step) -> None:
        """Shows a step and the time since the first one."""
        if not self._shown:
            return
        if self._progress is None or self._task is None:
            self._progress = _progress(self._stream, self._no_color)
            self._task = self._progress.add_task("", total=None)
        self._progress.update(
            self._task, description=printable(step.what), completed=step.done, total=step.total or None
        )
        self._progress.start()

    def hide(self) -> None:
        """Removes the line from the terminal."""
        if self._progress is not None:
            self._progress.stop()


def _progress(stream: TextIO, no_color: bool) -> Progress:
    from rich.progress import Progress, ProgressColumn, SpinnerColumn, TimeElapsedColumn
    from rich.table import Column
    from rich.text import Text

    class CountColumn(ProgressColumn):
        """The count and the estimated remaining time."""

        def render(self, task: Task) -> Text:
            return Text(count(task.completed, task.total, task.time_remaining))

    class StepColumn(ProgressColumn):
        """The step, cut where the time and the count need the room: rich would cut those instead."""

        def render(self, task: Task) -> Text:
            shown = Text(str(task.description))
            counted = len(count(task.completed, task.total, task.time_remaining))
            shown.truncate(max(shown_on.width - _TIME - counted, _SHORTEST), overflow="ellipsis")
            return shown

    shown_on = console(stream, no_color)
    return Progress(
        SpinnerColumn(),
        StepColumn(table_column=Column(ratio=1)),
        TimeElapsedColumn(),
        CountColumn(),
        console=shown_on,
        transient=True,
        expand=True,
        redirect_stdout=False,
        redirect_stderr=False,
        speed_estimate_period=_ESTIMATE_SECONDS,
    )


def count(done: float, total: float | None, seconds_left: float | None) -> str:
    """`3 of 40, 2:05 left`, or an empty string without a total."""
    if total is None:
        return ""
    minutes, seconds = divmod(round(seconds_left or 0), 60)
    left = "" if seconds_left is None else f", {minutes}:{seconds:02} left"
    return f"{done:.0f} of {total:.0f}{left}"
