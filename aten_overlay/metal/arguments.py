"""The attributes of a declaration, and the parameters of a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from aten_overlay.errors import OverlayError
from aten_overlay.metal.lexer import Source, is_attribute, skip_angles

BOUND = ("buffer", "threadgroup")
MAX_THREADS = 1024
_POSITION_NAMES = """
    thread_position_in_grid thread_position_in_threadgroup threadgroup_position_in_grid threads_per_grid
    threads_per_threadgroup dispatch_threads_per_threadgroup threadgroups_per_grid
    thread_index_in_threadgroup thread_index_in_simdgroup simdgroup_index_in_threadgroup
    simdgroups_per_threadgroup dispatch_simdgroups_per_threadgroup threads_per_simdgroup
    thread_execution_width thread_index_in_quadgroup quadgroup_index_in_threadgroup
    quadgroups_per_threadgroup dispatch_quadgroups_per_threadgroup grid_origin grid_size"""
POSITIONS = frozenset(_POSITION_NAMES.split())


@dataclass(frozen=True)
class Attribute:
    """One entry of a `[[...]]` list: its name and the token range of its parenthesized argument (empty if none)."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Argument:
    """A kernel parameter. `kind` is `buffer`, `threadgroup` or the name of a thread-position attribute; `index` is n of
    `[[buffer(n)]]` or `[[threadgroup(n)]]`; `type` is the type as written."""

    name: str
    kind: str
    index: int
    type: str


def attributes(source: Source, start: int, end: int) -> Iterator[Attribute]:
    i = start
    while i < end:
        if is_attribute(source, i):
            yield from _entries(source, i + 2, source.match[i + 1])
            i = source.match[i] + 1
        else:
            i += 1


def _entries(source: Source, i: int, end: int) -> Iterator[Attribute]:
    while i < end:
        if source.kinds[i] != "name":
            i += 1
            continue
        name = source.tokens[i]
        while source.tokens[i + 1] == "::":
            name, i = f"{name}::{source.tokens[i + 2]}", i + 2
        if source.tokens[i + 1] == "(":
            yield Attribute(name, i + 2, source.match[i + 1])
            i = source.match[i + 1] + 1
        else:
            yield Attribute(name, i + 1, i + 1)
            i += 1


def parameters(source: Source, start: int, end: int) -> tuple[Argument, ...]:
    parsed = [_argument(source, a, b) for a, b in split_parameters(source, start, end)]
    taken = {(kind, index) for _, kind, index, _ in parsed}
    result = []
    for name, kind, index, kind_text in parsed:
        if kind in BOUND and index < 0:
            index = next(n for n in range(64) if (kind, n) not in taken)
            taken.add((kind, index))
        result.append(Argument(name, kind, max(index, 0), kind_text))
    return tuple(result)


def split_parameters(source: Source, start: int, end: int) -> list[tuple[int, int]]:
    """Token ranges of the parameters in [start, end)."""
    ranges, i, first = [], start, start
    while i < end:
        token = source.tokens[i]
        if token == "<":
            i = max(skip_angles(source, i, end), i + 1)
            continue
        if token == ",":
            ranges.append((first, i))
            first = i + 1
        i = source.match[i] + 1 if token in ("(", "[", "{") else i + 1
    if first < end and source.tokens[first:end] != ["void"]:
        ranges.append((first, end))
    return ranges


def _argument(source: Source, start: int, end: int) -> tuple[str, str, int, str]:
    found = list(attributes(source, start, end))
    type_end = next((i for i in range(start, end) if is_attribute(source, i)), end)
    name = ""
    if type_end - start > 1 and source.kinds[type_end - 1] == "name":
        type_end -= 1
        name = source.tokens[type_end]
    text = source.joined(start, type_end)
    known = next((a for a in found if a.name in BOUND or a.name in POSITIONS), None)
    if known is None:
        unsupported = next((a.name for a in found), "")
        is_pointer = "*" in source.tokens[start:type_end] or "&" in source.tokens[start:type_end]
        if unsupported or not is_pointer:
            what = f"[[{unsupported}]]" if unsupported else "a parameter that is neither a buffer nor a position"
            raise OverlayError(
                "PTR109",
                f"{what} is not supported: `{text} {name}`",
                source.place(start),
                "Pass the data in a buffer.",
            )
        return name, "threadgroup" if source.tokens[start] == "threadgroup" else "buffer", -1, text
    index = integer(source, known) if known.name in BOUND else 0
    return name, known.name, index, text


def integer(source: Source, attribute: Attribute) -> int:
    text = source.joined(attribute.start, attribute.end)
    try:
        return int(text.rstrip("uUlL"), 0)
    except ValueError:
        raise OverlayError(
            "PTR103",
            f"the argument of [[{attribute.name}({text})]] is not an integer literal",
            source.place(attribute.start),
            "Use an integer literal.",
        ) from None
