"""Finds bracket pairs in C++ text without lexing it. Brackets in comments, strings and characters do not count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from porter.core.errors import Place, PorterError
from porter.languages.cpp import TooDeep
from porter.languages.lexer import QUOTED

ROUND, ALL = "()", "()[]{}"
ANGLES = "<>"


@lru_cache(maxsize=16)
def _marks(characters: str) -> re.Pattern[str]:
    return re.compile("|".join((QUOTED, *map(re.escape, characters))), re.S)


def _depths(text: str, pairs: str, start: int = 0, others: str = "") -> Iterator[tuple[int, str, int]]:
    """Yields each character of `pairs` and `others`: its offset, itself, and the depth after it."""
    opening, depth = pairs[::2], 0
    for match in _marks(pairs + others).finditer(text, start):
        mark = match[0]
        if len(mark) == 1:
            if mark in pairs:
                depth += 1 if mark in opening else -1
            yield match.start(), mark, depth


def find_closing_end(text: str, opener: int, pairs: str = ALL) -> int:
    """Returns the offset after the bracket that closes the one at `opener`, or the end of the text."""
    return next((at + 1 for at, _, depth in _depths(text, pairs, opener) if depth <= 0), len(text))


def is_balanced(text: str, pairs: str = ROUND) -> bool:
    """Whether every bracket in a text has its partner in the text."""
    depths = [depth for _, _, depth in _depths(text, pairs)]
    return not depths or (min(depths) >= 0 and depths[-1] == 0)


def strip_parentheses(text: str) -> str:
    """Returns a text without the parentheses around all of it."""
    inner = text[1:-1]
    return strip_parentheses(inner) if text.startswith("(") and text.endswith(")") and is_balanced(inner) else text


def has_outside(text: str, character: str) -> bool:
    """Whether a character occurs outside of all brackets."""
    return any(mark == character and depth == 0 for _, mark, depth in _depths(text, ALL, others=character))


def split_at_commas(text: str, pairs: str = ALL) -> list[str]:
    """Splits a text at the commas outside of all brackets and strips the parts. An empty text has no parts."""
    parts, start = list[str](), 0
    for at, mark, depth in _depths(text, pairs, others=","):
        if mark == "," and depth <= 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if parts or last else []


# Of nested statements and expressions while parsing, and of nodes below each other in a tree.
DEEPEST = 80
DEEPEST_TREE = 150
_LEAVES = frozenset({str, int, bool, type(None)})  # what has no parts: a subclass of these takes only more time


def too_deep(place: Place) -> PorterError:
    """PTR034."""
    return PorterError("PTR034", "this is nested too deeply to read", place, "Split it into smaller statements.")


@contextmanager
def bounded(place: Place) -> Iterator[None]:
    """Gives what a reader of many nested functions can run into, the end of the stack, its code (PTR034)."""
    try:
        yield
    except RecursionError as error:
        raise too_deep(place) from error


def check_depth(tree: Any, start: int) -> None:
    """Raises TooDeep for a tree that is too deep to walk: a chain of operators is read in a loop, but nests too."""
    pending: list[tuple[Any, int]] = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        if depth > DEEPEST_TREE:
            raise TooDeep(getattr(node, "start", start))
        if isinstance(node, tuple):
            pending += [(each, depth) for each in node if type(each) not in _LEAVES]
        elif hasattr(node, "__dict__"):
            pending += [(each, depth + 1) for each in vars(node).values() if type(each) not in _LEAVES]
