"""Units of a kernel: the stretches of code between which all lanes of a threadgroup may go one after the other.

A unit has no control flow inside: it is a basic block, or part of one before or after a barrier or simdgroup operation.
Units are numbered so that lanes which parted meet again: running the lowest unit that has lanes waiting, a loop's body
comes before what follows the loop, and the jump back to its start comes last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from aten_overlay.metal.ir import CHEAP, Block, Function, Instruction, NotUnderstood, result_type

BARRIER, WAIT = "@pm_threadgroup_barrier", "@pm_simd_wait"
_DROPPED = ("@llvm.lifetime.", "@llvm.assume", "@llvm.experimental.noalias", "@llvm.invariant.", "@pm_lane_ended")
_LABELS = re.compile(r'label %("[^"]*"|[-\w.$]+)')
_INCOMING = re.compile(r'\[ (.+?), %("[^"]*"|[-\w.$]+) \]')
_CASE = re.compile(r'(i\d+) (-?\w+), label %("[^"]*"|[-\w.$]+)')


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
    blocks = {b.label: b for b in _without_switches(function.blocks)}
    blocks = _with_single_latches(blocks, function.blocks[0].label)
    order = _order(blocks, function.blocks[0].label)
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


def successors(block: Block) -> list[str]:
    """The labels a block may go to."""
    return _LABELS.findall(block.instructions[-1].text)


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
        value = next(m[1] for m in _INCOMING.finditer(instruction.text) if m[2] == source)
        found.append(Copy(instruction.result, result_type(instruction), value))
    return tuple(found)


def _without_switches(blocks: Iterable[Block]) -> list[Block]:
    """Switches made chains of conditional branches."""
    result: list[Block] = []
    renamed: dict[str, list[tuple[str, str]]] = {}
    for block in blocks:
        end = block.instructions[-1]
        if end.opcode != "switch":
            result.append(block)
            continue
        default = _LABELS.findall(end.text)[0]
        value = end.text.split(" ", 2)[2].split(",")[0]
        cases = _CASE.findall(end.text.split("[", 1)[1])
        label, head = block.label, block.instructions[:-1]
        for n, (kind, number, target) in enumerate(cases):
            other = f"{block.label}.case{n + 1}" if n + 1 < len(cases) else default
            name = f"%{block.label}.is{n}"
            test = Instruction(name, "icmp", f"icmp eq {kind} {value}, {number}")
            branch = Instruction("", "br", f"br i1 {name}, label %{target}, label %{other}")
            if '"' in block.label or target == other:
                raise NotUnderstood(end.text)
            result.append(Block(label, (*head, test, branch)))
            renamed.setdefault(target, []).append((block.label, label))
            renamed.setdefault(other, []).append((block.label, label))
            label, head = other, ()
        if not cases:
            result.append(Block(label, (*head, Instruction("", "br", f"br label %{default}"))))
    return [_renamed_phis(b, renamed.get(b.label, [])) for b in result]


def _renamed_phis(block: Block, sources: Sequence[tuple[str, str]]) -> Block:
    """Phis that name every block which now jumps here in place of the switch's."""
    if not sources:
        return block
    instructions = []
    for instruction in block.instructions:
        text = instruction.text
        if instruction.opcode == "phi":
            kind = result_type(instruction)
            rows = []
            for value, source in dict.fromkeys((m[1], m[2]) for m in _INCOMING.finditer(text)):
                new = [b for a, b in sources if a == source] or [source]
                rows += [f"[ {value}, %{label} ]" for label in new]
            text = f"phi {kind} {', '.join(rows)}"
        instructions.append(Instruction(instruction.result, instruction.opcode, text))
    return Block(block.label, tuple(instructions))


def _dominators(blocks: dict[str, Block], entry: str) -> dict[str, set[str]]:
    reached = _postorder(blocks, entry)[::-1]
    before: dict[str, list[str]] = {label: [] for label in reached}
    for label in reached:
        for target in successors(blocks[label]):
            before[target].append(label)
    dominators = {label: set(reached) for label in reached}
    dominators[entry] = {entry}
    changed = True
    while changed:
        changed = False
        for label in reached[1:]:
            new = set.intersection(*(dominators[p] for p in before[label])) | {label}
            changed |= new != dominators[label]
            dominators[label] = new
    return dominators


