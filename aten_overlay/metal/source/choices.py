"""`?:` between a `bfloat` and an integer.

In Metal the integer becomes a `bfloat`. To C++ each of the two converts to the other, which is ambiguous. A literal
becomes a `pm::literal`, which converts to the other's type alone; any other side is given what stands beside it, by
which `pm::beside` knows whether to convert it.
"""

from __future__ import annotations

import re

from aten_overlay.errors import Place
from aten_overlay.metal.source.lexer import Source, read

AMBIGUOUS = "conditional expression is ambiguous"  # as clang says it
_INTEGER = re.compile(r"(?:0[xX][\da-fA-F]+|\d+)$")
_BESIDE = ["pm", "::", "beside"]
_ENDS = frozenset((")", "]", "}", ",", ";", ":"))

Span = tuple[int, int]


def wrap_literals(code: str) -> str:
    """`code`, in which a literal integer that one side of a `?:` consists of is a `pm::literal`."""
    source = read(code)
    spans: list[Span] = []
    for i, token in enumerate(source.tokens):
        if token == "?":
            literals = [span for side in _sides(source, i) if (span := _find_literal(source, *side))]
            spans += literals if len(literals) == 1 else []
    pieces, at = [], 0
    for first, last in sorted(spans):
        start, end = source.starts[first], source.ends[last]
        pieces += [code[at:start], "pm::literal{", code[start:end], "}"]
        at = end
    return "".join([*pieces, code[at:]])


def convert_sides(code: str, place: Place | None) -> str:
    """`code`, in which each side of the last unconverted `?:` at `place` is converted with the type of the other."""
    source = read(code)
    at = [i for i, token in enumerate(source.tokens) if token == "?" and source.place(i) == place]
    for i in reversed(at):
        sides = _sides(source, i)
        if sides and source.tokens[i + 1 : i + 4] != _BESIDE:
            texts = [code[source.starts[a] : source.ends[b - 1]] for a, b in sides]
            first, second = (f"pm::beside<decltype({other})>({own})" for own, other in (texts, texts[::-1]))
            return f"{code[: source.ends[i]]} {first} : {second}{code[source.ends[sides[1][1] - 1] :]}"
    return code


def _sides(source: Source, question: int) -> list[Span]:
    """Tokens of what a `?:` chooses from."""
    colon = _end_of_side(source, question + 1)
    if source.tokens[colon] != ":":
        return []
    return [(question + 1, colon), (colon + 1, _end_of_side(source, colon + 1))]


def _end_of_side(source: Source, i: int) -> int:
    """The token that ends the operand at i."""
    nested = 0
    while source.tokens[i] not in _ENDS or (source.tokens[i] == ":" and nested):
        nested += (source.tokens[i] == "?") - (source.tokens[i] == ":")
        i = max(source.match[i], i) + 1
    return i


def _find_literal(source: Source, start: int, end: int) -> Span | None:
    """The tokens of a literal, with its sign, if the operand is nothing else."""
    while end - start > 2 and source.tokens[start] == "(" and source.match[start] == end - 1:
        start, end = start + 1, end - 1
    first = start + (source.tokens[start] in ("-", "+"))
    return (start, end - 1) if end - first == 1 and _INTEGER.match(source.tokens[first]) else None
