"""Makes text from a fork safe to print."""

from __future__ import annotations

import codecs
import unicodedata

ANY_ENCODING = "porter"  # the name under which `replace_unprintable` is registered
# Control characters, format characters (such as right-to-left marks) and lone surrogates.
_HIDDEN = ("Cc", "Cf", "Cs")


def printable(text: str, keep: str = "") -> str:
    """Escapes every character that a terminal would interpret or cannot show, except those in `keep`."""
    if text.isprintable():
        return text
    return "".join(_escape(c) if c not in keep and unicodedata.category(c) in _HIDDEN else c for c in text)


def replace_unprintable(error: UnicodeError) -> tuple[str | bytes, int]:
    """The handler `porter`: what an encoding lacks is written as an escape; bytes of a file stay these bytes."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    found = error.object[error.start : error.end]
    return b"".join(map(_encode, found)), error.end


def _encode(character: str) -> bytes:
    if "\udc80" <= character <= "\udcff":  # a byte that was no text, as `surrogateescape` keeps it
        return bytes([ord(character) - 0xDC00])
    return _escape(character).encode("ascii")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


codecs.register_error(ANY_ENCODING, replace_unprintable)
