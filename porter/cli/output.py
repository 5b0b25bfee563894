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
from porter.report.console import console, escaped, is_terminal
from porter.report.escaping import printable
from porter.report.live import LiveLine

if TYPE_CHECKING:
    from rich.console import RenderableType

    from porter.core.checkout import Checkout
    from porter.core.errors import PorterError

    Styled = Callable[[], RenderableType]

DONE, INCOMPLETE, NOT_PLANNED = 0, 1, 2


@dataclass(frozen=True)
class Settings:
    """The options of every command, given before it or after it."""

    checkout: Path | None = None
    json: bool = False
    no_color: bool = False

    def joined(self, other: Settings) -> Settings:
        """Both, where `other` says more."""
        json, no_color = self.json or other.json, self.no_color or other.no_color
        return replace(self, checkout=other.checkout or self.checkout, json=json, no_color=no_color)


class Output:
    """What one run prints."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.json = settings.json
        self._live = LiveLine(sys.stderr, settings.no_color)

    def find_checkout(self) -> Checkout:
        """The fork to work on, told on stderr. Raises PTR001 for a folder that is none."""
        from porter.core.checkout import find_checkout

        checkout = find_checkout(self.settings.checkout, Path.cwd(), dict(os.environ))
        self.note(f"checkout: {printable(checkout.root.name)} ({checkout.origin})")
        return checkout

    def open_checkout(self, to_write: bool = False) -> Checkout:
        """The fork without a write that was interrupted: one is settled, where the command may write.

        Raises PTR001 for a folder that is none, PTR181 for an interrupted write, and what settling raises.
        """
        from porter.core.journal import recover, require_settled

        checkout = self.find_checkout()
        if not to_write:
            require_settled(checkout)
        elif settled := recover(checkout):
            self.note(f"an interrupted write was {settled}")
        return checkout

    def step(self, step: Step) -> None:
        """Shows what is being done, for as long as it takes."""
        self._live.show(step)

    def saying(self, what: str) -> None:
        """The same for a step that is one of a kind."""
        self._live.show(Step(what))

    def done(self) -> None:
        """Nothing is being done any more."""
        self._live.hide()

    def object(self, value: dict[str, Any]) -> None:
        """Prints a result for a script: one object, one line."""
        self._live.hide()
        print(json.dumps(value), flush=True)

    def text(self, plain: str, styled: Styled | None = None) -> None:
        """Prints a result for a person: styled and as wide as the terminal, or plain where there is none."""
        self._print(sys.stdout, plain, styled)

    def diff(self, plain: str, styled: Styled) -> None:
        """Prints a diff, its lines as long as they are."""
        self._print(sys.stdout, plain, styled, end="", wrap=False)

    def note(self, plain: str, styled: Styled | None = None) -> None:
        """Prints what is no result: to stderr."""
        self._print(sys.stderr, plain, styled)

    def error(self, error: PorterError, about: str = "porter") -> None:
        """Prints why something could not be done."""
        self.note(f"{about}: {printable(str(error), keep=chr(10))}")

    def _print(self, stream: TextIO, plain: str, styled: Styled | None, end: str = "\n", wrap: bool = True) -> None:
        self._live.hide()
        if styled is not None and is_terminal(stream):
            console(stream, self.settings.no_color).print(escaped(styled()), end=end, soft_wrap=not wrap)
        else:
            exact = not wrap and not stream.isatty()  # a diff that a program reads
            print(plain if exact else printable(plain, keep="\n\t"), end=end, file=stream, flush=True)
