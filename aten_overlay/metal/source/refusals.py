"""What a C++ compiler of the host takes and Apple's compiler of Metal refuses, as far as declarations and words tell.

Each rule is one that Apple's compiler was seen to apply; its own words are beside it. Where tokens leave a case open it
passes: to refuse what compiles on a Mac is worse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from aten_overlay.compile_errors import describe_errors
from aten_overlay.errors import OverlayError
from aten_overlay.metal.source.arguments import attributes, split_parameters
from aten_overlay.metal.source.declarations import Kernel, Unit
from aten_overlay.metal.source.lexer import Source, is_attribute, skip_angles
from aten_overlay.metal.source.syntax import Declaration, class_key, is_explicit

_OF_FUNCTIONS = frozenset(("kernel", "host_name", "max_total_threads_per_threadgroup"))
# What has as many dimensions in all parameters of a kernel.
_OF_GRIDS = frozenset((
    "thread_position_in_grid", "thread_position_in_threadgroup", "threadgroup_position_in_grid", "threads_per_grid",
    "threads_per_threadgroup", "threadgroups_per_grid",
))  # fmt: skip
_POSITION = re.compile(r"(?:u?int|u?short)([234]?)$|uint(?:16|32)_t$")
_NO_PLAIN_VARIABLES = frozenset((
    "constant", "device", "thread", "threadgroup", "sampler", "operator", "(", "extern", "typedef", "using", "friend",
    "static_assert", "namespace", "asm", "concept",
))  # fmt: skip
_NUMBERS = frozenset(
    f"{name}{size}"
    for name in ("bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "float")
    for size in ("", "2", "3", "4")
) | {"auto", "size_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "int8_t", "int16_t", "int32_t", "int64_t"}
_RESERVED = frozenset(("half", "bfloat"))
_LAST_BUFFER = 30


class _Objection(NamedTuple):
    """What is wrong at a token, and what to do."""

    at: int
    what: str
    hint: str


def refuse(unit: Unit) -> None:
    """Raises PTR101 for the first thing in a source that Apple's compiler refuses."""
    rules = (_attributes, _positions, _buffers, _variables, _names)
    objections = sorted(objection for rule in rules for objection in rule(unit))
    if objections:
        errors = [(str(unit.source.place(objection.at)), objection.what) for objection in objections]
        told = describe_errors(errors, "".join(f"{place}: {what}\n" for place, what in errors))
        what = f"the Metal source does not compile: {told}"
        raise OverlayError("PTR101", what, unit.source.place(objections[0].at), objections[0].hint)


_BEFORE = "Write it before `kernel`: the host compiler takes it, Apple's does not."


def _attributes(unit: Unit) -> Iterator[_Objection]:
    """Apple's of one after the parameters: 'max_total_threads_per_threadgroup' attribute cannot be applied to types."""
    source = unit.source
    for kernel in unit.kernels:
        for i in range(kernel.closing + 1, kernel.declaration.body):
            names = (
                [each.name for each in attributes(source, i, source.match[i] + 1)] if is_attribute(source, i) else []
            )
            for name in _OF_FUNCTIONS & set(names):
                yield _Objection(i, f"the attribute `{name}` cannot be applied to types", _BEFORE)
        yield from _among_specifiers(source, kernel)


def _among_specifiers(source: Source, kernel: Kernel) -> Iterator[_Objection]:
    """Apple's: an attribute list cannot appear here."""
    i = _first_specifier(source, kernel.declaration)
    while i < kernel.opening:
        after = _skip_attributes(source, i)
        if i < after < kernel.opening:
            yield _Objection(i, "an attribute list cannot appear here", _BEFORE)
        i = max(after, i + 1)


