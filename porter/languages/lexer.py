"""Splits C++ and Objective-C++ text into tokens that cover all of it.

The preprocessor is not run: a directive is one token, so the result is the same on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

CLOSERS = {"(": ")", "[": "]", "{": "}"}


class TokenKind(Enum):
    """The kind of a token. SPACE, COMMENT and DIRECTIVE are not code."""

    SPACE = "space"
    COMMENT = "comment"
    DIRECTIVE = "directive"
    IDENTIFIER = "identifier"
    NUMBER = "number"
    STRING = "string"
    CHARACTER = "character"
    PUNCTUATION = "punctuation"

    __hash__ = object.__hash__  # that of Enum is Python code, and every token of a file is looked up


class Token(NamedTuple):
    """A token with its text, at the character offsets `start` to `end` of the file."""

    kind: TokenKind
    text: str
    start: int
    end: int


_new = tuple.__new__  # what `Token` calls: a file has tens of thousands

# What is never closed goes on to the end of the text: a search for its end that fails would be made again and again.
_COMMENT_TEXT = r"//(?:[^\n\\]|\\\r?\n|\\.)*|/\*.*?(?:\*/|\Z)"
_RAW_STRING = r'(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z)'
_STRING = r'(?:@|u8|[uUL])?"(?:[^"\\\n]|\\.)*"'
_CHARACTER = r"(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+'"
# What a search for punctuation has to skip (with `re.S`). A quote between digits does not start a character. Each
# begins with a character of its own, without the prefix that it may have: `re` skips all others at once.
QUOTED = "|".join(
    (
        _COMMENT_TEXT,
        r'R"(?P<delimiter>[^()\\\s]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z)',
        r'"(?:[^"\\\n]|\\.)*"',
        r"'(?:(?<!u8')(?<=\d')(?=\d)|(?:[^'\\\n]|\\.)+')",
    )
)
# Most tokens are tried first: spaces, words that are no prefix of a string, and marks that are punctuation alone.
_TOKEN = re.compile(
    rf"""
    (?P<space>[\s\ufeff]+)
  | (?P<identifier>[A-Za-z_$\u0080-\U0010ffff][\w$]*)(?![\w$"'])
  | (?P<mark>[][(){{}};,~?])
  | (?P<comment>{_COMMENT_TEXT})
  | (?P<raw>{_RAW_STRING})
  | (?P<string>{_STRING})
  | (?P<character>{_CHARACTER})
  | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
  | (?P<prefix>[A-Za-z_$\u0080-\U0010ffff][\w$]*)
  | (?P<punctuation>::|->|\#\#|<<|>>|&&|\|\||[-+*/%&|^!=<>]=|\+\+|--|\.\.\.|.)
    """,
    re.X | re.S,
)
_KINDS: dict[str | None, TokenKind] = {
    "space": TokenKind.SPACE,
    "identifier": TokenKind.IDENTIFIER,
    "mark": TokenKind.PUNCTUATION,
    "comment": TokenKind.COMMENT,
    "raw": TokenKind.STRING,
    "delimiter": TokenKind.STRING,
    "string": TokenKind.STRING,
    "character": TokenKind.CHARACTER,
    "number": TokenKind.NUMBER,
    "prefix": TokenKind.IDENTIFIER,
    "punctuation": TokenKind.PUNCTUATION,
}
_SPACE, _COMMENT = TokenKind.SPACE, TokenKind.COMMENT
_LINE = re.compile(r"^[ \t\ufeff]*#", re.M)
_DIRECTIVE = re.compile(r"#(?:[^\n\\/]|\\\r?\n|\\.|/\*.*?(?:\*/|\Z)|/(?![*/]))*", re.S)


def lex(text: str, directives: bool = True, at: int = 0) -> Iterator[Token]:
    """Returns the tokens that cover a text, from an offset. A character unknown to C++ becomes punctuation.

    In the body of a macro, where `#` at the start of a line is an operator, `directives` has to be off.
    """
    line_start = directives
    while at < len(text):
        for match in _TOKEN.finditer(text, at):
            start, at = match.span()
            kind, written = _KINDS[match.lastgroup], match[0]
            if line_start and written == "#":
                at = _directive_end(text, start)
                yield Token(TokenKind.DIRECTIVE, text[start:at], start, at)
                line_start = False
                break
            yield _new(Token, (kind, written, start, at))
            if kind is _SPACE:
                line_start = directives and (line_start or "\n" in written)
            elif kind is not _COMMENT:
                line_start = False


def strip_comments(text: str) -> str:
    """The text without its comments."""
    parts = []
    for token in lex(text):
        if token.kind is TokenKind.DIRECTIVE:
            parts.append(f"#{strip_comments(token.text[1:])}")
        elif token.kind is not TokenKind.COMMENT:
            parts.append(token.text)
    return "".join(parts)


def directives(text: str) -> Iterator[Token]:
    """Returns the directives of a text, without lexing the text between them."""
    at = 0
    while match := _LINE.search(text, at):
        start, at = match.end() - 1, _directive_end(text, match.end() - 1)
        yield Token(TokenKind.DIRECTIVE, text[start:at], start, at)


def _directive_end(text: str, start: int) -> int:
    match = _DIRECTIVE.match(text, start)
    assert match is not None
    return match.end()
