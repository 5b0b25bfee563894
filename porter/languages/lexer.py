"""C++ and Objective-C++ text as tokens that tile it.

The preprocessor is not run: a directive is one token, so a file reads the same on every machine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple


class TokenKind(Enum):
    """What a token is; SPACE, COMMENT and DIRECTIVE are no code."""

    SPACE = "space"
    COMMENT = "comment"
    DIRECTIVE = "directive"
    IDENTIFIER = "identifier"
    NUMBER = "number"
    STRING = "string"
    CHARACTER = "character"
    PUNCTUATION = "punctuation"


class Token(NamedTuple):
    """`text` stands at `start` to `end`, character offsets into the file."""

    kind: TokenKind
    text: str
    start: int
    end: int


# What is never closed goes on to the end of the text: a search for its end that fails would be made again and again.
_COMMENT_TEXT = r"//(?:[^\n\\]|\\\r?\n|\\.)*|/\*.*?(?:\*/|\Z)"
_RAW_STRING = r'(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?(?:\)(?P=delimiter)"|\Z)'
_STRING = r'(?:@|u8|[uUL])?"(?:[^"\\\n]|\\.)*"'
_CHARACTER = r"(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+'"
# What a search for punctuation has to skip (with `re.S`); the quote between a number's digits begins nothing.
QUOTED = rf"{_COMMENT_TEXT}|{_RAW_STRING}|{_STRING}|(?<=\d)'(?=\d)|{_CHARACTER}"
_TOKEN = re.compile(
    rf"""
    (?P<space>[\s\ufeff]+)
  | (?P<comment>{_COMMENT_TEXT})
  | (?P<raw>{_RAW_STRING})
  | (?P<string>{_STRING})
  | (?P<character>{_CHARACTER})
  | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\w)|[\w.])*)
  | (?P<identifier>[A-Za-z_$\u0080-\U0010ffff][\w$]*)
  | (?P<punctuation>::|->|\#\#|<<|>>|&&|\|\||[-+*/%&|^!=<>]=|\+\+|--|\.\.\.|.)
    """,
    re.X | re.S,
)
_KINDS: dict[str | None, TokenKind] = {
    "space": TokenKind.SPACE,
    "comment": TokenKind.COMMENT,
    "raw": TokenKind.STRING,
    "delimiter": TokenKind.STRING,
    "string": TokenKind.STRING,
    "character": TokenKind.CHARACTER,
    "number": TokenKind.NUMBER,
    "identifier": TokenKind.IDENTIFIER,
    "punctuation": TokenKind.PUNCTUATION,
}
_SPACE, _COMMENT = TokenKind.SPACE, TokenKind.COMMENT
_LINE = re.compile(r"^[ \t\ufeff]*#", re.M)
_DIRECTIVE = re.compile(r"#(?:[^\n\\/]|\\\r?\n|\\.|/\*.*?(?:\*/|\Z)|/(?![*/]))*", re.S)


def lex(text: str, directives: bool = True) -> Iterator[Token]:
    """The tokens of a text; they tile it. A character that starts no token of C++ is punctuation, never an error.

    In the body of a macro a `#` at the start of a line is the operator: `directives` is off there.
    """
    at, line_start = 0, directives
    while at < len(text):
        for match in _TOKEN.finditer(text, at):
            start, at = match.span()
            kind, written = _KINDS[match.lastgroup], match[0]
            if line_start and written == "#":
                at = _directive_end(text, start)
                yield Token(TokenKind.DIRECTIVE, text[start:at], start, at)
                line_start = False
                break
            yield Token(kind, written, start, at)
            if kind is _SPACE:
                line_start = directives and (line_start or "\n" in written)
            elif kind is not _COMMENT:
                line_start = False


def directives(text: str) -> Iterator[Token]:
    """The lines of a text that look like directives, without lexing what stands between them."""
    at = 0
    while match := _LINE.search(text, at):
        start, at = match.end() - 1, _directive_end(text, match.end() - 1)
        yield Token(TokenKind.DIRECTIVE, text[start:at], start, at)


def _directive_end(text: str, start: int) -> int:
    match = _DIRECTIVE.match(text, start)
    assert match is not None
    return match.end()
