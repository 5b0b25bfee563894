"""Where the lanes of a simdgroup meet when they run one by one.

Lanes that wait in several places go on from the first of them along the kernel, so each place has a number. A loop with
a simdgroup operation inside gets one at its end as well: lanes that left the operation out must not run ahead to that
of the next round.
"""

from __future__ import annotations

import re

from aten_overlay.metal.control import arranged, latch_of, loops
from aten_overlay.metal.ir import Function, NotUnderstood, read_function
from aten_overlay.metal.units import BEGIN, WAIT

_IN_BLOCK = 1000  # places a block may have
_LABEL = re.compile(r'("[^"]*"|[-\w.$]+):')


def with_places(text: str) -> str:
    """A kernel with its places put in, if its control flow is understood; else lanes meet where the lowest waits."""
    try:
        begins, ends = _places(read_function(text))
    except NotUnderstood:
        return text
    convention = re.search(rf"call (\w+ )?void {WAIT}\(", text)
    lines, label = [], ""
    for line in text.split("\n"):
        if found := _LABEL.match(line):
            label = found[1]
        if label in ends and convention and line.startswith(("  br ", "  switch ")):
            lines.append(f"  %pm.meet.{ends[label]} = call ptr {BEGIN}(ptr null, i32 {ends.pop(label)})")
            lines.append(f"  call {convention[1] or ''}void {WAIT}(ptr null)")
        lines.append(line)
    pattern = re.compile(rf"^( *(\S+) = [^\n]*{BEGIN}\([^\n]*, i32 noundef )0\)", re.M)
    return pattern.sub(lambda m: f"{m[1]}{begins[m[2]]})", "\n".join(lines))


def _places(function: Function) -> tuple[dict[str, int], dict[str, int]]:
    """Of operations, by what their begin returns; of ends of loops, by the labels of blocks that jump back."""
    blocks = arranged(function)
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
    for header, (sources, body) in loops(function).items():
        if body & operating:
            latch = sources[0] if len(sources) == 1 else latch_of(header)
            ends |= dict.fromkeys(sources, position[latch] * _IN_BLOCK + _IN_BLOCK - 1)
    return begins, ends
