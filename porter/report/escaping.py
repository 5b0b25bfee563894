"""Makes text from a fork safe to print."""

from __future__ import annotations

import unicodedata

# Control characters, format characters (such as right-to-left marks) and lone surrogates.
_HIDDEN = ("Cc", "Cf", "Cs")


def printable(text: str, keep: str = "") -> str:
    """Escapes every character that a terminal would interpret or cannot show, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(_escape(c) if c not in keep and unicodedata.category(c) in _HIDDEN else c for c in text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")
