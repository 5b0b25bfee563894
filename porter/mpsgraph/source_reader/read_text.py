"""The text that the evaluator interprets, and where in the fork its parts are."""

from __future__ import annotations

import re
from dataclasses import dataclass

from porter.core.errors import Place
from porter.languages.brackets import ROUND, find_closing_end
from porter.languages.source import Source

_HEAD = re.compile(r"(if|for|while|switch)\b(?: constexpr)?\s*(?=\()|do\b")
_KINDS = {"if": "a branch", "switch": "a switch"}
_LONGEST = 100


@dataclass(frozen=True)
class ReadText:
    """A function as it is interpreted: one branch of every `#if`, macros expanded, each line where the file has it.

    A function that a macro line makes is all at that line, `first`.
    """

    source: Source
    first: Place
    text: str
    of_macro: bool = False

    def place(self, start: int) -> Place:
        """The line of an offset."""
        below = 0 if self.of_macro else self.text.count("\n", 0, start)
        return Place(self.first.file, self.first.line + below)

    def describe(self, start: int) -> str:
        """The branch, loop or switch at an offset, for a message: its kind and its head. Empty for anything else."""
        match = _HEAD.match(self.text, start)
        if not match:
            return ""
        end = find_closing_end(self.text, match.end(), ROUND) if match[1] else match.end()
        return f"{_KINDS.get(match[1], 'a loop')}, {quote(self.text[start:end])}"


def quote(text: str) -> str:
    """Code in a message: on one line, no longer than a message bears."""
    line = " ".join(text.split())
    return f"`{line[:_LONGEST]}{'...' if len(line) > _LONGEST else ''}`"
