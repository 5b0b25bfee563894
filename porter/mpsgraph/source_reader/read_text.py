"""The text that the evaluator interprets, and its location in the fork."""

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
    """A function as interpreted: one branch of every `#if`, macros expanded, and the same lines as in the file.

    All of a function expanded from a macro line is at that line, `first`.
    """

    source: Source
    first: Place
    text: str
    of_macro: bool = False

    def place(self, start: int) -> Place:
        """Returns the line of an offset."""
        below = 0 if self.of_macro else self.text.count("\n", 0, start)
        return Place(self.first.file, self.first.line + below)

    def describe(self, start: int) -> str:
        """Describes the branch, loop or switch at an offset, for a message. Empty for anything else."""
        match = _HEAD.match(self.text, start)
        if not match:
            return ""
        end = find_closing_end(self.text, match.end(), ROUND) if match[1] else match.end()
        return f"{_KINDS.get(match[1], 'a loop')}, {quote(self.text[start:end])}"


def quote(text: str) -> str:
    """Returns code on one line, shortened for a message."""
    line = " ".join(text.split())
    return f"`{line[:_LONGEST]}{'...' if len(line) > _LONGEST else ''}`"
