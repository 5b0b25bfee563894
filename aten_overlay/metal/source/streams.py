"""Finds the buffers of a kernel that its threads read or write one after the other, each at its own position.

What they need next can then be asked of memory ahead of time. It is a hint: a buffer missed or found by mistake changes
no result.
"""

from __future__ import annotations

from collections.abc import Iterable

from aten_overlay.metal.source.arguments import Argument
from aten_overlay.metal.source.lexer import Source
from aten_overlay.metal.source.syntax import Declaration

_POSITION = "thread_position_in_grid"


def find_streams(source: Source, declaration: Declaration, arguments: Iterable[Argument]) -> frozenset[str]:
    """The names of the buffers subscripted by the thread's position, or by a variable that begins as it."""
    given = tuple(arguments)
    position = next((a for a in given if a.kind == _POSITION and a.name), None)
    if position is None or declaration.body < 0:
        return frozenset()
    is_vector = position.type.rstrip()[-1:].isdigit()
    index = (position.name, ".", "x") if is_vector else (position.name,)
    forms = {index, *((name,) for name in _copies(source, declaration, index))}
    buffers = {a.name for a in given if a.kind == "buffer"}
    return frozenset(
        source.tokens[i]
        for i in range(declaration.body, declaration.end - 1)
        if source.tokens[i] in buffers
        and source.tokens[i + 1] == "["
        and tuple(source.tokens[i + 2 : source.match[i + 1]]) in forms
    )


def _copies(source: Source, declaration: Declaration, index: tuple[str, ...]) -> Iterable[str]:
    """The names in `NAME = index;`."""
    tokens, length = source.tokens, len(index)
    for i in range(declaration.body + 1, declaration.end - length - 1):
        if tokens[i] == "=" and tuple(tokens[i + 1 : i + 1 + length]) == index and tokens[i + 1 + length] == ";":
            yield tokens[i - 1]