def _positions(unit: Unit) -> Iterator[_Objection]:
    """Apple's: expecting input declarations with either all scalar types or all vector types with the same number of
    elements."""
    source = unit.source
    for kernel in unit.kernels:
        seen: dict[str, str] = {}
        for start, end in split_parameters(source, kernel.opening + 1, kernel.closing):
            at = next((i for i in range(start, end) if is_attribute(source, i)), end)
            names = [each.name for each in attributes(source, at, end) if each.name in _OF_GRIDS]
            types = [found for i in range(start, at) if (found := _POSITION.match(source.tokens[i]))]
            if names and types:
                seen.setdefault(types[0][1] or "", f"`{types[0][0]}` of [[{names[0]}]]")
        if len(seen) > 1:
            one, other, *_ = seen.values()
            what = f"{one} and {other} have different numbers of elements"
            yield _Objection(kernel.declaration.start, what, "Give all of them as many: uint, uint2 or uint3.")


def _buffers(unit: Unit) -> Iterator[_Objection]:
    """Apple's: 'buffer' attribute parameter is out of bounds: must be between 0 and 30. And: cannot reserve 'buffer'
    resource location at index 0."""
    source = unit.source
    for kernel in unit.kernels:
        seen: set[str] = set()
        for start, end in split_parameters(source, kernel.opening + 1, kernel.closing):
            listed = {a.name: source.tokens[a.start : a.end] for a in attributes(source, start, end)}
            index = listed.get("buffer", [])
            if len(index) != 1 or not index[0].isdigit() or "function_constant" in listed:
                continue
            at = next(i for i in range(start, end) if is_attribute(source, i))
            if int(index[0]) > _LAST_BUFFER:
                what = f"buffer {index[0]} is out of bounds: the last one is {_LAST_BUFFER}"
                yield _Objection(at, what, "Bind fewer buffers, or one that holds the addresses of others.")
            elif index[0] in seen:
                yield _Objection(at, f"two arguments are buffer {index[0]}", "Give each argument an index of its own.")
            seen.add(index[0])


def _variables(unit: Unit) -> Iterator[_Objection]:
    """Apple's: program scope variable must reside in constant address space."""
    for entry in unit.entries:
        name = _name_of_variable(unit.source, entry.declaration) if entry.names else ""
        if name:
            what = f"the program scope variable `{name}` must reside in constant address space"
            yield _Objection(entry.declaration.start, what, "Write `constant` before its type.")


def _name_of_variable(source: Source, declaration: Declaration) -> str:
    """The name of a variable that is in no address space and is given a value; "" for anything else."""
    if is_explicit(source, declaration) or class_key(source, declaration):
        return ""
    start = _first_specifier(source, declaration)
    for i in range(start, declaration.end):
        if source.tokens[i] in _NO_PLAIN_VARIABLES or is_attribute(source, i):
            return ""
        if source.tokens[i] in ("=", "{"):
            while source.tokens[i - 1] == "]":
                i = source.match[i - 1]
            return source.tokens[i - 1] if source.kinds[i - 1] == "name" and i - 1 > start else ""
    return ""


def _names(unit: Unit) -> Iterator[_Objection]:
    """Apple's: cannot combine with previous 'type-name' declaration specifier. No header declares `half`, a keyword.
    And: 'double' is not supported in Metal."""
    source = unit.source
    tokens = source.tokens
    for i in range(1, len(tokens) - 1):
        if tokens[i] == "double":
            yield _Objection(i, "`double` is not supported in Metal", "Compute in float, or in two of them.")
        if tokens[i] not in _RESERVED:
            continue
        is_pointer = tokens[i - 1] in ("*", "&") and tokens[i + 1] in (",", ")", ";", "=")
        if tokens[i - 1] in _NUMBERS or is_pointer:
            yield _Objection(i, f"`{tokens[i]}` is a type and cannot be declared", "Give it another name.")


def _first_specifier(source: Source, declaration: Declaration) -> int:
    """What follows the parameters of a template and the attributes of all that is declared."""
    i = declaration.start
    while source.tokens[i] == "template" and source.tokens[i + 1] == "<":
        i = max(skip_angles(source, i + 1, declaration.end), i + 1)
    return _skip_attributes(source, i)


def _skip_attributes(source: Source, i: int) -> int:
    while is_attribute(source, i):
        i = source.match[i] + 1
    return i
