"""Address spaces, which the host does not have: overloads that differ in nothing else are merged."""

from __future__ import annotations

from collections.abc import Iterable

from aten_overlay.errors import OverlayError
from aten_overlay.metal.source.declarations import Unit
from aten_overlay.metal.source.lexer import Source, is_attribute
from aten_overlay.metal.source.overloads import Function, Overloads, group, has_name
from aten_overlay.metal.source.syntax import Declaration, class_key, constructor_qualifiers, head_end

ERASED = frozenset(("device", "thread", "threadgroup", "kernel", "ray_data", "object_data", "threadgroup_imageblock"))


def find_duplicates(unit: Unit, needed: Iterable[Declaration]) -> tuple[list[Declaration], list[Overloads]]:
    """The declarations that repeat an earlier one but for an address space, and functions whose overloads do not.

    Raises PTR104 for overloads of a member that do not.
    """
    source, duplicates = unit.source, []
    seen: dict[tuple[object, ...], list[Function]] = {}
    functions: dict[tuple[object, ...], list[Function]] = {}
    for declaration in needed:
        if not _may_repeat(source, declaration):
            continue
        head = tuple(_normal_head(source, declaration))
        body = tuple(_normal(source, declaration.body, declaration.end)) if declaration.body >= 0 else ()
        function = Function(declaration, head, body)
        is_free = declaration.outer < 0 and not class_key(source, declaration) and has_name(source, declaration)
        if is_free:
            loose = tuple(word for word in head if word != "const")
            functions.setdefault((declaration.scope, loose), []).append(function)
        earlier = seen.setdefault((declaration.scope, declaration.outer, head), [])
        if any(f.body == body for f in earlier):
            duplicates.append(declaration)
        elif earlier and not is_free:
            raise _conflict(source, declaration)
        earlier.append(function)
    grouped = (group(source, alike) for alike in functions.values() if len(alike) > 1)
    return duplicates, [overloads for overloads in grouped if overloads]


def _conflict(source: Source, declaration: Declaration) -> OverlayError:
    return OverlayError(
        "PTR104",
        "this overload differs from an earlier one in its body, not just in address space",
        source.place(declaration.start),
        "The host has a single address space: give the two different names.",
    )


def _may_repeat(source: Source, declaration: Declaration) -> bool:
    """Whether it is a function's definition, or a class template's specialization."""
    if declaration.body < 0:
        return declaration.outer >= 0 and "(" in source.tokens[declaration.start : declaration.end]
    if class_key(source, declaration) in ("struct", "class"):
        return source.tokens[declaration.start] == "template" and source.tokens[declaration.body - 1] == ">"
    is_whole = source.match[declaration.body] + 1 == declaration.end
    return is_whole and "(" in source.tokens[declaration.start : declaration.body]


def _normal_head(source: Source, declaration: Declaration) -> list[str]:
    """What tells functions apart on the host, where no constructor is `constant`."""
    qualifiers, end = constructor_qualifiers(source, declaration), head_end(declaration)
    if not qualifiers:
        return _normal(source, declaration.start, end)
    return _normal(source, declaration.start, qualifiers.start) + _normal(source, qualifiers.stop, end)


def _normal(source: Source, start: int, end: int) -> list[str]:
    result: list[str] = []
    i = start
    while i < end:
        token = source.tokens[i]
        if is_attribute(source, i):
            i = source.match[i] + 1
            continue
        if token == "constant":
            token = "const"
        if token not in ERASED and not (token == "const" and result[-1:] == ["const"]):
            result.append(token)
        i += 1
    return result
