"""What a kernel reaches in its source, by the names that declarations refer to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from aten_overlay.metal.source.declarations import Entry, Instance, Kernel, Unit, find_candidates, find_definition
from aten_overlay.metal.source.lexer import Source
from aten_overlay.metal.source.syntax import Declaration

SYNCHRONIZING = re.compile(
    r"(__metal_)?(threadgroup_barrier|simdgroup_(barrier|load|store|multiply|multiply_accumulate|matrix|float8x8|half8x8|bfloat8x8)|make_filled_simdgroup_matrix"
    r"|matmul2d|simd_(sum|product|min|max|and|or|xor|any|all|ballot|is_first|active_threads_mask|broadcast\w*|shuffle\w*|prefix\w*)"
    r"|quad_(sum|product|min|max|and|or|xor|any|all|ballot|is_first|active_threads_mask|broadcast\w*|shuffle\w*|prefix\w*))$"
)

# Templates of the library that come to others by name, which a source may have specialized.
_LIBRARY = {"numeric_limits": {"_numeric_limits_impl"}}


def find_reached(unit: Unit, instance: Instance) -> set[str]:
    """The names reached from a kernel."""
    return _close(unit, {instance.short_name, *re.findall(r"\w+", instance.function)})


def find_needed(unit: Unit, asked: Iterable[Instance]) -> list[Entry]:
    """What has to be compiled for some kernels: what they reach, and what matters unnamed. For none, all.

    Nothing calls a kernel, so of its namesakes in other namespaces none is reached.
    """
    chosen = list(asked)
    if not chosen:
        return unit.entries
    own = {id(i.declaration) for i in chosen}
    namesakes = {id(k.declaration) for k in find_namesakes(unit, chosen)}
    roots: set[str] = set()
    for entry in unit.entries:
        if entry.names is None or id(entry.declaration) in own:
            roots |= entry.references
    for instance in chosen:
        roots |= {instance.short_name, *re.findall(r"\w+", instance.function)}
    reached = _close(unit, roots)
    entries = (e for e in unit.entries if id(e.declaration) not in namesakes)
    return [e for e in entries if e.names is None or id(e.declaration) in own or not reached.isdisjoint(e.names)]


def find_namesakes(unit: Unit, asked: Sequence[Instance]) -> list[Kernel]:
    """The kernels with the name of one that is asked for, in namespaces that its name excludes."""
    names = {i.short_name for i in asked}
    candidates = {id(k.declaration) for i in asked for k in find_candidates(unit, i)}
    return [k for k in unit.kernels if k.name in names and id(k.declaration) not in candidates]


def _close(unit: Unit, start: Iterable[str]) -> set[str]:
    seen: set[str] = set()
    frontier = list(start)
    while frontier:
        name = frontier.pop()
        if name not in seen:
            seen.add(name)
            frontier.extend(unit.references.get(name, ()))
            frontier.extend(_LIBRARY.get(name, ()))
    return seen


def synchronizes(unit: Unit, instance: Instance) -> bool:
    """Whether a barrier or simdgroup function can be reached from the kernel, by the names it refers to."""
    return any(SYNCHRONIZING.match(name) for name in find_reached(unit, instance))


def shares_state(unit: Unit, instance: Instance) -> bool:
    """Whether threads of a threadgroup interact: they synchronize, or share variables."""
    return synchronizes(unit, instance) or _has_variables(unit.source, find_definition(unit, instance).declaration)


def _has_variables(source: Source, declaration: Declaration) -> bool:
    body = range(max(declaration.body, declaration.start), declaration.end)
    return any(source.tokens[i] == "threadgroup" and is_variable(source, i) for i in body)


def is_variable(source: Source, i: int) -> bool:
    """Whether the `threadgroup` at token i declares a variable of its own, not a pointer or reference to one."""
    if i and source.tokens[i - 1] not in (";", "{", "}", "const", "volatile", "alignas"):
        return False
    j = i + 1
    while source.tokens[j] not in (";", "="):
        if source.tokens[j] in ("*", "&"):
            return False
        if source.tokens[j] == ")" or source.tokens[j] == "}":
            return False
        j = source.match[j] + 1 if source.tokens[j] in ("(", "[", "{") else j + 1
    return True


def find_waiting(unit: Unit) -> set[str]:
    """The names from which a barrier or simdgroup function can be reached, with those functions' own."""
    found = {name for names in unit.references.values() for name in names if SYNCHRONIZING.match(name)}
    while more := {name for name, names in unit.references.items() if names & found} - found:
        found |= more
    return found
