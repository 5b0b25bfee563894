"""The tokens of an edited text: those around the edit are lexed, the others are those that it had before.

A space with a line feed starts afresh: what stands behind it is lexed alike whatever stands before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import islice

from porter.core.shared_text import common_end, common_start
from porter.languages.lexer import Token, TokenKind, lex

_new = tuple.__new__


def relex(before: str, tokens: Sequence[Token], text: str) -> tuple[Token, ...]:
    """The tokens of a text, as `lex` gives them, from those of a text that is like it."""
    same = common_start(before, text)
    behind = len(text) - common_end(before, text, same)
    moved = len(text) - len(before)
    first = _find_restart(tokens, same)
    made = list(tokens[:first])
    for token in lex(text, at=tokens[first].start if first < len(tokens) else 0):
        if token.start >= behind and _starts_afresh(token):
            old = _token_at(tokens, token.start - moved)
            if old < len(tokens) and tokens[old] == _move(token, -moved):
                break
        made.append(token)
    else:
        return tuple(made)
    rest = islice(tokens, old, None)
    return (*made, *(rest if moved == 0 else [_new(Token, (k, t, s + moved, e + moved)) for k, t, s, e in rest]))


def _find_restart(tokens: Sequence[Token], same: int) -> int:
    """The last token in the first `same` characters that starts afresh and does not continue a line; else the first."""
    at = min(_token_at(tokens, same), len(tokens) - 1)
    while at > 0:
        token, previous = tokens[at], tokens[at - 1]
        if token.end <= same and _starts_afresh(token) and not previous.text.endswith("\\"):
            return at
        at -= 1
    return 0


def _starts_afresh(token: Token) -> bool:
    return token.kind is TokenKind.SPACE and "\n" in token.text


def _token_at(tokens: Sequence[Token], offset: int) -> int:
    """The first token that starts at an offset or behind it."""
    return bisect_left(tokens, offset, key=lambda token: token.start)


def _move(token: Token, by: int) -> Token:
    return Token(token.kind, token.text, token.start + by, token.end + by)
