"""Edits of spans of one text: checked, put in place, and composed with edits of what they leave."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from porter.core.errors import Place, PorterError


@dataclass(frozen=True)
class Edit:
    """Replaces `start` to `end` (character offsets into the text `Checkout.read` gives) of `file` by `text`."""

    file: str
    start: int
    end: int
    text: str


def line_of(text: str, offset: int) -> int:
    """The line, from 1, that holds a character offset."""
    return bisect_right(_line_ends(text), offset - 1) + 1


@lru_cache(maxsize=64)
def _line_ends(text: str) -> tuple[int, ...]:
    """Found once: whoever asks for one line of a file asks for many."""
    return tuple(match.start() for match in re.finditer("\n", text))


def check(file: str, text: str, edits: list[Edit]) -> None:
    """Refuses edits that overlap (PTR050) or leave the file (PTR051)."""
    for edit in edits:
        if not 0 <= edit.start <= edit.end <= len(text):
            raise PorterError("PTR051", f"the edit of {edit.start} to {edit.end} is outside the file", Place(file))
    for one, two in pairwise(edits):
        if two.start < one.end:
            raise PorterError("PTR050", "two edits change the same text", Place(file, line_of(text, two.start)))


def splice(text: str, edits: list[Edit]) -> str:
    """The text with the edits, sorted by where they start, in place."""
    parts, at = [], 0
    for edit in edits:
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, text[at:]])


# A stretch of the base, as its start and end, or new text.
_Piece = tuple[int, int] | str


def compose(file: str, text: str, first: list[Edit], second: list[Edit]) -> Iterator[Edit]:
    """The edits of `text` that do what `first` and then `second` (of the text that `first` leaves) do."""
    at, new = 0, ""
    for piece in _replace(_replace([(0, len(text))], first), second):
        if isinstance(piece, str):
            new += piece
            continue
        start, end = piece
        if text[at:start] != new:
            yield Edit(file, at, start, new)
        at, new = end, ""
    if text[at:] != new:
        yield Edit(file, at, len(text), new)


def _replace(pieces: list[_Piece], edits: list[Edit]) -> list[_Piece]:
    """The pieces with spans of the text that they make up replaced."""
    made: list[_Piece] = []
    at = 0
    for edit in edits:
        made += [*_slice(pieces, at, edit.start), edit.text]
        at = edit.end
    return [*made, *_slice(pieces, at, None)]


def _slice(pieces: list[_Piece], start: int, end: int | None) -> Iterator[_Piece]:
    """The parts of pieces between two offsets of the text that they make up, to its end where `end` is None."""
    at = 0
    for piece in pieces:
        length = len(piece) if isinstance(piece, str) else piece[1] - piece[0]
        low, high = max(start - at, 0), length if end is None else min(end - at, length)
        if low < high:
            yield piece[low:high] if isinstance(piece, str) else (piece[0] + low, piece[0] + high)
        at += length
