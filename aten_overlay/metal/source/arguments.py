"""The attributes of a declaration, and the parameters of a kernel."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches

from aten_overlay.errors import OverlayError
from aten_overlay.metal.source.lexer import Source, is_attribute, skip_angles

BOUND = ("buffer", "threadgroup", "texture", "sampler")
_TEXTURE = re.compile(r"(texture(1d|2d|3d|cube|_buffer)|depth(2d|cube))(_ms)?(_array)?$")
_POSITION_NAMES = """
    thread_position_in_grid thread_position_in_threadgroup threadgroup_position_in_grid threads_per_grid
    threads_per_threadgroup dispatch_threads_per_threadgroup threadgroups_per_grid
    thread_index_in_threadgroup thread_index_in_simdgroup simdgroup_index_in_threadgroup
    simdgroups_per_threadgroup dispatch_simdgroups_per_threadgroup threads_per_simdgroup
    thread_execution_width thread_index_in_quadgroup quadgroup_index_in_threadgroup
    quadgroups_per_threadgroup dispatch_quadgroups_per_threadgroup grid_origin grid_size"""
POSITIONS = frozenset(_POSITION_NAMES.split())
# Types that a buffer's place is given to, and what of a GPU they stand for.
GPU_ONLY = {
    **dict.fromkeys(
        ("acceleration_structure", "primitive_acceleration_structure", "instance_acceleration_structure",
         "intersection_function_table"), "ray tracing"),
    "visible_function_table": "tables of functions",
    **dict.fromkeys(
        ("command_buffer", "compute_pipeline_state", "render_pipeline_state", "depth_stencil_state"),
        "commands that kernels encode"),
    **dict.fromkeys(("imageblock", "imageblock_slice"), "image blocks"),
}  # fmt: skip
# Attributes that leave open what a parameter is bound to: a translator writes `user` where it was given no binding.
_NEUTRAL = frozenset(("function_constant", "user", "maybe_unused"))
_ALIKE = 0.8  # of two names, one of which is a misspelling


@dataclass(frozen=True)
class Attribute:
    """One entry of a `[[...]]` list: its name and the token range of its parenthesized argument (empty if none)."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class Argument:
    """A kernel parameter. `kind` is one of BOUND or the name of a thread-position attribute; `index` is n of
    `[[buffer(n)]]` and its like; `type` is the type as written; tokens `only_if` are the condition on function
    constants under which it exists (empty: it always does)."""

    name: str
    kind: str
    index: int
    type: str
    only_if: tuple[int, int] = (0, 0)


Integer = Callable[[Attribute], int]


def attributes(source: Source, start: int, end: int) -> Iterator[Attribute]:
    """The entries of every `[[...]]` in tokens [start, end)."""
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


def parameters(source: Source, start: int, end: int, integer: Integer) -> tuple[Argument, ...]:
    """The parameters in tokens [start, end). `integer` evaluates an attribute's argument."""
    parsed = [_argument(source, a, b, integer) for a, b in split_parameters(source, start, end)]
    taken = {(a.kind, a.index) for a in parsed}
    result = []
    for argument in parsed:
        index = argument.index
        if argument.kind in BOUND and index < 0:
            index = next(n for n in range(128) if (argument.kind, n) not in taken)
            taken.add((argument.kind, index))
        result.append(replace(argument, index=max(index, 0)))
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


def _argument(source: Source, start: int, end: int, integer: Integer) -> Argument:
    found = list(attributes(source, start, end))
    type_end = next((i for i in range(start, end) if is_attribute(source, i)), end)
    while source.tokens[type_end - 1] == "]":
        type_end = source.match[type_end - 1]
    name, type_end = _parameter_name(source, start, type_end)
    text = source.joined(start, type_end)
    only_if = next(((a.start, a.end) for a in found if a.name == "function_constant"), (0, 0))
    if "tensor" in source.tokens[start:type_end] and source.tokens[type_end - 1] == ">":
        what = f"a tensor is not supported as an argument: `{text} {name}`"
        raise OverlayError("PTR109", what, source.place(start), "Make it in the kernel, over a buffer: tensor_inline.")
    if refused := GPU_ONLY.keys() & set(source.tokens[start:type_end]):
        what = f"the host has no {GPU_ONLY[min(refused)]}: `{text} {name}`"
        raise OverlayError("PTR352", what, source.place(start), "Run this kernel on a Mac; the others run here.")
    known = next((a for a in found if a.name in BOUND or a.name in POSITIONS), None)
    if known is not None:
        index = integer(known) if known.name in BOUND and known.end > known.start else -1
        return Argument(name, known.name, index, text, only_if)
    unsupported = next((a.name for a in found if a.name not in _NEUTRAL), "")
    kind = _implied_kind(source, start, end)
    if unsupported or not kind:
        what = f"[[{unsupported}]]" if unsupported else "a parameter that is neither a resource nor a position"
        near = get_close_matches(unsupported, [*BOUND, *sorted(POSITIONS)], 1, _ALIKE)
        hint = f"Did you mean [[{near[0]}]]?" if near else "Pass the data in a buffer."
        raise OverlayError("PTR109", f"{what} is not supported: `{text} {name}`", source.place(start), hint)
    return Argument(name, kind, -1, text, only_if)


def _parameter_name(source: Source, start: int, end: int) -> tuple[str, int]:
    """A parameter's name ("" without one), and where its type ends."""
    if source.tokens[end - 1] == ")":  # a reference or pointer to an array
        opening = source.match[end - 1]
        name = source.tokens[end - 2]
        return (name, opening) if source.tokens[opening + 1] in ("&", "*") else ("", end)
    if end - start > 1 and source.kinds[end - 1] == "name":
        return source.tokens[end - 1], end - 1
    return "", end


def _implied_kind(source: Source, start: int, end: int) -> str:
    """What a parameter without an attribute is bound to, by its type; "" for nothing."""
    words = source.tokens[start:end]
    if any(_TEXTURE.match(w) for w in words):
        return "texture"
    if "sampler" in words:
        return "sampler"
    if not {"*", "&", "["} & set(words):
        return ""
    return "threadgroup" if "threadgroup" in words else "buffer"
