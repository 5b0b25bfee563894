"""Address spaces, which the host does not have: overloads that differ in nothing else are merged."""

from __future__ import annotations

from collections.abc import Iterable

from aten_overlay.errors import OverlayError
from aten_overlay.metal.declarations import Unit
from aten_overlay.metal.lexer import Source, is_attribute
from aten_overlay.metal.syntax import Declaration, class_key, constructor_qualifiers, head_end

ERASED = frozenset(("device", "thread", "threadgroup", "kernel", "ray_data", "object_data", "threadgroup_imageblock"))


def find_duplicates(unit: Unit, needed: Iterable[Declaration]) -> list[Declaration]:
    """The declarations that repeat an earlier one but for an address space. Raises PTR104 where the bodies differ."""
    source, found = unit.source, []
    seen: dict[tuple[object, ...], list[str]] = {}
    for declaration in needed:
        if not _may_repeat(source, declaration):
            continue
        head = tuple(_normal_head(source, declaration))
        key = (declaration.scope, declaration.outer, head)
        body = _normal(source, declaration.body, declaration.end) if declaration.body >= 0 else []
        if key not in seen:
            seen[key] = body
        elif seen[key] == body:
            found.append(declaration)
        else:
            raise OverlayError(
                "PTR104",
                "this overload differs from an earlier one in its body, not just in address space",
                source.place(declaration.start),
                "The host has a single address space: give the two different names.",
            )
    return found


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
