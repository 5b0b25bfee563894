"""Finds C++ by patterns, which are C++ with holes: spaces, line breaks and comments between tokens do not matter.

`$name` is one identifier or number, `$$name` any tokens, with brackets in pairs and no semicolon outside of them. A
hole that is there twice is the same both times. A name without a namespace is found in one, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from porter.languages.lexer import Token, TokenKind
from porter.languages.source import Source

_ONE, _MANY = "$", "$$"
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True)
class Found:
    """Where a text has a pattern, and what is in its holes."""

    start: int
    end: int
    holes: Mapping[str, str]

    def __getitem__(self, name: str) -> str:
        return self.holes[name]


def find_code(text: str, *patterns: str) -> Iterator[Found]:
    """Yields the places of a text that have one of some patterns; those of each in order, none within another."""
    for pattern in patterns:
        if _find_word(pattern) not in text:
            continue
        code, wanted, at = _lex(text), _read(pattern), 0
        while at < len(code):
            holes: dict[str, str] = {}
            end = _match(text, code, at, wanted, holes)
            if end:
                yield Found(code[at].start, code[end - 1].end, holes)
            at = max(end, at + 1)


def match_code(text: str, *patterns: str) -> Found | None:
    """What is in the holes of the first pattern that all of a text has; None if it has none."""
    code = _lex(text)
    for pattern in patterns if code else ():
        holes = dict[str, str]()
        if _match(text, code, 0, (*_read(pattern), ""), holes):
            return Found(code[0].start, code[-1].end, holes)
    return None


def has_code(text: str, *patterns: str) -> bool:
    """Whether a text has one of some patterns somewhere."""
    return next(find_code(text, *patterns), None) is not None


def replace_code(text: str, replacement: str, *patterns: str) -> str:
    """A text with another in the place of what has a pattern; with what is empty, spaces behind that go, too."""
    for pattern in patterns:
        parts, last = list[str](), 0
        for place in find_code(text, pattern):
            parts += [text[last : place.start], replacement]
            last = place.end if replacement else len(text) - len(text[place.end :].lstrip())
        text = "".join((*parts, text[last:]))
    return text


@lru_cache(maxsize=256)
def _lex(text: str) -> tuple[Token, ...]:
    return Source.parse("", text).code


@lru_cache(maxsize=1024)
def _read(pattern: str) -> tuple[str, ...]:
    return tuple(token.text for token in _lex(pattern))


@lru_cache(maxsize=1024)
def _find_word(pattern: str) -> str:
    """A word without which no text has a pattern."""
    return max((each for each in _read(pattern) if not each.startswith(_ONE)), key=len, default="")


def _match(text: str, code: tuple[Token, ...], at: int, wanted: tuple[str, ...], holes: dict[str, str]) -> int:
    """The token after what matches a pattern, which is 0 if nothing does; an empty one is the end of the text."""
    for place, one in enumerate(wanted):
        if one.startswith(_MANY):
            return _match_many(text, code, at, wanted[place:], holes)
        if not one or at >= len(code):
            return at if not one and at == len(code) else 0
        token = code[at]
        if one.startswith(_ONE):
            is_word = token.kind in (TokenKind.IDENTIFIER, TokenKind.NUMBER)
            if not is_word or holes.setdefault(one.removeprefix(_ONE), token.text) != token.text:
                return 0
        else:
            while token.text != one and at + 2 < len(code) and code[at + 1].text == "::" and one.isidentifier():
                at += 2
                token = code[at]
            if token.text != one:
                return 0
        at += 1
    return at


def _match_many(text: str, code: tuple[Token, ...], at: int, wanted: tuple[str, ...], holes: dict[str, str]) -> int:
    """The same where a pattern begins with a hole for any tokens: the fewest that what follows it matches behind."""
    (hole, *_), begin, depth = wanted, at, 0
    while True:
        filled = text[code[begin].start : code[at - 1].end] if at > begin else ""
        tried = {**holes, hole.removeprefix(_MANY): filled}
        is_same = holes.get(hole.removeprefix(_MANY), filled) == filled
        if depth == 0 and is_same and (end := _match(text, code, at, wanted[1:], tried)):
            holes.update(tried)
            return end
        if at >= len(code) or (depth == 0 and code[at].text == ";"):
            return 0
        depth += (code[at].text in _OPENING) - (code[at].text in _CLOSING)
        if depth < 0:
            return 0
        at += 1
