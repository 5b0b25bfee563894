"""Swizzles whose type is deduced. They are vectors in Metal, but on the host each is a class that stands for one."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from aten_overlay.metal.declarations import Unit
from aten_overlay.metal.lexer import Source, skip_angles
from aten_overlay.metal.syntax import Declaration, class_key

# Binds tighter than arithmetic: what stands before it is the swizzle alone.
AS_VECTOR = " ->* ::pm::as_vector"
_SWIZZLE = re.compile(r"[xyzw]{2,4}$|[rgba]{2,4}$")


def find_templates(unit: Unit) -> frozenset[str]:
    """The names of the source's function templates."""
    source = unit.source
    found: set[str] = set()
    for entry in unit.entries:
        if source.tokens[entry.declaration.start] == "template" and not class_key(source, entry.declaration):
            found |= entry.names or set()
    return frozenset(found)


def find_deduced(source: Source, declaration: Declaration, templates: Collection[str]) -> Iterator[int]:
    """The tokens of swizzles that are an argument of a template, or that an `auto` is initialized with."""
    tokens = source.tokens
    for i in range(max(declaration.body, declaration.start), declaration.end):
        if tokens[i] in templates:
            has_angles = _token(source, i + 1) == "<"
            opening = skip_angles(source, i + 1, declaration.end) if has_angles else i + 1
            if _token(source, opening) == "(":
                yield from _ends_of_arguments(source, opening)
        elif tokens[i] == "auto" and _token(source, i + 2) == "=":
            end = _skip_expression(source, i + 3, declaration.end)
            if _is_swizzle(source, end - 1):
                yield end - 1


def _token(source: Source, i: int) -> str:
    """A token; empty past the end of a source that is cut short."""
    return source.tokens[i] if i < len(source.tokens) else ""


def _ends_of_arguments(source: Source, opening: int) -> Iterator[int]:
    i, close = opening + 1, source.match[opening]
    while i < close:
        if _is_swizzle(source, i) and source.tokens[i + 1] in (",", ")"):
            yield i
        i = source.match[i] + 1 if source.tokens[i] in ("(", "[", "{") else i + 1


def _skip_expression(source: Source, i: int, end: int) -> int:
    while i < end and source.tokens[i] not in (";", ","):
        i = source.match[i] + 1 if source.tokens[i] in ("(", "[", "{") else i + 1
    return i


def _is_swizzle(source: Source, i: int) -> bool:
    return source.tokens[i - 1] == "." and _SWIZZLE.match(source.tokens[i]) is not None
