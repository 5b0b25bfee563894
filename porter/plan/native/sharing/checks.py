"""The checks of types that ports write before a launch: what one function checks, those with its kernels can too.

A port leaves a check out where the types are known to agree: a meta function, or the function itself, made the result.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from porter.languages.lexer import TokenKind
from porter.languages.source import Source
from porter.languages.statements import Statement, read_statements

_CHECK = re.compile(
    r'TORCH_CHECK\(\s*(\w+)\.scalar_type\(\) == (\w+)\.scalar_type\(\),\s*"Expected \1 to have dtype ",'
    r'\s*\2\.scalar_type\(\),\s*", but got ",\s*\1\.scalar_type\(\)\);'
)


@lru_cache(maxsize=1024)
def without_checks(body: str) -> str:
    """A body without checks that two tensors have one type."""
    for each in reversed(_list_checks(body)):
        body = body[: each.start].rstrip() + body[each.end :]
    return body


def level_checks(bodies: Sequence[str]) -> list[str] | None:
    """Bodies that are the same without checks, with all that the one with the most has.

    None if another has one that this lacks.
    """
    checks = [[_read(body, each) for each in _list_checks(body)] for body in bodies]
    most = max(range(len(bodies)), key=lambda at: len(checks[at]))
    if any(each not in checks[most] for listed in checks for each in listed):
        return None
    model = bodies[most]
    places = [(_count_tokens(model[: each.start]), each) for each in _list_checks(model)]
    return [
        body if checks[at] == checks[most] else _add(without_checks(body), model, places)
        for at, body in enumerate(bodies)
    ]


def _add(body: str, model: str, places: Sequence[tuple[int, Statement]]) -> str:
    """A body with the checks of another, each before the token that it has that place before."""
    for before, check in places:
        code = Source.parse("", body).code
        at = code[before].start if before < len(code) else len(body)
        body = f"{body[:at]}{model[check.start : check.end]}\n  {body[at:]}"
    return body


def _count_tokens(text: str) -> int:
    return sum(
        each.kind not in (TokenKind.SPACE, TokenKind.COMMENT, TokenKind.DIRECTIVE)
        for each in Source.parse("", text).tokens
    )


def _list_checks(body: str) -> list[Statement]:
    if not _CHECK.search(body):
        return []
    return [each for each in read_statements(body) if _CHECK.fullmatch(body[each.start : each.end])]


def _read(body: str, check: Statement) -> str:
    return " ".join(body[check.start : check.end].split())
