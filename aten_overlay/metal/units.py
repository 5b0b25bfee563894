"""Units of a kernel: the stretches of code between which all lanes of a threadgroup may go one after the other.

A unit has no control flow inside: it is a basic block, or part of one before or after a barrier or simdgroup operation.
Units are numbered so that lanes which parted meet again: running the lowest unit that has lanes waiting, a loop's body
comes before what follows the loop, and the jump back to its start comes last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from aten_overlay.metal.control import INCOMING, arranged, successors
from aten_overlay.metal.ir import CHEAP, Block, Function, Instruction, NotUnderstood, result_type

BARRIER, BEGIN, WAIT = "@pm_threadgroup_barrier", "@pm_simd_begin", "@pm_simd_wait"
_DROPPED = ("@llvm.lifetime.", "@llvm.assume", "@llvm.experimental.noalias", "@llvm.invariant.", "@pm_lane_ended")


@dataclass(frozen=True)
class Copy:
    """What an edge gives a phi."""

    phi: str
    type: str
    value: str


@dataclass(frozen=True)
class Edge:
    """The way to another unit."""

    target: int
    copies: tuple[Copy, ...] = ()


@dataclass(frozen=True)
class Unit:
    """`edges` are one (a jump), two (`condition` true, false) or none (the lane ends). A unit that waits holds nothing
    else; `step` is the function its simdgroups run then, "" at a threadgroup barrier."""

    instructions: tuple[Instruction, ...] = ()
    edges: tuple[Edge, ...] = ()
    condition: str = ""
    waits: bool = False
    step: str = ""


def units(function: Function) -> list[Unit]:
    """The units of a function, the entry first. Raises NotUnderstood (irreducible loops, unknown terminators)."""
    blocks = {b.label: b for b in arranged(function)}
    order = list(blocks)
    parts = {label: _parts(blocks[label]) for label in order}
    first: dict[str, int] = {}
    count = 0
    for label in order:
        first[label] = count
        count += len(parts[label])
    result: list[Unit] = []
    for label in order:
        for part in parts[label][:-1]:
            result.append(replace(part, edges=(Edge(len(result) + 1),)))
        result.append(_ended(parts[label][-1], blocks[label], blocks, first))
    return _with_safe_copies(result)


def _parts(block: Block) -> list[Unit]:
    """The block's instructions, cut where lanes wait."""
    parts: list[Unit] = []
    found: list[Instruction] = []
    for instruction in block.instructions[:-1]:
        callee = instruction.callee
        if instruction.opcode == "phi" or callee.startswith(_DROPPED):
            continue
        if callee in (BARRIER, WAIT):
            step = re.search(r"(@[-\w.$\"]+|null|%\S+)\)", instruction.text) if callee == WAIT else None
            if step and step[1].startswith("%"):
                raise NotUnderstood(instruction.text)
            name = step[1] if step and step[1] != "null" else ""
            parts += [Unit(tuple(found)), Unit(waits=True, step=name)]
            found = []
        else:
            found.append(instruction)
    return [*parts, Unit(tuple(found))]


def _ended(part: Unit, block: Block, blocks: dict[str, Block], first: dict[str, int]) -> Unit:
    end = block.instructions[-1]
    targets = successors(block)
    edges = tuple(Edge(first[t], _copies(block.label, blocks[t])) for t in targets)
    condition = end.text.split(",")[0].removeprefix("br i1 ") if len(targets) == 2 else ""
    if len(edges) == 2 and edges[0].target == edges[1].target:
        raise NotUnderstood(end.text)
    return replace(part, edges=edges, condition=condition)


def _copies(source: str, target: Block) -> tuple[Copy, ...]:
    found = []
    for instruction in target.instructions:
        if instruction.opcode != "phi":
            break
        value = next(m[1] for m in INCOMING.finditer(instruction.text) if m[2] == source)
        found.append(Copy(instruction.result, result_type(instruction), value))
    return tuple(found)


def _with_safe_copies(found: list[Unit]) -> list[Unit]:
    """Copies of a branch are made whichever way it goes. Those that the other way could see get a unit of their own."""
    result = list(found)
    readers = _readers(found)
    for number, unit in enumerate(found):
        if len(unit.edges) < 2:
            continue
        edges = list(unit.edges)
        for side in (0, 1):
            edge, other = unit.edges[side], unit.edges[1 - side]
            seen = _reachable(found, other.target, edge.target)
            if any(readers.get(c.phi, set()) & seen for c in edge.copies):
                edges[side] = Edge(-1 - side, edge.copies)
        result[number] = replace(unit, edges=tuple(edges))
    return _renumbered(found, result)


def _readers(found: list[Unit]) -> dict[str, set[int]]:
    """The units that read each value, directly or through what may be computed again from it."""
    direct: dict[str, set[int]] = {}
    users: dict[str, set[str]] = {}
    for number, unit in enumerate(found):
        for instruction in unit.instructions:
            for name in instruction.operands:
                direct.setdefault(name, set()).add(number)
                if instruction.opcode in CHEAP:
                    users.setdefault(name, set()).add(instruction.result)
        for name in (unit.condition, *(c.value for e in unit.edges for c in e.copies)):
            direct.setdefault(name, set()).add(number)
    result = {}
    for name in direct:
        names, frontier = {name}, [name]
        while frontier:
            for user in users.get(frontier.pop(), ()):
                if user not in names:
                    names.add(user)
                    frontier.append(user)
        result[name] = set().union(*(direct.get(n, set()) for n in names))
    return result


def _reachable(found: list[Unit], start: int, without: int) -> set[int]:
    seen: set[int] = set()
    frontier = [start]
    while frontier:
        number = frontier.pop()
        if number not in seen and number != without:
            seen.add(number)
            frontier += [e.target for e in found[number].edges]
    return seen


def _renumbered(found: list[Unit], changed: list[Unit]) -> list[Unit]:
    """Puts a unit for the copies of an edge right behind the unit it leaves."""
    places, at = [], 0
    for unit in changed:
        places.append(at)
        at += 1 + sum(e.target < 0 for e in unit.edges)
    result: list[Unit] = []
    for number, unit in enumerate(changed):
        extra, edges = [], []
        for side, edge in enumerate(unit.edges):
            if edge.target < 0:
                target = found[number].edges[side].target
                extra.append(Unit(edges=(Edge(places[target], edge.copies),)))
                edges.append(Edge(places[number] + len(extra)))
            else:
                edges.append(Edge(places[edge.target], edge.copies))
        result += [replace(unit, edges=tuple(edges)), *extra]
    return result
