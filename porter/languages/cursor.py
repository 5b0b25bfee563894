"""A position in the tokens of C++ text, with helpers for brackets and types."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from porter.languages.cpp import ParseError
from porter.languages.lexer import CLOSERS, Token
from porter.languages.source import Source

DEPTHS = {"(": 1, "[": 1, "{": 1, "<": 1, ")": -1, "]": -1, "}": -1, ">": -1, ">>": -2}
QUALIFIERS = frozenset(("const", "constexpr", "static", "typename", "inline", "volatile"))


class Cursor:
    """The code tokens of a text; `at` is the index of the next one."""

    def __init__(self, path: str, text: str) -> None:
        self.text = text
        self.tokens: Sequence[Token] = [t for t in Source.parse(path, text).code if not t.text.startswith("#")]
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        """Returns the text of a token ahead, or "" after the last one."""
        at = self.at + ahead
        return self.tokens[at].text if at < len(self.tokens) else ""

    def take(self, expected: str = "") -> Token:
        """Consumes the next token, which has to be `expected`, if given. Raises ParseError."""
        if self.at >= len(self.tokens) or (expected and self.tokens[self.at].text != expected):
            raise ParseError
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, text: str) -> bool:
        """Consumes the next token if it is `text`, and returns whether it was."""
        if self.peek() != text:
            return False
        self.at += 1
        return True

    @property
    def start(self) -> int:
        return self.tokens[self.at].start if self.at < len(self.tokens) else len(self.text)

    def partner(self, opener: int) -> int:
        """The token behind the bracket that closes the one at `opener`."""
        behind = self._behind.get(opener)
        if behind is None:
            raise ParseError
        return behind

    @cached_property
    def _behind(self) -> dict[int, int]:
        """For each bracket that opens, the token behind the next one that closes at its depth, of whatever kind."""
        found: dict[int, int] = {}
        opened: list[int] = []
        for at, token in enumerate(self.tokens):
            if token.text in CLOSERS:
                opened.append(at)
            elif token.text in CLOSERS.values() and opened:
                found[opened.pop()] = at + 1
        return found

    def spell_type(self, begin: int, end: int) -> str:
        """Returns the canonical spelling of a type, without qualifiers."""
        texts = [t.text for t in self.tokens[begin:end] if t.text not in QUALIFIERS]
        text = ""
        for token in texts:
            gap = text and is_word(text[-1]) and is_word(token[0])
            text += f" {token}" if gap else token
        return text

    def before_angles(self, at: int) -> int:
        """Returns the index of the name before template arguments that end at a token, else that of the token."""
        depth = 0
        while at > 0:
            depth -= DEPTHS.get(self.tokens[at].text, 0)
            if depth == 0:
                return at if self.tokens[at].text != "<" else at - 1
            at -= 1
        raise ParseError


def is_word(text: str) -> bool:
    """Whether a token is an identifier or keyword."""
    return text.isidentifier()
