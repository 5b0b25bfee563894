"""What a macro use stands for: parameters replaced, `#` and `##` applied, as the C++ preprocessor does (C++20
[cpp.subst]).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from porter.core.errors import PorterError
from porter.languages.lexer import Token, TokenKind, lex
from porter.languages.source import Macro


def expand(macro: Macro, arguments: Sequence[str]) -> str:
    """The text of one use, not rescanned. Raises PTR031 when the number of arguments does not fit."""
    params = macro.params or ()
    variadic = bool(params) and params[-1].endswith("...")
    if (len(arguments) < len(params) - 1) if variadic else (len(arguments) != len(params)):
        raise PorterError("PTR031", f"{macro.name} takes {len(params)} arguments, not {len(arguments)}")
    values = dict(zip(params, arguments, strict=False))
    if variadic:
        values["__VA_ARGS__"] = ", ".join(arguments[len(params) - 1 :])
    return _substituted(_tokens(macro.body), values)


@lru_cache(maxsize=4096)
def _tokens(body: str) -> tuple[Token, ...]:
    return tuple(lex(body, directives=False))


def _substituted(tokens: Sequence[Token], values: dict[str, str]) -> str:
    out: list[str] = []
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token.text == "##":
            while out and out[-1].isspace():
                out.pop()
            at = _skip_space(tokens, at + 1)
            if at < len(tokens):
                out.append(values.get(tokens[at].text, tokens[at].text))
        elif token.text == "#":
            at = _skip_space(tokens, at + 1)
            name = tokens[at].text if at < len(tokens) else ""
            out.append(_quoted(values[name]) if name in values else f"#{name}")
        else:
            out.append(values.get(token.text, token.text) if token.kind is TokenKind.IDENTIFIER else token.text)
        at += 1
    return "".join(out)


def _skip_space(tokens: Sequence[Token], at: int) -> int:
    while at < len(tokens) and tokens[at].kind is TokenKind.SPACE:
        at += 1
    return at


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
