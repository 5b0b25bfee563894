"""Preprocesses one function: keeps the branches for the newest macOS and expands the file's own macros, on the same
lines.
"""

from __future__ import annotations

from functools import lru_cache

from porter.languages.directives import Macro, parse_condition
from porter.languages.lexer import Token, TokenKind, lex
from porter.languages.preprocessor import expand_uses
from porter.languages.source import Source


def flatten(source: Source, text: str) -> str:
    """Returns the text with one branch of every `#if`, and every use of the file's macros expanded on one line."""
    return _flatten(text, source.function_macros)


@lru_cache(maxsize=1024)
def _flatten(text: str, defined: tuple[Macro, ...]) -> str:
    return expand_uses(keep_first_branches(text), {macro.name: macro for macro in defined}, keep_lines=True)


def keep_first_branches(text: str) -> str:
    """Keeps the first branch of every `#if` and the second of `#ifndef`: SDK guards have the newest one first."""
    if "#" not in text:
        return text
    out: list[str] = []
    taking = [True]
    for token in lex(text):
        condition = parse_condition(token) if token.kind is TokenKind.DIRECTIVE else None
        if condition is None:
            out.append(token.text if all(taking) else _blank(token))
            continue
        if condition[0] in ("if", "ifdef", "ifndef"):
            taking.append(condition[0] != "ifndef")
        elif condition[0] in ("else", "elif") and len(taking) > 1:
            taking[-1] = not taking[-1] and condition[0] == "else"
        elif condition[0] == "endif" and len(taking) > 1:
            taking.pop()
        out.append(_blank(token))
    return "".join(out)


def _blank(token: Token) -> str:
    return "\n" * token.text.count("\n")
