"""Swizzles. They are vectors in Metal, but on the host each is a member and a class of its own that stands for one.

Where its type is deduced, code has to say that it is a vector; where none is named, vectors need no such members.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from aten_overlay.metal.headers import INCLUDE
from aten_overlay.metal.source.declarations import Unit
from aten_overlay.metal.source.lexer import Source, skip_angles
from aten_overlay.metal.source.syntax import Declaration, class_key

# Binds tighter than arithmetic: what stands before it is the swizzle alone.
AS_VECTOR = " ->* ::pm::as_vector"
_SWIZZLE = re.compile(r"[xyzw]{2,4}$|[rgba]{2,4}$")
_COMPONENTS = re.compile(r"[xyzw]{1,4}$|[rgba]{1,4}$")
_COLORS = re.compile(r"[rgba]{2,4}$")
_PLACES = str.maketrans("rgba", "xyzw")
_ACCESS = (".", "->")
# A line marker may stand between a point and what it accesses.
_NAMED = re.compile(r"(?:(?<!\.)\.|->)(?:\s|^#[^\n]*$)*(?:[xyzw]{2,4}|[rgba]{2,4})\b", re.M)


def choose_library(code: str) -> Path:
    """The header of Metal's library that generated C++ needs: one whose vectors have no swizzles if it names none."""
    return INCLUDE / ("metal_stdlib" if _NAMED.search(code) else "pm/unswizzled.h")


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


def find_nested(source: Source, declarations: Iterable[Declaration]) -> list[tuple[int, int, str]]:
    """The tokens, from the first to the last, of swizzles of swizzles and of those that repeat a color (`rrr`).

    Each comes with the one swizzle that does the same."""
    found = [nested for declaration in declarations for nested in _find_nested(source, declaration)]
    # What is named elsewhere than behind a point may be a member of a class.
    named = {token for i, token in enumerate(source.tokens) if source.tokens[i - 1] not in _ACCESS} if found else set()
    return [nested for nested in found if source.tokens[nested[0]] not in named]


def _find_nested(source: Source, declaration: Declaration) -> Iterator[tuple[int, int, str]]:
    tokens, i = source.tokens, declaration.start
    while i < declaration.end:
        first, made = i + 1, _token(source, i + 1)
        last = first
        if tokens[i] in _ACCESS and _SWIZZLE.match(made):
            while _token(source, last + 1) == "." and (inner := _compose(made, _token(source, last + 2))):
                last, made = last + 2, inner
        if last > first or (tokens[i] in _ACCESS and _repeats_color(made)):
            yield first, last, made.translate(_PLACES) if _repeats_color(made) else made
        i = last


def _repeats_color(swizzle: str) -> bool:
    return _COLORS.match(swizzle) is not None and len(set(swizzle)) < len(swizzle)


def _compose(outer: str, inner: str) -> str:
    """The components of a vector that a swizzle takes of another; "" where `inner` is none of it."""
    if len(outer) < 2 or not _COMPONENTS.match(inner):
        return ""
    places = [("xyzw" if inner[0] in "xyzw" else "rgba").index(each) for each in inner]
    return "".join(outer[k] for k in places) if max(places) < len(outer) else ""


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
