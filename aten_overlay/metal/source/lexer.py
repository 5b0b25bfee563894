"""Tokens of preprocessed Metal source, with the source location of each and its matching bracket."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from aten_overlay.errors import OverlayError, Place

_TOKEN = re.compile(
    r"""(?P<marker>^[ \t]*\#[^\n]*)
      | (?P<name>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|[\w.'])*)
      | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
      | (?P<character>'(?:[^'\\\n]|\\.)+')
      | (?P<punctuation>->|::|<=|>=|==|!=|&&|\|\||\S)""",
    re.VERBOSE | re.MULTILINE,
)
_LINE = re.compile(r'^[ \t]*#(?:line)?[ \t]*(\d+)[ \t]+"((?:[^"\\]|\\.)*)"', re.MULTILINE)
_CLOSING = {"(": ")", "[": "]", "{": "}"}

_ENDS_ANGLES = frozenset((";", "{", "}", ")", "]"))


@dataclass(frozen=True)
class Source:
    """Preprocessed text cut into tokens. `starts[i]`, `ends[i]` delimit token i in `text`; `match[i]` is the index of
    its matching bracket, or -1. Line markers and other directives are not tokens."""

    text: str
    kinds: list[str]
    tokens: list[str]
    starts: list[int]
    ends: list[int]
    match: list[int]

    def place(self, index: int) -> Place:
        """The file and line that token `index` came from, by the line markers before it."""
        offset = self.starts[min(index, len(self.starts) - 1)] if self.starts else 0
        positions, markers = self._markers
        found = bisect_right(positions, offset) - 1
        if found < 0:
            return Place("<source>", self.text.count("\n", 0, offset) + 1)
        file, line, after = markers[found]
        return Place(file, line + self.text.count("\n", after, offset))

    @cached_property
    def angles(self) -> dict[int, int]:
        """For each `<` that was asked for, the index after its `>`; see `skip_angles`."""
        return {}

    @cached_property
    def _markers(self) -> tuple[list[int], list[tuple[str, int, int]]]:
        positions, markers = [], []
        for m in _LINE.finditer(self.text):
            positions.append(m.start())
            after = self.text.find("\n", m.end()) + 1
            markers.append((m.group(2), int(m.group(1)), after))
        return positions, markers

    def joined(self, start: int, end: int) -> str:
        """Tokens [start, end) with one space between."""
        return " ".join(self.tokens[start:end])


def read(text: str) -> Source:
    """Cuts `text` into tokens. Raises PTR103 for brackets that do not match."""
    kinds: list[str] = []
    tokens: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for m in _TOKEN.finditer(text):
        kind = m.lastgroup or ""
        if kind == "marker":
            continue
        kinds.append(kind)
        tokens.append(m.group())
        starts.append(m.start())
        ends.append(m.end())
    source = Source(text, kinds, tokens, starts, ends, [-1] * len(tokens))
    _match_brackets(source)
    return source


def _match_brackets(source: Source) -> None:
    open_at: list[int] = []
    for i, token in enumerate(source.tokens):
        if token in _CLOSING:
            open_at.append(i)
        elif token in (")", "]", "}"):
            if not open_at or _CLOSING[source.tokens[open_at[-1]]] != token:
                raise OverlayError("PTR103", f"unmatched `{token}`", source.place(i), "Balance the brackets.")
            start = open_at.pop()
            source.match[start], source.match[i] = i, start
    if open_at:
        at = open_at[-1]
        raise OverlayError(
            "PTR103", f"this `{source.tokens[at]}` is never closed", source.place(at), "Balance the brackets."
        )


def skip_angles(source: Source, start: int, end: int) -> int:
    """The index after the `>` that matches the `<` at `start`, or `start` when none does before `end`."""
    if start not in source.angles:
        _match_angles(source, start)
    return source.angles[start] if source.angles[start] <= end else start


def _match_angles(source: Source, start: int) -> None:
    """Notes where the `<` at `start` and those after it end, so that each is searched once.

    One that a statement, a body or a bracket around it ends before its `>` is a comparison, and maps to itself.
    """
    opened, i = [start], start + 1
    while opened and i < len(source.tokens):
        token = source.tokens[i]
        known = source.angles.get(i)
        if token == ">":
            source.angles[opened.pop()] = i + 1
        elif token in _ENDS_ANGLES or known == i:
            break
        elif token == "<" and known is None:
            opened.append(i)
        i = known or (source.match[i] + 1 if token in ("(", "[") else i + 1)
    source.angles.update((each, each) for each in opened)


def is_attribute(source: Source, i: int) -> bool:
    """Whether `[[` starts at token i."""
    return (
        source.tokens[i] == "["
        and i + 1 < len(source.tokens)
        and source.tokens[i + 1] == "["
        and (source.match[i + 1] + 1 == source.match[i])
    )
