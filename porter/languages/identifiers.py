"""Finds identifiers in text by plain search, which is far faster than a regular expression."""

from __future__ import annotations


def contains_identifier(text: str, name: str) -> bool:
    """Whether an identifier stands in a text as a whole word; one that is empty stands nowhere."""
    if not name:
        return False
    at = text.find(name)
    while at >= 0:
        end = at + len(name)
        if not (at and _in_word(text[at - 1])) and not (end < len(text) and _in_word(text[end])):
            return True
        at = text.find(name, end)
    return False


def _in_word(character: str) -> bool:
    return character == "_" or character.isalnum()
