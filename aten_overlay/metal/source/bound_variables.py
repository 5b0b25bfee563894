"""Variables at program scope that are bound to a position, such as `uint i [[thread_position_in_grid]];`.

They become parameters of the kernels that name them; functions that kernels call do not see them on the host.

Source: Metal Shading Language Specification, "Attributes for Kernel Function Input Arguments".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aten_overlay.metal.source.arguments import POSITIONS, attributes
from aten_overlay.metal.source.declarations import Kernel, Unit
from aten_overlay.metal.source.generate import Edit, apply
from aten_overlay.metal.source.lexer import Source, is_attribute
from aten_overlay.metal.source.syntax import Declaration

_SPECIFIERS = frozenset(("const", "static", "constant", "thread", "inline"))
_UNAVAILABLE = '__attribute__((unavailable("the host has no bound variables but in kernels: pass it as an argument"))) '


@dataclass(frozen=True)
class Bound:
    """A variable, the tokens [`start`, `end`) of its attribute, and its type."""

    name: str
    type: str
    start: int
    end: int
    declaration: Declaration


def pass_bound_variables(unit: Unit) -> str:
    """The text of a source in which kernels get such variables as parameters."""
    source = unit.source
    found = [bound for entry in unit.entries if (bound := _read_bound(source, entry.declaration))]
    if not found:
        return source.text
    return apply(source.text, [*(_declare(source, each) for each in found), *_parameter_edits(unit, found)])


def _read_bound(source: Source, declaration: Declaration) -> Bound | None:
    tokens, start = source.tokens, declaration.start
    if declaration.body >= 0 or tokens[declaration.end - 2 : declaration.end] != ["]", ";"]:
        return None
    at = next((i for i in range(start, declaration.end) if is_attribute(source, i)), 0)
    end = source.match[at] + 1 if at > start else 0
    if end != declaration.end - 1 or "(" in tokens[start:at]:
        return None
    if not any(each.name in POSITIONS for each in attributes(source, at, end)):
        return None
    kind = " ".join(token for token in tokens[start : at - 1] if token not in _SPECIFIERS)
    return Bound(tokens[at - 1], kind, at, end, declaration)


def _declare(source: Source, bound: Bound) -> Edit:
    start, end = source.starts[bound.declaration.start], source.ends[bound.declaration.end - 1]
    lines = "\n" * source.text.count("\n", start, end)
    return Edit(start, end, f"extern {_UNAVAILABLE}{bound.type} {bound.name};{lines}")


def _parameter_edits(unit: Unit, found: list[Bound]) -> Iterator[Edit]:
    source = unit.source
    for kernel in unit.kernels:
        named = [each for each in found if _names(source, kernel, each.name)]
        yield from _insert(source, kernel.opening, [_write_parameter(source, each) for each in named])
        for instance in unit.instances:
            if instance.parameters >= 0 and instance.short_name == kernel.name:
                yield from _insert(source, instance.parameters, [each.type for each in named])


def _names(source: Source, kernel: Kernel, name: str) -> bool:
    """Whether a kernel's body names a variable, which none of its parameters hides."""
    parameters = source.tokens[kernel.opening : kernel.closing]
    return name in source.tokens[kernel.closing : kernel.declaration.end] and name not in parameters


def _write_parameter(source: Source, bound: Bound) -> str:
    return (
        f"{bound.type} {bound.name} {source.joined(bound.start, bound.end).replace('[ [', '[[').replace('] ]', ']]')}"
    )


def _insert(source: Source, opening: int, parameters: list[str]) -> Iterator[Edit]:
    closing = source.match[opening]
    own = source.tokens[opening + 1 : closing]
    if parameters:
        at = source.starts[opening + 1 if own == ["void"] else closing]
        yield Edit(at, source.starts[closing], (", " if own not in ([], ["void"]) else "") + ", ".join(parameters))
