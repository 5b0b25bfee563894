"""Prints results to stdout and everything else to stderr, with a live progress line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from porter.core.progress import Step
from porter.report.console import LiveLine, console, escaped, is_terminal, printable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from porter.core.checkout import Checkout
    from porter.core.errors import PorterError
    from porter.verdict.result import Verdict

    Render = Callable[[], RenderableType]

DONE, INCOMPLETE, NOT_PLANNED = 0, 1, 2


@dataclass(frozen=True)
class Settings:
    """The global options, given before or after the command.

    `words` are all of the command line, where this process was started for it.
    """

    checkout: Path | None = None
    json: bool = False
    no_color: bool = False
    words: tuple[str, ...] | None = None

    def merge(self, other: Settings) -> Settings:
        """Combines both; `other` takes precedence."""
        json, no_color = self.json or other.json, self.no_color or other.no_color
        return replace(self, checkout=other.checkout or self.checkout, json=json, no_color=no_color)


class Output:
    """Prints the output of one command."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.json = settings.json
        self._live = LiveLine(sys.stderr, settings.no_color)

    def find_checkout(self, to_write: bool = False) -> Checkout:
        """Finds the fork to work on and prints its path to stderr.

        Raises PTR001 if the folder is not a checkout, PTR008 if a command is to write and no checkout is named.
        """
        from porter.core.checkout import find_checkout

        checkout = find_checkout(self.settings.checkout, Path.cwd(), dict(os.environ), to_write)
        self.note(f"checkout: {printable(str(checkout.root.resolve()))} ({checkout.origin})")
        return checkout

    def open_checkout(self, to_write: bool = False) -> Checkout:
        """Finds the fork, and recovers from an interrupted write if the command may write.

        Raises PTR181 for an interrupted write, and what `find_checkout` and `recover` raise.
        """
        from porter.core.journal import recover, require_settled

        checkout = self.find_checkout(to_write)
        if not to_write:
            require_settled(checkout)
        elif settled := recover(checkout):
            self.note(f"an interrupted write was {settled}")
        return checkout

    def report_step(self, step: Step) -> None:
        """Shows a step on the progress line."""
        self._live.show(step)

    def report_progress(self, what: str) -> None:
        """Shows a step that is not counted."""
        self._live.show(Step(what))

    def finish(self) -> None:
        """Hides the progress line."""
        self._live.hide()

    def object(self, value: dict[str, Any]) -> None:
        """Prints a result as one line of JSON."""
        self._live.hide()
        print(json.dumps(value), flush=True)

    def text(self, plain: str, render: Render | None = None) -> None:
        """Prints a result: styled on a terminal, plain elsewhere."""
        self._print(sys.stdout, plain, render)

    def show(self, record: dict[str, Any], text: str | Iterable[str], render: Render | None = None) -> None:
        """Prints a result as JSON, or else as text, which lines make too."""
        if self.json:
            self.object(record)
        else:
            self.text(text if isinstance(text, str) else "\n".join(text), render)

    def diff(self, plain: str) -> None:
        """Prints a diff without wrapping its lines."""
        from porter.report.terminal import style_diff

        self._print(sys.stdout, plain, lambda: style_diff(plain), end="", wrap=False)

    def verdict(self, verdict: Verdict) -> None:
        """Prints a verdict as JSON or as a table."""
        from porter.report.as_json import verdict_object
        from porter.report.verdict import style_verdict, table

        self.show(verdict_object(verdict), table(verdict), lambda: style_verdict(verdict))

    def note(self, plain: str, render: Render | None = None) -> None:
        """Prints a message to stderr."""
        self._print(sys.stderr, plain, render)

    def error(self, error: PorterError, about: str = "porter") -> None:
        """Prints an error to stderr."""
        self.note(f"{about}: {printable(str(error), keep=chr(10))}")

    def _print(self, stream: TextIO, plain: str, render: Render | None, end: str = "\n", wrap: bool = True) -> None:
        self._live.hide()
        if render is not None and is_terminal(stream):
            console(stream, self.settings.no_color).print(escaped(render()), end=end, soft_wrap=not wrap)
        else:
            exact = not wrap and not stream.isatty()  # a diff that a program reads
            print(plain if exact else printable(plain, keep="\n\t"), end=end, file=stream, flush=True)
