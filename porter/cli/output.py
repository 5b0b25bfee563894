"""Where a command prints: results to stdout, all else to stderr, and one live line while it waits."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from porter.core.progress import Step
from porter.report.console import console, is_terminal
from porter.report.escaping import printable
from porter.report.live import LiveLine

if TYPE_CHECKING:
    from rich.console import RenderableType

    from porter.core.checkout import Checkout
    from porter.core.errors import PorterError

    Render = Callable[[], RenderableType]

DONE, INCOMPLETE, NOT_PLANNED = 0, 1, 2


@dataclass(frozen=True)
class Settings:
    """The options of every command, given before it or after it."""

    checkout: Path | None = None
    json: bool = False
    no_color: bool = False

    def merge(self, other: Settings) -> Settings:
        """Both, where `other` says more."""
        json, no_color = self.json or other.json, self.no_color or other.no_color
        return replace(self, checkout=other.checkout or self.checkout, json=json, no_color=no_color)


class Output:
    """What one run prints."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.json = settings.json
        self._live = LiveLine(sys.stderr, settings.no_color)

    def open_checkout(self) -> Checkout:
        """The fork to work on, told on stderr; a write that was interrupted is settled first.

        Raises PTR001 for a folder that is none, and what settling raises.
        """
        from porter.core.checkout import find_checkout
        from porter.core.journal import recover

        checkout = find_checkout(self.settings.checkout, Path.cwd(), dict(os.environ))
        self.note(f"checkout: {printable(checkout.root.name)} ({checkout.origin})")
        settled = recover(checkout)
        if settled:
            self.note(f"an interrupted write was {settled}")
        return checkout

    def report_step(self, step: Step) -> None:
        """Shows what is being done, for as long as it takes."""
        self._live.show(step)

    def report_progress(self, what: str) -> None:
        """The same for a step that is one of a kind."""
        self._live.show(Step(what))

    def finish(self) -> None:
        """Nothing is being done any more."""
        self._live.hide()

    def object(self, value: dict[str, Any]) -> None:
        """Prints a result for a script: one object, one line."""
        self._live.hide()
        print(json.dumps(value), flush=True)

    def text(self, plain: str, render: Render | None = None) -> None:
        """Prints a result for a person: styled and as wide as the terminal, or plain where there is none."""
        self._print(sys.stdout, plain, render)

    def diff(self, plain: str, render: Render) -> None:
        """Prints a diff, its lines as long as they are."""
        self._print(sys.stdout, plain, render, end="", wrap=False)

    def note(self, plain: str, render: Render | None = None) -> None:
        """Prints what is no result: to stderr."""
        self._print(sys.stderr, plain, render)

    def error(self, error: PorterError, about: str = "porter") -> None:
        """Prints why something could not be done."""
        self.note(f"{about}: {printable(str(error), keep=chr(10))}")

    def _print(self, stream: TextIO, plain: str, render: Render | None, end: str = "\n", wrap: bool = True) -> None:
        self._live.hide()
        if render is not None and is_terminal(stream):
            console(stream, self.settings.no_color).print(render(), end=end, soft_wrap=not wrap)
        else:
            print(plain, end=end, file=stream, flush=True)
