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


_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>//(?:[^\n\\]|\\\r?\n|\\.)*|/\*.*?\*/)
  | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)")
  | (?P<string>(?:@|u8|[uUL])?"(?:[^"\\\n]|\\.)*")
  | (?P<character>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
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
_DIRECTIVE = re.compile(r"#(?:[^\n\\/]|\\\r?\n|\\.|/\*.*?\*/|/(?![*/]))*", re.S)


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


def _directive_end(text: str, start: int) -> int:
    match = _DIRECTIVE.match(text, start)
    assert match is not None
    return match.end()
