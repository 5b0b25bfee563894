"""Text that comes from a fork, made safe to print."""

from __future__ import annotations

import unicodedata

# Control characters, those that only change how others are shown (right to left), and lone surrogates.
_HIDDEN = ("Cc", "Cf", "Cs")


def printable(text: str, keep: str = "") -> str:
    """The text with every character that a terminal obeys, or cannot show, written as an escape, except those of
    `keep`.
    """
    if text.isprintable():
        return text
    return "".join(_escape(c) if c not in keep and unicodedata.category(c) in _HIDDEN else c for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
