"""A condition on an argument that C++ code branches on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Condition:
    """The branch taken on an argument: `text` is the condition as written in the source (`eps.has_value()`)."""

    text: str
    holds: bool

    def __str__(self) -> str:
        return self.text if self.holds else f"!({self.text})"
