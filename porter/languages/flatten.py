"""What the preprocessor would do to one function: newest-macOS branches kept, the file's own macros expanded, lines
kept in place.
"""

from __future__ import annotations

import re
from functools import lru_cache

from porter.languages.lexer import Token, TokenKind, lex
from porter.languages.preprocessor import expand
from porter.languages.source import Macro, Source

_CONDITION = re.compile(r"#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", re.S)


def flattened(source: Source, text: str) -> str:
    """The text with one branch of every `#if` left, and every use of a macro of the file expanded on one line."""
    return _flattened(source.path, text, source.function_macros)


@lru_cache(maxsize=1024)
def _flattened(path: str, text: str, defined: tuple[Macro, ...]) -> str:
    kept = _newest(text)
    macros = {macro.name: macro for macro in defined}
    for _ in range(4):
        expanded = _expanded(path, kept, macros)
        if expanded == kept:
            return kept
        kept = expanded
    return kept


def _newest(text: str) -> str:
    """Every `#if` takes its first branch, `#ifndef` its second: SDK guards are written newest first."""
    if "#" not in text:
        return text
    out: list[str] = []
    taking = [True]
    for token in lex(text):
        match = _CONDITION.match(token.text) if token.kind is TokenKind.DIRECTIVE else None
        if match is None:
            out.append(token.text if all(taking) else _blank(token))
            continue
        if match[1] in ("if", "ifdef", "ifndef"):
            taking.append(match[1] != "ifndef")
        elif match[1] in ("else", "elif") and len(taking) > 1:
            taking[-1] = not taking[-1] and match[1] == "else"
        elif match[1] == "endif" and len(taking) > 1:
            taking.pop()
        out.append(_blank(token))
    return "".join(out)


def _blank(token: Token) -> str:
    return "\n" * token.text.count("\n")


def _expanded(path: str, text: str, macros: dict[str, Macro]) -> str:
    if not any(name in text for name in macros):
        return text
    source = Source.parse(path, text)
    out, at = "", 0
    for index, token in enumerate(source.code[:-1]):
        macro = macros.get(token.text)
        if macro is None or token.start < at or source.code[index + 1].text != "(":
            continue
        arguments = source.arguments(index + 1)
        if len(arguments) != len(macro.params or ()):
            continue
        end = source.code[source.partners[index + 1]].end
        out += text[at : token.start] + expand(macro, arguments).replace("\n", " ")
        out += "\n" * text.count("\n", token.start, end)
        at = end
    return out + text[at:]
