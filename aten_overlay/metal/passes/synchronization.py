"""Numbers the synchronization points of a kernel: where the lanes of a simdgroup meet when they run one by one.

Lanes that wait at several points continue from the first of them in the kernel's order. A loop with a simdgroup
operation inside gets a point at its end as well: lanes that skipped the operation must not run ahead to the next
iteration's.
"""

from __future__ import annotations

import re

from aten_overlay.metal.passes.control import find_loops, name_latch, order_blocks
from aten_overlay.metal.passes.ir import Function, NotUnderstood, read_function
from aten_overlay.metal.passes.regions import BEGIN, WAIT

_IN_BLOCK = 1000  # points a block may have
_LABEL = re.compile(r'("[^"]*"|[-\w.$]+):')


def number_synchronization_points(text: str) -> str:
    """The text of a kernel with its points numbered; unchanged where its control flow is not understood, and then lanes
    meet where the lowest of them waits.
    """
    if BEGIN not in text:
        return text
    try:
        begins, ends = _find_points(read_function(_select_control_flow(text)))
    except NotUnderstood:
        return text
    convention = re.search(rf"call (\w+ )?void {WAIT}\(", text)
    numbered = re.compile(rf"( *(\S+) = .*{BEGIN}\(.*, i32 noundef )0\)")
    lines, label = [], ""
    for line in text.split("\n"):
        if not line.startswith(" ") and (found := _LABEL.match(line)):
            label = found[1]
        if BEGIN in line and (found := numbered.match(line)):
            line = f"{found[1]}{begins[found[2]]}){line[found.end() :]}"
        if label in ends and convention and line.startswith(("  br ", "  switch ")):
            lines.append(f"  %pm.meet.{ends[label]} = call ptr {BEGIN}(ptr null, i32 {ends.pop(label)})")
            lines.append(f"  call {convention[1] or ''}void {WAIT}(ptr null)")
        lines.append(line)
    return "\n".join(lines)


def _select_control_flow(text: str) -> str:
    """A function without the instructions that neither end a block nor begin an operation: most of them."""
    return "\n".join(line for line in text.split("\n") if not line.startswith("  %") or BEGIN in line)


def _find_points(function: Function) -> tuple[dict[str, int], dict[str, int]]:
    """The numbers of operations, by the name of their `begin`, and of ends of loops, by the label that jumps back."""
    blocks = order_blocks(function)
    position = {block.label: n for n, block in enumerate(blocks)}
    begins: dict[str, int] = {}
    operating = set()
    for block in blocks:
        found = [i.result for i in block.instructions if i.callee == BEGIN]
        if len(found) >= _IN_BLOCK - 1:
            raise NotUnderstood("too many operations in one block")
        begins |= {name: position[block.label] * _IN_BLOCK + n for n, name in enumerate(found, 1)}
        if found:
            operating.add(block.label)
    ends: dict[str, int] = {}
    for header, (sources, body) in find_loops(function).items():
        if body & operating:
            latch = sources[0] if len(sources) == 1 else name_latch(header)
            ends |= dict.fromkeys(sources, position[latch] * _IN_BLOCK + _IN_BLOCK - 1)
    return begins, ends
