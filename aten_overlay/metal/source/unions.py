"""Assignments of unions with vectors among their members, which Metal has and C++ has not.

A vector on the host has an assignment of its own, so a union gets one that copies its bytes, as does a class that has
an unnamed union.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aten_overlay.metal.headers import INCLUDE
from aten_overlay.metal.source.lexer import Source, skip_angles
from aten_overlay.metal.source.syntax import Declaration

_KEYS = ("struct", "class", "union")
_SPECIFIERS = ("alignas", "__attribute__")
_NAME = "pm_class_"  # of a class without a name, before the number of its first token
# Indices say what is copied: the sanitizer knows a copy by the types of its addresses. As a line of the library's, it
# has the place of its call.
_ASSIGNMENT = (
    f'\n# 1 "{INCLUDE}/pm/vector.h"\n'
    "inline {0}& operator=(const {0}& pm_other) {{ "
    "__builtin_memcpy(&this[0], &(&pm_other)[0], sizeof(*this)); return *this; }}\n"
)


@dataclass(frozen=True)
class Class:
    """A class's definition: its keyword, its name if it has one, and the tokens of its braces."""

    key: int
    name: str
    opening: int
    closing: int


def find_assignments(source: Source, declaration: Declaration) -> Iterator[tuple[int, str]]:
    """Where in the text of a declaration names and assignments are missing, and what they are."""
    if "union" not in source.tokens[declaration.start : declaration.end]:
        return
    classes = list(_find_classes(source, declaration))
    owners = (_find_owner(source, classes, each) for each in classes if source.tokens[each.key] == "union")
    for owner in dict.fromkeys(found for found in owners if found):
        if _has_assignment(source, owner):
            continue
        name = owner.name or f"{_NAME}{owner.key}"
        if not owner.name:
            yield source.starts[owner.opening], f" {name} "
        place = source.place(owner.closing)
        yield source.starts[owner.closing], f'{_ASSIGNMENT.format(name)}# {place.line} "{place.file}"\n'


def _find_classes(source: Source, declaration: Declaration) -> Iterator[Class]:
    tokens = source.tokens
    for key in range(declaration.start, declaration.end):
        if tokens[key] not in _KEYS or tokens[key - 1] in ("enum", "<", ",", "typename"):
            continue
        name, i = "", key + 1
        while i < declaration.end and tokens[i] not in ("{", ";", ")", ",", "="):
            if tokens[i] in _SPECIFIERS or tokens[i] == "[":
                i = source.match[i + (tokens[i] != "[")] + 1
                continue
            if tokens[i] == ":":
                i = next((k for k in range(i, declaration.end) if tokens[k] == "{"), declaration.end)
                continue
            if source.kinds[i] == "name" and tokens[i] != "final":
                name = tokens[i]
            i = max(skip_angles(source, i, declaration.end), i + 1) if tokens[i] == "<" else i + 1
        if i < declaration.end and tokens[i] == "{":
            yield Class(key, name, i, source.match[i])


def _find_owner(source: Source, classes: list[Class], owned: Class) -> Class | None:
    """The class that is assigned where `owned` is a part of it without a name of its own; None within a function."""
    is_part = not owned.name and source.tokens[owned.closing + 1] == ";"
    if not is_part:
        return owned
    opening = _enclosing_brace(source, owned.key)
    outer = next((each for each in classes if each.opening == opening), None)
    return _find_owner(source, classes, outer) if outer else None


def _enclosing_brace(source: Source, i: int) -> int:
    while i >= 0 and source.tokens[i] not in ("{", "(", "["):
        i = source.match[i] - 1 if source.tokens[i] in ("}", ")", "]") else i - 1
    return i


def _has_assignment(source: Source, owner: Class) -> bool:
    """Whether the class has an assignment already, or none on purpose."""
    i = owner.opening + 1
    while i < owner.closing:
        if source.tokens[i : i + 3] == ["operator", "=", "("]:
            return True
        i = source.match[i] + 1 if source.tokens[i] in ("{", "(", "[") else i + 1
    return False
