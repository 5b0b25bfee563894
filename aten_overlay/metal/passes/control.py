"""The control flow of a function: its blocks in an order in which divergent lanes reconverge, and its loops."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from aten_overlay.metal.passes.ir import Block, Function, Instruction, NotUnderstood, result_type

_LABELS = re.compile(r'label %("[^"]*"|[-\w.$]+)')
INCOMING = re.compile(r'\[ (.+?), %("[^"]*"|[-\w.$]+) \]')
_CASE = re.compile(r'(i\d+) (-?\w+), label %("[^"]*"|[-\w.$]+)')


def order_blocks(function: Function) -> list[Block]:
    """The reachable blocks, ordered so that every loop is contiguous and only jumps back to its start lead backward.

    Switches are branches, and each loop has one jump back, from its last block. Raises NotUnderstood.
    """
    blocks = {b.label: b for b in _expand_switches(function.blocks)}
    blocks = _merge_latches(blocks, function.blocks[0].label)
    return [blocks[label] for label in _order_labels(blocks, function.blocks[0].label)]


def find_loops(function: Function) -> dict[str, tuple[list[str], set[str]]]:
    """Of each loop, by the label it starts with: the blocks that jump back to it, and all of its blocks."""
    blocks = {b.label: b for b in _expand_switches(function.blocks)}
    entry = function.blocks[0].label
    before = _find_predecessors(blocks, _postorder(blocks, entry))
    back = _find_back_edges(blocks, entry)
    return {h: (sources, _find_loop_body(before, h, sources)) for h, sources in back.items()}


def name_latch(header: str) -> str:
    """The label of the block that jumps back to `header` where several did."""
    return f"{header}.latch".replace('"', "")


def find_successors(block: Block) -> tuple[str, ...]:
    """The labels a block may go to."""
    return _read_labels(block.instructions[-1].text)


@lru_cache(maxsize=1 << 14)
def _read_labels(text: str) -> tuple[str, ...]:
    return tuple(_LABELS.findall(text))


def _expand_switches(blocks: Iterable[Block]) -> list[Block]:
    """Replaces switches by chains of conditional branches."""
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
    return [_rename_phis(b, renamed.get(b.label, [])) for b in result]


def _rename_phis(block: Block, sources: Sequence[tuple[str, str]]) -> Block:
    """Phis that name every block which now jumps here in place of the switch's."""
    if not sources:
        return block
    instructions = []
    for instruction in block.instructions:
        text = instruction.text
        if instruction.opcode == "phi":
            kind = result_type(instruction)
            rows = []
            for value, source in dict.fromkeys((m[1], m[2]) for m in INCOMING.finditer(text)):
                new = [b for a, b in sources if a == source] or [source]
                rows += [f"[ {value}, %{label} ]" for label in new]
            text = f"phi {kind} {', '.join(rows)}"
        instructions.append(Instruction(instruction.result, instruction.opcode, text))
    return Block(block.label, tuple(instructions))


def _find_dominators(blocks: dict[str, Block], entry: str) -> dict[str, str]:
    """The block that every way to a block comes through last, by label; the entry's is itself.

    Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm.
    """
    reached = _postorder(blocks, entry)
    number = {label: n for n, label in enumerate(reached)}
    before = _find_predecessors(blocks, reached)
    found = {entry: entry}
    changed = True
    while changed:
        changed = False
        for label in reached[-2::-1]:
            known = [p for p in before[label] if p in found]
            new = known[0]
            for other in known[1:]:
                while new != other:
                    if number[new] < number[other]:
                        new = found[new]
                    else:
                        other = found[other]
            changed |= found.get(label) != new
            found[label] = new
    return found


def _postorder(blocks: dict[str, Block], entry: str) -> list[str]:
    order: list[str] = []
    seen = {entry}
    stack = [(entry, iter(find_successors(blocks[entry])))]
    while stack:
        label, rest = stack[-1]
        following = next((s for s in rest if s not in seen), None)
        if following is None:
            order.append(label)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(find_successors(blocks[following]))))
    return order


def _find_back_edges(blocks: dict[str, Block], entry: str) -> dict[str, list[str]]:
    """The sources of the jumps back to each loop's header."""
    dominators = _find_dominators(blocks, entry)
    result: dict[str, list[str]] = {}
    for label in _postorder(blocks, entry)[::-1]:
        targets = dict.fromkeys(find_successors(blocks[label]))
        above = label
        while targets:
            if above in targets:
                del targets[above]
                result.setdefault(above, []).append(label)
            if above == entry:
                break
            above = dominators[above]
    return result


def _merge_latches(blocks: dict[str, Block], entry: str) -> dict[str, Block]:
    """Merges several jumps back to one header into one, through a block that only jumps."""
    result = dict(blocks)
    for header, sources in _find_back_edges(blocks, entry).items():
        if len(sources) < 2:
            continue
        latch = name_latch(header)
        phis: list[Instruction] = []
        moved: list[Instruction] = []
        for instruction in result[header].instructions:
            if instruction.opcode != "phi":
                moved.append(instruction)
                continue
            rows = [(m[1], m[2]) for m in INCOMING.finditer(instruction.text)]
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


def _order_labels(blocks: dict[str, Block], entry: str) -> list[str]:
    """Blocks in an order where every loop is contiguous and all edges but those back to a header lead forward."""
    back = _find_back_edges(blocks, entry)
    reached = _postorder(blocks, entry)
    before = _find_predecessors(blocks, reached)
    bodies = {header: _find_loop_body(before, header, sources) for header, sources in back.items()}
    headers = sorted(bodies, key=lambda h: len(bodies[h]))

    def order(members: set[str], top: str) -> list[str]:
        inner = [h for h in headers if h != top and h in members and bodies[h] < members]
        outermost = [h for h in inner if not any(h in bodies[o] and o != h for o in inner)]
        owner = {label: h for h in outermost for label in bodies[h]}
        nodes = {label: [label] for label in members if label not in owner}
        nodes |= {h: order(bodies[h], h) for h in outermost}
        waiting = dict.fromkeys(nodes, 0)
        leads: dict[str, list[str]] = {n: [] for n in nodes}
        for label in members:
            source = owner.get(label, label)
            for target in find_successors(blocks[label]):
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

    return order(set(reached), entry)


def _find_predecessors(blocks: dict[str, Block], reached: list[str]) -> dict[str, list[str]]:
    before: dict[str, list[str]] = {label: [] for label in reached}
    for label in reached:
        for target in find_successors(blocks[label]):
            before[target].append(label)
    return before


def _find_loop_body(before: dict[str, list[str]], header: str, sources: list[str]) -> set[str]:
    body, frontier = {header}, list(sources)
    while frontier:
        label = frontier.pop()
        if label not in body:
            body.add(label)
            frontier += before.get(label, [])
    return body
