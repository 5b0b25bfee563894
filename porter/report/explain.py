"""The stages of one operator as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from porter.report.escaping import printable

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True)
class Stage:
    """One stage: its title and its lines."""

    title: str
    lines: tuple[str, ...]

    def as_object(self) -> dict[str, Any]:
        return {"stage": self.title, "lines": list(self.lines)}


def stage_text(stage: Stage) -> str:
    """The title, then the lines, indented."""
    return printable("\n".join([stage.title, *(f"  {line}" for line in stage.lines)]), keep="\n\t")


def style_stage(stage: Stage) -> Text:
    """The same for a terminal."""
    from rich.text import Text

    title, line, rest = stage_text(stage).partition("\n")
    return Text.assemble((title, "bold"), line, rest)