def _postorder(blocks: dict[str, Block], entry: str) -> list[str]:
    order: list[str] = []
    seen = {entry}
    stack = [(entry, iter(successors(blocks[entry])))]
    while stack:
        label, rest = stack[-1]
        following = next((s for s in rest if s not in seen), None)
        if following is None:
            order.append(label)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(successors(blocks[following]))))
    return order


def _back_edges(blocks: dict[str, Block], entry: str) -> dict[str, list[str]]:
    """The sources of the jumps back to each loop's header."""
    dominators = _dominators(blocks, entry)
    result: dict[str, list[str]] = {}
    for label in dominators:
        for target in dict.fromkeys(successors(blocks[label])):
            if target in dominators[label]:
                result.setdefault(target, []).append(label)
    return result


def _with_single_latches(blocks: dict[str, Block], entry: str) -> dict[str, Block]:
    """Several jumps back to one header made one, through a block that only jumps."""
    result = dict(blocks)
    for header, sources in _back_edges(blocks, entry).items():
        if len(sources) < 2:
            continue
        latch = f"{header}.latch".replace('"', "")
        phis: list[Instruction] = []
        moved: list[Instruction] = []
        for instruction in result[header].instructions:
            if instruction.opcode != "phi":
                moved.append(instruction)
                continue
            rows = [(m[1], m[2]) for m in _INCOMING.finditer(instruction.text)]
            kind, name = result_type(instruction), f"%{latch}.{len(phis)}"
            inner = ", ".join(f"[ {v}, %{s} ]" for v, s in rows if s in sources)
            outer = ", ".join([*(f"[ {v}, %{s} ]" for v, s in rows if s not in sources), f"[ {name}, %{latch} ]"])
            phis.append(Instruction(name, "phi", f"phi {kind} {inner}"))
            moved.append(Instruction(instruction.result, "phi", f"phi {kind} {outer}"))
        result[header] = Block(header, tuple(moved))
        result[latch] = Block(latch, (*phis, Instruction("", "br", f"br label %{header}")))
        for source in sources:
            *body, end = result[source].instructions
            text = _LABELS.sub(lambda m: f"label %{latch}" if m[1] == header else m[0], end.text)  # noqa: B023
            result[source] = Block(source, (*body, Instruction("", end.opcode, text)))
    return result


def _order(blocks: dict[str, Block], entry: str) -> list[str]:
    """Blocks in an order where every loop is contiguous and edges but those back to a header lead on."""
    back = _back_edges(blocks, entry)
    reached = _postorder(blocks, entry)
    bodies = {header: _natural_loop(blocks, reached, header, sources) for header, sources in back.items()}
    headers = sorted(bodies, key=lambda h: len(bodies[h]))

    def arranged(members: set[str], top: str) -> list[str]:
        inner = [h for h in headers if h != top and h in members and bodies[h] < members]
        outermost = [h for h in inner if not any(h in bodies[o] and o != h for o in inner)]
        owner = {label: h for h in outermost for label in bodies[h]}
        nodes = {label: [label] for label in members if label not in owner}
        nodes |= {h: arranged(bodies[h], h) for h in outermost}
        waiting = dict.fromkeys(nodes, 0)
        leads: dict[str, list[str]] = {n: [] for n in nodes}
        for label in members:
            source = owner.get(label, label)
            for target in successors(blocks[label]):
                node = owner.get(target, target)
                if target in members and node != source and target != top:
                    leads[source].append(node)
                    waiting[node] += 1
        ready, result = [n for n in nodes if not waiting[n]], []
        while ready:
            node = ready.pop()
            result += nodes[node]
            for following in leads[node]:
                waiting[following] -= 1
                if not waiting[following]:
                    ready.append(following)
        if len(result) != len(members):
            raise NotUnderstood("a loop with two entries")
        return result

    return arranged(set(reached), entry)


def _natural_loop(blocks: dict[str, Block], reached: list[str], header: str, sources: list[str]) -> set[str]:
    before: dict[str, list[str]] = {}
    for label in reached:
        for target in successors(blocks[label]):
            before.setdefault(target, []).append(label)
    body, frontier = {header}, list(sources)
    while frontier:
        label = frontier.pop()
        if label not in body:
            body.add(label)
            frontier += before.get(label, [])
    return body


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
