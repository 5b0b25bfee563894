"""Inserts functors, REGISTER lines and includes next to similar ones in a `.metal` file."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from porter.core.edits import Edit, find_next_line
from porter.languages.directives import read_includes
from porter.languages.identifiers import find_words
from porter.languages.lexer import TokenKind
from porter.languages.source import MacroUse, Source
from porter.metal.macros import MacroBook, MacroFamily

_ARITY = {
    MacroFamily.UNARY: 1,
    MacroFamily.UNARY_ALPHA: 1,
    MacroFamily.BINARY: 2,
    MacroFamily.BINARY_ALPHA: 2,
    MacroFamily.TERNARY: 3,
    MacroFamily.TERNARY_ALPHA: 3,
}

_CONDITION = re.compile(r"^[ \t]*#[ \t]*(if\w*|endif)\b", re.M)


def insert_functor(source: Source, text: str, arity: int) -> Edit:
    """Returns the edit that inserts a functor after the last one of its arity, or before the first registration."""
    structs = list(_find_functors(source))
    siblings = [end for end, params in structs if params == arity] or [end for end, _ in structs]
    if siblings:
        at = find_next_line(source.text, max(siblings))
        return Edit(source.path, at, at, "\n" + text)
    at = _find_first_registration(source)
    return Edit(source.path, at, at, "\n" + text if at == len(source.text) else text + "\n")


def insert_registrations(source: Source, text: str, family: MacroFamily, book: MacroBook) -> Edit:
    """Returns the edit that inserts REGISTER lines after the last of their family, in a block if others are."""
    runs = list(_find_runs(source, book))
    same = [run for run in runs if _family(run[-1], book) is family]
    chosen = (
        same or [run for run in runs if (_ARITY.get(_family(run[-1], book) or family) == _ARITY.get(family))] or runs
    )
    if not chosen:
        end = len(source.text)
        return Edit(source.path, end, end, ("" if source.text.endswith("\n") else "\n") + "\n" + text)
    run = chosen[-1]
    at = find_next_line(source.text, run[-1].end)
    apart = len(chosen) > 1 and all(_serves_one_operator(run) for run in chosen)
    return Edit(source.path, at, at, ("\n" if apart or (_serves_one_operator(run) and len(run) > 2) else "") + text)


def insert_includes(path: str, text: str, headers: tuple[str, ...]) -> Iterator[Edit]:
    """`#include` lines for headers that the file lacks, each in the order of the includes around it."""
    includes = read_includes(text)
    conditional = _is_conditional(text, [include.start for include in includes])
    always = [include for include in includes if include.start not in conditional]
    present = {include.path for include in always}
    for header in headers:
        if header in present:
            continue
        top = header.split("/")[0]
        before = [i for i in always if i.path < header and i.path.split("/")[0] == top]
        before = before or [i for i in always if i.path.split("/")[0].lower() < top.lower() and "/" in i.path]
        first = always[0] if always else None
        at = find_next_line(text, before[-1].end) if before else (first.start if first else 0)
        yield Edit(path, at, at, f"#include <{header}>\n")


def _is_conditional(text: str, offsets: Iterable[int]) -> frozenset[int]:
    """Which of some offsets are between an `#if` and its `#endif`."""
    marks = [(match.end(), 1 if match[1].startswith("if") else -1) for match in _CONDITION.finditer(text)]
    opened, at = [0, *accumulate(change for _, change in marks)], [end for end, _ in marks]
    return frozenset(offset for offset in offsets if opened[bisect_right(at, offset)] > 0)


def find_used_macros(source: Source, book: MacroBook) -> frozenset[str]:
    """Returns the registration macros that the file uses."""
    return frozenset(use.name for use in source.macro_uses() if book.expand(use.name, use.arguments))


def find_registrations(source: Source, book: MacroBook, name: str) -> tuple[MacroUse, ...]:
    """Returns the macro uses that register kernels of a functor."""
    return tuple(
        use for use in source.macro_uses() if use.arguments[:1] == (name,) and book.expand(use.name, use.arguments)
    )


def _find_functors(source: Source) -> Iterator[tuple[int, int]]:
    """Yields the end of every `*_functor` struct and the number of element parameters of its operator."""
    code = source.code
    for at in [at for at, token in enumerate(code[:-2]) if token[1] == "struct"]:
        if not code[at + 1].text.endswith("_functor") or code[at + 2].text != "{":
            continue
        end = source.partners[at + 2]
        operators = (i for i in range(at + 2, end) if code[i].text == "operator")
        calls = [i + 3 for i in operators if "".join(token.text for token in code[i + 1 : i + 4]) == "()("]
        if calls and end + 1 < len(code):
            params = source.arguments(calls[0])
            yield (
                code[end + 1].end,
                sum(not any(word == "alpha" or word.endswith("A") for word in find_words(each)) for each in params),
            )


def _find_runs(source: Source, book: MacroBook) -> Iterator[list[MacroUse]]:
    """Yields runs of registration lines with nothing in between."""
    run: list[MacroUse] = []
    for use in source.macro_uses():
        if not book.expand(use.name, use.arguments):
            continue
        if run and source.text[run[-1].end : use.start].strip(" \r") != "\n":
            yield run
            run = []
        run.append(use)
    if run:
        yield run


def _serves_one_operator(run: list[MacroUse]) -> bool:
    return len({use.arguments[0] for use in run}) == 1


def _family(use: MacroUse, book: MacroBook) -> MacroFamily | None:
    made = book.expand(use.name, use.arguments)
    return made[0][0].family if made else None


def _find_first_registration(source: Source) -> int:
    for token in source.tokens:
        if token.kind is TokenKind.DIRECTIVE and "define" in token.text and "REGISTER" in token.text:
            return token.start
    uses = source.macro_uses()
    return uses[0].start if uses else len(source.text)
