"""The statements of a function's body, the conditions around each, and which values vary with the thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from aten_overlay.metal.source.lexer import Source
from aten_overlay.metal.source.syntax import top_level

_HEADED = frozenset(("if", "for", "while", "switch"))
_COMPOUND = frozenset("+-*/%&|^")
LOOPS = frozenset(("for", "while", "do"))


@dataclass(frozen=True)
class Header:
    """The condition of an `if`, loop or `switch`: tokens [start, end), and [start, body_end) with what it governs."""

    word: str
    start: int
    end: int
    body_end: int


@dataclass(frozen=True)
class Statement:
    """Tokens [start, end) of a statement without others in it, or of a header; `inside` are the headers around it."""

    start: int
    end: int
    inside: tuple[Header, ...]


@dataclass(frozen=True)
class Assignment:
    """`tokens[name] = tokens[start:end]`; `indexed` where the target has a subscript or a star before it."""

    name: int
    indexed: bool
    start: int
    end: int


def statements(source: Source, i: int, end: int, inside: tuple[Header, ...] = ()) -> Iterator[Statement]:
    """The statements in tokens [i, end), in order."""
    tokens = source.tokens
    while i < end:
        if tokens[i] == "{":
            yield from statements(source, i + 1, source.match[i], inside)
            i = source.match[i] + 1
        elif tokens[i] == "else":
            i += 1
        elif tokens[i] in _HEADED or tokens[i] == "do":
            header = _header(source, i, end)
            if header.end > header.start:
                yield Statement(header.start, header.end, inside)
            branches = _branches(source, i, end)
            for start, stop in branches:
                yield from statements(source, start, stop, (*inside, header))
            i = branches[-1][1]
        else:
            stop = _simple_end(source, i, end)
            if stop - i > 1:
                yield Statement(i, stop - 1, inside)
            i = stop


def _opening(source: Source, i: int) -> int:
    """The `(` of a header at token i."""
    return i + 2 if source.tokens[i + 1] == "constexpr" else i + 1


def _header(source: Source, i: int, end: int) -> Header:
    if source.tokens[i] == "do":
        return Header("do", i + 1, i + 1, _end(source, i + 1, end))
    opening = _opening(source, i)
    return Header(source.tokens[i], opening + 1, source.match[opening], _branches(source, i, end)[-1][1])


def _branches(source: Source, i: int, end: int) -> list[tuple[int, int]]:
    """What an `if`, loop or `switch` at token i governs: its statement, and that of its `else`."""
    start = i + 1 if source.tokens[i] == "do" else source.match[_opening(source, i)] + 1
    stop = _end(source, start, end)
    branches = [(start, stop)]
    if source.tokens[i] == "if" and stop < end and source.tokens[stop] == "else":
        branches.append((stop + 1, _end(source, stop + 1, end)))
    return branches


def _end(source: Source, i: int, end: int) -> int:
    """Where the statement at token i ends."""
    if i >= end:
        return end
    if source.tokens[i] == "{":
        return source.match[i] + 1
    return _branches(source, i, end)[-1][1] if source.tokens[i] in _HEADED else _simple_end(source, i, end)


def _simple_end(source: Source, i: int, end: int) -> int:
    return next((j + 1 for j in top_level(source, i, end) if source.tokens[j] == ";"), end)


def assignments(source: Source, start: int, end: int) -> Iterator[Assignment]:
    """The assignments and initializers of a statement, or of a loop's header."""
    tokens, first = source.tokens, start
    marks = [j for j in top_level(source, start, end) if tokens[j] in (",", ";", "=")]
    for position, at in enumerate(marks):
        if tokens[at] != "=":
            first = at + 1
            continue
        stop = next((j for j in marks[position + 1 :] if tokens[j] != "="), end)
        name = at - 2 if tokens[at - 1] in _COMPOUND else at - 1
        indexed = False
        while tokens[name] == "]":
            name, indexed = source.match[name] - 1, True
        if name >= first and source.kinds[name] == "name":
            yield Assignment(name, indexed or tokens[first] == "*", at + 1, stop)


def mentions(source: Source, start: int, end: int, names: Iterable[str]) -> bool:
    """Whether tokens [start, end) name one of `names`, not as a member of something."""
    wanted = frozenset(names)
    return any(source.tokens[i] in wanted and source.tokens[i - 1] not in (".", "->") for i in range(start, end))
