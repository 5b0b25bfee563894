"""The `#define`s and `#include`s of a C++ or Objective-C++ file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from porter.languages.lexer import Token, TokenKind, directives, lex

_DEFINE = re.compile(r"#\s*define\s+(\w+)(?:\(([^)]*)\))?\s*(.*)", re.S)
_INCLUDE = re.compile(r'#\s*(?:include|import)\s*[<"]([^>"]+)[>"]')
# What few files have: comments over lines or in front of a `#`, raw strings, and other spaces before a `#`.
_HIDING = tuple(
    re.compile(each)
    for each in (r"/\*(?!.*\*/)", r"\*/[\s\ufeff]*#", r'R"', r"\\\r?\n[\s\ufeff]*#", r"[^\S \t\n][\s\ufeff]*#")
)
_CONDITION = re.compile(r"#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", re.S)
_CONTINUATION = re.compile(r"\\\r?\n")


@dataclass(frozen=True)
class Macro:
    """A `#define`, equal to one elsewhere. `params` is None for an object-like one; `body` has no continued lines."""

    name: str
    params: tuple[str, ...] | None
    body: str
    start: int = field(compare=False)
    end: int = field(compare=False)


@dataclass(frozen=True)
class Include:
    """`#include <path>`."""

    path: str
    start: int
    end: int


def parse_macro(directive: Token) -> Macro | None:
    """Returns the macro that a directive defines, or None."""
    match = _DEFINE.match(directive.text)
    if match is None:
        return None
    listed = None if match[2] is None else _CONTINUATION.sub(" ", match[2]).split(",")
    params = None if listed is None else tuple(p.strip() for p in listed if p.strip())
    return Macro(match[1], params, _CONTINUATION.sub("\n", match[3]).strip(), directive.start, directive.end)


def parse_condition(directive: Token) -> tuple[str, str] | None:
    """The word of a directive that chooses what is compiled (`if`, `else`), and what follows it; None of another."""
    match = _CONDITION.match(directive.text)
    return (match[1], match[2]) if match else None


@lru_cache(maxsize=64)
def read_macros(text: str) -> tuple[Macro, ...]:
    """Every `#define` of a file, which is lexed only if a `#` that starts a line may be no directive."""
    return tuple(filter(None, map(parse_macro, _list_directives(text))))


@lru_cache(maxsize=64)
def read_includes(text: str) -> tuple[Include, ...]:
    """Every `#include` and `#import` of a file, which is lexed only as for macros."""
    return tuple(find_includes(_list_directives(text)))


def find_includes(found: Iterable[Token]) -> Iterator[Include]:
    """The includes among some directives."""
    for token in found:
        if match := _INCLUDE.match(token.text):
            yield Include(match[1], token.start, token.end)


def _list_directives(text: str) -> Iterator[Token]:
    hidden = any(pattern.search(text) for pattern in _HIDING)
    return (token for token in (lex(text) if hidden else directives(text)) if token.kind is TokenKind.DIRECTIVE)
