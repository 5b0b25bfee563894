"""The `#define`s and `#include`s of a C++ or Objective-C++ file, and uses of macros expanded (C++20 [cpp.subst])."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

from porter.core.errors import PorterError
from porter.languages.brackets import find_closing_end, split_at_commas
from porter.languages.lexer import Token, TokenKind, directives, lex

_DEFINE = re.compile(r"#\s*define\s+(\w+)(?:\(([^)]*)\))?\s*(.*)", re.S)
_INCLUDE = re.compile(r'#\s*(?:include|import)\s*[<"]([^>"]+)[>"]')
# What few files have: comments over lines or in front of a `#`, raw strings, and other spaces before a `#`.
_HIDING = tuple(
    re.compile(each)
    for each in (r"/\*(?!.*\*/)", r"\*/[\s\ufeff]*#", r'R"', r"\\\r?\n[\s\ufeff]*#", r"[^\S \t\n][\s\ufeff]*#")
)
_CONDITION = re.compile(r"#\s*(if|ifdef|ifndef|elif|else|endif)\b(.*)", re.S)
_CONTINUATION = re.compile(r"\\\r?\n")


@dataclass(frozen=True)
class Macro:
    """A `#define`, equal to one elsewhere. `params` is None for an object-like one; `body` has no continued lines."""

    name: str
    params: tuple[str, ...] | None
    body: str
    start: int = field(compare=False)
    end: int = field(compare=False)


@dataclass(frozen=True)
class Include:
    """`#include <path>`."""

    path: str
    start: int
    end: int


def parse_macro(directive: Token) -> Macro | None:
    """Returns the macro that a directive defines, or None."""
    match = _DEFINE.match(directive.text)
    if match is None:
        return None
    listed = None if match[2] is None else _CONTINUATION.sub(" ", match[2]).split(",")
    params = None if listed is None else tuple(p.strip() for p in listed if p.strip())
    return Macro(match[1], params, _CONTINUATION.sub("\n", match[3]).strip(), directive.start, directive.end)


def parse_condition(directive: Token) -> tuple[str, str] | None:
    """The word of a directive that chooses what is compiled (`if`, `else`), and what follows it; None of another."""
    match = _CONDITION.match(directive.text)
    return (match[1], match[2]) if match else None


@lru_cache(maxsize=64)
def read_macros(text: str) -> tuple[Macro, ...]:
    """Every `#define` of a file, which is lexed only if a `#` that starts a line may be no directive."""
    return tuple(filter(None, map(parse_macro, _list_directives(text))))


@lru_cache(maxsize=64)
def read_includes(text: str) -> tuple[Include, ...]:
    """Every `#include` and `#import` of a file, which is lexed only as for macros."""
    return tuple(find_includes(_list_directives(text)))


def find_includes(found: Iterable[Token]) -> Iterator[Include]:
    """The includes among some directives."""
    for token in found:
        if match := _INCLUDE.match(token.text):
            yield Include(match[1], token.start, token.end)


def _list_directives(text: str) -> Iterator[Token]:
    hidden = any(pattern.search(text) for pattern in _HIDING)
    return (token for token in (lex(text) if hidden else directives(text)) if token.kind is TokenKind.DIRECTIVE)


_BRACKET = re.compile(r"\s*\(")


def expand(macro: Macro, arguments: Sequence[str]) -> str:
    """Returns the expansion of one use, not rescanned. Raises PTR031 for a wrong number of arguments."""
    params = macro.params or ()
    variadic = bool(params) and params[-1].endswith("...")
    if (len(arguments) < len(params) - 1) if variadic else (len(arguments) != len(params)):
        raise PorterError("PTR031", f"{macro.name} takes {len(params)} arguments, not {len(arguments)}")
    values = dict(zip(params, arguments, strict=False))
    if variadic:
        values["__VA_ARGS__"] = ", ".join(arguments[len(params) - 1 :])
    return _substitute(_tokens(macro.body), values)


_MOST_TEXT = 500_000
_EACH = 40  # what a use costs beside its characters
_DEEPEST = 60


@dataclass
class _Budget:
    """How much text the uses of one text may still expand to, and how deeply they are nested."""

    left: int
    depth: int = 0

    @contextmanager
    def spent(self, length: int) -> Iterator[None]:
        self.left -= length + _EACH
        self.depth += 1
        if self.left < 0 or self.depth > _DEEPEST:
            raise PorterError("PTR034", "the macros of this file expand to too much text", hint="Split them up.")
        yield
        self.depth -= 1


def expand_uses(text: str, macros: Mapping[str, Macro], keep_lines: bool = False) -> str:
    """Returns the text with every use of these function-like macros expanded, recursively.

    With `keep_lines` each use is on one line, and has as many lines behind it as it had. Raises PTR034 where that is
    too much text.
    """
    return _expand_uses(text, macros, keep_lines, _Budget(_MOST_TEXT + len(text)))


def _expand_uses(text: str, macros: Mapping[str, Macro], keep_lines: bool, budget: _Budget) -> str:
    with budget.spent(len(text)):
        return _expand_within(text, macros, keep_lines, budget)


def _expand_within(text: str, macros: Mapping[str, Macro], keep_lines: bool, budget: _Budget) -> str:
    if not any(name in text for name in macros):
        return text
    out, at = "", 0
    for token in lex(text):
        macro = macros.get(token.text) if token.kind is TokenKind.IDENTIFIER and token.start >= at else None
        bracket = _BRACKET.match(text, token.end) if macro else None
        if macro is None or bracket is None:
            continue
        end = find_closing_end(text, bracket.end() - 1)
        arguments = split_at_commas(text[bracket.end() : end - 1])
        if len(arguments) != len(macro.params or ()):
            continue
        others = {name: each for name, each in macros.items() if name != macro.name}
        inner = [_expand_uses(each, macros, False, budget) for each in arguments]
        made = _expand_uses(expand(macro, inner), others, False, budget)
        out += text[at : token.start] + (made.replace("\n", " ") if keep_lines else made)
        out += "\n" * text.count("\n", token.start, end) if keep_lines else ""
        at = end
    return out + text[at:]


@lru_cache(maxsize=4096)
def _tokens(body: str) -> tuple[Token, ...]:
    return tuple(lex(body, directives=False))


def _substitute(tokens: Sequence[Token], values: dict[str, str]) -> str:
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
            out.append(_stringize(values[name]) if name in values else f"#{name}")
        else:
            out.append(values.get(token.text, token.text) if token.kind is TokenKind.IDENTIFIER else token.text)
        at += 1
    return "".join(out)


def _skip_space(tokens: Sequence[Token], at: int) -> int:
    while at < len(tokens) and tokens[at].kind is TokenKind.SPACE:
        at += 1
    return at


def _stringize(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
