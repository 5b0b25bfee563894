"""Parallel regions of a kernel: code between synchronization points, which lanes may run in any order.

A region has no control flow inside: it is a basic block, or the part of one before or after a barrier or a simdgroup
operation. Regions are numbered so that divergent lanes reconverge: the lowest region with lanes waiting runs first, so
a loop's body runs before what follows the loop, and the jump back to its start comes last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from aten_overlay.metal.passes.control import INCOMING, find_successors, order_blocks
from aten_overlay.metal.passes.ir import CHEAP, Block, Function, Instruction, NotUnderstood, result_type

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
    """A transition to another region."""

    target: int
    copies: tuple[Copy, ...] = ()


@dataclass(frozen=True)
class Region:
    """`edges` are one (a jump), two (`condition` true, false) or none (the lane ends).

    A synchronization point (`waits`) is a region of its own; `step` is what its simdgroups run there, "" at a
    threadgroup barrier.
    """

    instructions: tuple[Instruction, ...] = ()
    edges: tuple[Edge, ...] = ()
    condition: str = ""
    waits: bool = False
    step: str = ""


def form_regions(function: Function) -> list[Region]:
    """The parallel regions of a function, the entry first. Raises NotUnderstood."""
    blocks = {b.label: b for b in order_blocks(function)}
    order = list(blocks)
    parts = {label: _split_block(blocks[label]) for label in order}
    first: dict[str, int] = {}
    count = 0
    for label in order:
        first[label] = count
        count += len(parts[label])
    result: list[Region] = []
    for label in order:
        for part in parts[label][:-1]:
            result.append(replace(part, edges=(Edge(len(result) + 1),)))
        result.append(_add_edges(parts[label][-1], blocks[label], blocks, first))
    return _isolate_copies(result)


def _split_block(block: Block) -> list[Region]:
    """The block's instructions, split at synchronization points."""
    parts: list[Region] = []
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
            parts += [Region(tuple(found)), Region(waits=True, step=name)]
            found = []
        else:
            found.append(instruction)
    return [*parts, Region(tuple(found))]


def _add_edges(part: Region, block: Block, blocks: dict[str, Block], first: dict[str, int]) -> Region:
    end = block.instructions[-1]
    targets = find_successors(block)
    edges = tuple(Edge(first[t], _find_copies(block.label, blocks[t])) for t in targets)
    condition = end.text.split(",")[0].removeprefix("br i1 ") if len(targets) == 2 else ""
    if len(edges) == 2 and edges[0].target == edges[1].target:
        raise NotUnderstood(end.text)
    return replace(part, edges=edges, condition=condition)


def _find_copies(source: str, target: Block) -> tuple[Copy, ...]:
    found = []
    for instruction in target.instructions:
        if instruction.opcode != "phi":
            break
        value = next(m[1] for m in INCOMING.finditer(instruction.text) if m[2] == source)
        found.append(Copy(instruction.result, result_type(instruction), value))
    return tuple(found)


def _isolate_copies(found: list[Region]) -> list[Region]:
    """A branch makes its copies whichever way it goes. Those that the other way could see get a region of their own."""
    result = list(found)
    readers = _find_readers(found)
    for number, region in enumerate(found):
        if len(region.edges) < 2:
            continue
        edges = list(region.edges)
        for side in (0, 1):
            edge, other = region.edges[side], region.edges[1 - side]
            seen = _find_reachable(found, other.target, edge.target)
            if any(readers.get(c.phi, set()) & seen for c in edge.copies):
                edges[side] = Edge(-1 - side, edge.copies)
        result[number] = replace(region, edges=tuple(edges))
    return _renumber(found, result)


def _find_readers(found: list[Region]) -> dict[str, set[int]]:
    """The regions that read each value, directly or through what may be computed again from it."""
    direct: dict[str, set[int]] = {}
    users: dict[str, set[str]] = {}
    for number, region in enumerate(found):
        for instruction in region.instructions:
            for name in instruction.operands:
                direct.setdefault(name, set()).add(number)
                if instruction.opcode in CHEAP:
                    users.setdefault(name, set()).add(instruction.result)
        for name in (region.condition, *(c.value for e in region.edges for c in e.copies)):
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


def _find_reachable(found: list[Region], start: int, without: int) -> set[int]:
    seen: set[int] = set()
    frontier = [start]
    while frontier:
        number = frontier.pop()
        if number not in seen and number != without:
            seen.add(number)
            frontier += [e.target for e in found[number].edges]
    return seen


def _renumber(found: list[Region], changed: list[Region]) -> list[Region]:
    """Puts a region for the copies of an edge right behind the region it leaves."""
    starts, at = [], 0
    for region in changed:
        starts.append(at)
        at += 1 + sum(e.target < 0 for e in region.edges)
    result: list[Region] = []
    for number, region in enumerate(changed):
        extra, edges = [], []
        for side, edge in enumerate(region.edges):
            if edge.target < 0:
                target = found[number].edges[side].target
                extra.append(Region(edges=(Edge(starts[target], edge.copies),)))
                edges.append(Edge(starts[number] + len(extra)))
            else:
                edges.append(Edge(starts[edge.target], edge.copies))
        result += [replace(region, edges=tuple(edges)), *extra]
    return result
