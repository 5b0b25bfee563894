"""The tokens of an edited text: those around the edits are lexed, the others are those that it had before.

A space with a line feed starts afresh: what stands behind it is lexed alike whatever stands before.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from porter.core.edits import common_start
from porter.languages.lexer import Token, TokenKind, lex

_new = tuple.__new__
_ANCHOR = 80  # characters by which text that stands elsewhere now is found


def relex(before: str, tokens: Sequence[Token], text: str) -> tuple[Token, ...]:
    """The tokens of a text, as `lex` gives them, from those of a text that is like it."""
    made = list(tokens[: _find_restart(tokens, common_start(before, text))])
    searched, lexed = made[-1].end if made else 0, False
    while not lexed:
        lexed = True
        for token in lex(text, at=made[-1].end if made else 0):
            known = _find_known(before, tokens, text, token, searched) if _starts_afresh(token) else ()
            if known:
                made += _move(known, token.start - known[0].start)
                searched, lexed = known[-1].end, False
                break
            made.append(token)
    return tuple(made)


def _find_known(before: str, tokens: Sequence[Token], text: str, token: Token, start: int) -> Sequence[Token]:
    """The old tokens, from an offset of the old text on, that are those of the new text from a token on."""
    at = before.find(text[token.start : token.start + _ANCHOR], start)
    first = _token_at(tokens, at)
    if at < 0 or first == len(tokens) or tokens[first].start != at or not _starts_afresh(tokens[first]):
        return ()
    old, new = before[at:], text[token.start :]
    if old == new:
        return tokens[first:]
    last = _find_restart(tokens, at + common_start(old, new))
    return tokens[first:last]


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


def _move(tokens: Sequence[Token], by: int) -> Sequence[Token]:
    return tokens if by == 0 else [_new(Token, (k, t, s + by, e + by)) for k, t, s, e in tokens]
