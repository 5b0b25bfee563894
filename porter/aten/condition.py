"""A branch that C++ takes on an argument."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Condition:
    """A branch taken on an argument: `text` is the condition as the source has it (`eps.has_value()`)."""

    text: str
    holds: bool

    def __str__(self) -> str:
        return self.text if self.holds else f"!({self.text})"
