"""Edits of spans of a text: checking, applying and composing them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from porter.core.errors import Place, PorterError


@dataclass(frozen=True)
class Edit:
    """Replaces `start` to `end` of `file`, character offsets into the text from `Checkout.read`, with `text`."""

    file: str
    start: int
    end: int
    text: str


def line_of(text: str, offset: int) -> int:
    """The line, from 1, that holds a character offset."""
    return bisect_right(find_line_ends(text), offset - 1) + 1


@lru_cache(maxsize=64)
def find_line_ends(text: str) -> tuple[int, ...]:
    """Where lines end, found once: whoever asks for one line of a file asks for many."""
    return tuple([match.start() for match in re.finditer("\n", text)])


def find_next_line(text: str, offset: int) -> int:
    """Where the line after that of an offset starts; the end of the text if there is none."""
    end = text.find("\n", offset)
    return end + 1 if end >= 0 else len(text)


def check(file: str, text: str, edits: list[Edit]) -> None:
    """Raises PTR050 for edits that overlap, and PTR051 for edits outside the file."""
    for edit in edits:
        if not 0 <= edit.start <= edit.end <= len(text):
            raise PorterError("PTR051", f"the edit of {edit.start} to {edit.end} is outside the file", Place(file))
    for one, two in pairwise(edits):
        if two.start < one.end:
            raise PorterError("PTR050", "two edits change the same text", Place(file, line_of(text, two.start)))


def splice(text: str, edits: list[Edit]) -> str:
    """Returns the text with the edits applied. They have to be sorted by their start."""
    return replace_spans(text, ((edit.start, edit.end, edit.text) for edit in edits))


def replace_spans(text: str, replacements: Iterable[tuple[int, int, str]]) -> str:
    """Returns the text with others in the place of spans, each with its start and end. They have to be sorted."""
    parts, at = list[str](), 0
    for start, end, replacement in replacements:
        parts += [text[at:start], replacement]
        at = end
    return "".join((*parts, text[at:]))


# A span of the base, as its start and end, or new text.
_Piece = tuple[int, int] | str


def compose(file: str, text: str, first: list[Edit], second: list[Edit]) -> Iterator[Edit]:
    """Returns the edits of `text` that do what `first` and then `second`, which edits the result of `first`, do."""
    at, new = 0, ""
    for piece in _replace(list(_cut(len(text), first)), second):
        if isinstance(piece, str):
            new += piece
            continue
        start, end = piece
        if text[at:start] != new:
            yield Edit(file, at, start, new)
        at, new = end, ""
    if text[at:] != new:
        yield Edit(file, at, len(text), new)


def _cut(length: int, edits: list[Edit]) -> Iterator[_Piece]:
    """Yields the pieces of a base of some length after its edits."""
    at = 0
    for edit in edits:
        if at < edit.start:
            yield at, edit.start
        yield edit.text
        at = edit.end
    if at < length:
        yield at, length


def _replace(pieces: list[_Piece], edits: list[Edit]) -> list[_Piece]:
    """Returns the pieces after edits of the text they form."""
    made: list[_Piece] = []
    at = 0
    for edit in edits:
        made += [*_slice(pieces, at, edit.start), edit.text]
        at = edit.end
    return [*made, *_slice(pieces, at, None)]


def _slice(pieces: list[_Piece], start: int, end: int | None) -> Iterator[_Piece]:
    """Returns the parts of pieces between two offsets of the text they form, or to its end if `end` is None."""
    at = 0
    for piece in pieces:
        length = len(piece) if isinstance(piece, str) else piece[1] - piece[0]
        low, high = max(start - at, 0), length if end is None else min(end - at, length)
        if low < high:
            yield piece[low:high] if isinstance(piece, str) else (piece[0] + low, piece[0] + high)
        at += length


def common_start(one: str, other: str) -> int:
    """How many characters two texts share at their start."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_end(one: str, other: str, start: int) -> int:
    """How many characters two texts share at their end, behind those of their common start."""
    low, high = 0, min(len(one), len(other)) - start
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low
