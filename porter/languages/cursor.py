"""A place among the tokens of a stretch of C++, and the few questions about brackets and types that parsing asks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from porter.languages.cpp import Unparsed
from porter.languages.lexer import Token
from porter.languages.source import Source

_CLOSERS = {"(": ")", "[": "]", "{": "}"}
DEPTHS = {"(": 1, "[": 1, "{": 1, "<": 1, ")": -1, "]": -1, "}": -1, ">": -1, ">>": -2}
QUALIFIERS = frozenset(("const", "constexpr", "static", "typename", "inline", "volatile"))


class Cursor:
    """The code tokens of one stretch of text; `at` is the next token."""

    def __init__(self, path: str, text: str) -> None:
        self.text = text
        self.tokens: Sequence[Token] = [t for t in Source.parse(path, text).code if not t.text.startswith("#")]
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        """The text of a token ahead, empty behind the last."""
        at = self.at + ahead
        return self.tokens[at].text if at < len(self.tokens) else ""

    def take(self, expected: str = "") -> Token:
        """The next token, which has to be `expected`."""
        if self.at >= len(self.tokens) or (expected and self.tokens[self.at].text != expected):
            raise Unparsed
        self.at += 1
        return self.tokens[self.at - 1]

    def accept(self, text: str) -> bool:
        """Takes the next token if it is `text`."""
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
            raise Unparsed
        return behind

    @cached_property
    def _behind(self) -> dict[int, int]:
        """For each bracket that opens, the token behind the next one that closes at its depth, of whatever kind."""
        found: dict[int, int] = {}
        opened: list[int] = []
        for at, token in enumerate(self.tokens):
            if token.text in _CLOSERS:
                opened.append(at)
            elif token.text in _CLOSERS.values() and opened:
                found[opened.pop()] = at + 1
        return found

    def joined(self, begin: int, end: int) -> str:
        """The tokens of a type, without qualifiers, in one canonical spelling."""
        texts = [t.text for t in self.tokens[begin:end] if t.text not in QUALIFIERS]
        joined = ""
        for text in texts:
            gap = joined and is_word(joined[-1]) and is_word(text[0])
            joined += f" {text}" if gap else text
        return joined

    def before_angles(self, at: int) -> int:
        """The name in front of explicit template arguments that end at a token, else that token itself."""
        depth = 0
        while at > 0:
            depth -= DEPTHS.get(self.tokens[at].text, 0)
            if depth == 0:
                return at if self.tokens[at].text != "<" else at - 1
            at -= 1
        raise Unparsed


def is_word(text: str) -> bool:
    """Whether a token is an identifier or keyword."""
    return text.isidentifier()
