"""The names that a declaration declares and refers to, which tell what part of a source a kernel needs."""

from __future__ import annotations

from collections.abc import Iterator

from aten_overlay.metal.source.lexer import Source, is_attribute, skip_angles
from aten_overlay.metal.source.syntax import Declaration, class_key, head_end, is_explicit, name_start

_NOT_NAMED = frozenset(("template", "operator", "decltype", "static_assert", "alignas"))
_CLASS_WORDS = frozenset(("class", "struct", "union", "enum", "final", "typename"))
_BEFORE_NAME = frozenset(("class", "struct", "union", "enum", "]", ")", "::"))
_ENDS_NAME = frozenset(("=", "[", ";", ",", "{", "("))


def references(source: Source, declaration: Declaration) -> set[str]:
    """The names in a declaration; of attributes, those in their arguments."""
    found: set[str] = set()
    i, kinds, tokens = declaration.start, source.kinds, source.tokens
    while i < declaration.end:
        if tokens[i] == "[" and is_attribute(source, i):
            end = source.match[i]
            inner = (j for j in range(i + 2, end) if tokens[j] == "(" and tokens[j - 1] != "host_name")
            for j in inner:
                found.update(tokens[k] for k in range(j + 1, source.match[j]) if kinds[k] == "name")
            i = end + 1
            continue
        if kinds[i] == "name":
            found.add(tokens[i])
        i += 1
    return found


def _is_call(source: Source, i: int) -> bool:
    return i < len(source.tokens) and source.tokens[i] == "("


def declared_names(source: Source, declaration: Declaration) -> frozenset[str] | None:
    """The names by which others refer to a declaration; None where it matters without being named (an operator)."""
    tokens, start = source.tokens, declaration.start
    if is_explicit(source, declaration):
        return frozenset()
    while tokens[start] == "template" and tokens[start + 1] == "<":
        start = max(skip_angles(source, start + 1, declaration.end), start + 1)
    if tokens[start] == "using":
        return frozenset((tokens[start + 1],)) if tokens[start + 2] in ("=", "[") else None
    key = class_key(source, declaration)
    names = frozenset(_class_names(source, declaration, start, key)) if key else frozenset()
    if tokens[start] == "typedef":
        return names | frozenset(_typedef_names(source, start + 1, declaration.end))
    if key:
        return names or None
    if tokens[start] in ("static_assert", "namespace", "asm"):
        return None
    return _function_or_variables(source, declaration, start)


def _function_or_variables(source: Source, declaration: Declaration, start: int) -> frozenset[str] | None:
    tokens = source.tokens
    outside = list(_outside_types(source, start, head_end(declaration)))
    if any(tokens[i] == "operator" for i in outside):
        return None
    opening = next((i for i in outside if tokens[i] in ("(", "=")), -1)
    if opening >= 0 and tokens[opening] == "(":
        first = name_start(source, opening)
        names = [tokens[i] for i in _outside_types(source, first, opening) if source.kinds[i] == "name"]
        return frozenset(names) or None
    end = declaration.end if declaration.body < 0 else declaration.body + 1
    return frozenset(_declarators(source, start, end)) or None


def _outside_types(source: Source, start: int, end: int) -> Iterator[int]:
    """Indices outside brackets, angles, attributes and what resembles a call but declares nothing."""
    i, tokens = start, source.tokens
    while i < end:
        if tokens[i] in ("decltype", "alignas", "__attribute__") and tokens[i + 1] == "(":
            i = source.match[i + 1] + 1
            continue
        if tokens[i] == "<":
            i = max(skip_angles(source, i, end), i + 1)
            continue
        yield i
        i = source.match[i] + 1 if tokens[i] in ("(", "[", "{") else i + 1


def _declarators(source: Source, start: int, end: int) -> Iterator[str]:
    """The variables of a declaration: each name that is followed by its initializer, an array bound or the end."""
    for i in _outside_types(source, start, end):
        if source.kinds[i] == "name" and i + 1 < len(source.tokens) and source.tokens[i + 1] in _ENDS_NAME:
            yield source.tokens[i]


def _typedef_names(source: Source, start: int, end: int) -> Iterator[str]:
    tokens, last, grouped = source.tokens, "", False
    for i in _outside_types(source, start, end):
        if source.kinds[i] == "name":
            last = tokens[i]
        elif tokens[i] == "(":
            if not grouped:
                yield from (tokens[j] for j in range(i + 1, min(source.match[i], i + 4)) if source.kinds[j] == "name")
            grouped = True
            if last:
                yield last
        elif tokens[i] in (",", ";", "[") and last:
            yield last
    if last:
        yield last


def _class_names(source: Source, declaration: Declaration, start: int, key: str) -> Iterator[str]:
    tokens = source.tokens
    stop = head_end(declaration)
    for i in _outside_types(source, start, stop):
        is_name = source.kinds[i] == "name" and tokens[i] not in _CLASS_WORDS
        if is_name and tokens[i - 1] in _BEFORE_NAME and tokens[i + 1] != "::":
            yield tokens[i]
            break
    if declaration.body < 0:
        yield from _declarators(source, start, declaration.end)
        return
    if key == "enum":
        inner = range(declaration.body + 1, source.match[declaration.body])
        yield from (tokens[i] for i in inner if source.kinds[i] == "name" and tokens[i - 1] in ("{", ","))
    yield from _declarators(source, source.match[declaration.body] + 1, declaration.end)
