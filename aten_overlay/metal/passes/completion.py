"""Completes a compiled module with what C++ cannot express: how much threadgroup memory each kernel declares, the
numbers of its synchronization points, and the form of a kernel that runs a threadgroup in lockstep."""

from __future__ import annotations

import re
from collections.abc import Iterable

from aten_overlay.metal.passes.control import find_loops, name_latch, order_blocks
from aten_overlay.metal.passes.inlining import find_references, find_waiting
from aten_overlay.metal.passes.ir import GLOBAL, Function, NotUnderstood, first_type, functions, read_function
from aten_overlay.metal.passes.lockstep import DECLARATIONS, RESULT, SOURCE, write_lockstep
from aten_overlay.metal.passes.regions import BEGIN, WAIT

_VARIABLE = re.compile(rf"^({GLOBAL.pattern}) = [^\n]*?thread_local[^\n]*? global ([^\n]*)$", re.MULTILINE)


def complete_module(module: str, lockstep: bool) -> str:
    """`module`, LLVM IR with a `pm_lane_source_N` for each kernel N that shares memory or synchronizes, with its
    `pm_static_bytes_N` and, if `lockstep` and where it can be made, its `pm_lockstep_N`."""
    spans = list(functions(module))
    references = find_references(module, spans)
    waiting = find_waiting(references)
    after = spans[-1][1] if spans else 0
    metadata = 1 + max((int(n) for n in re.findall(r"^!(\d+) = ", module[after:], re.M)), default=-1)
    pieces, written, made, at = [], [], set(), 0
    for start, end, name in spans:
        if not name.startswith(SOURCE):
            continue
        pieces += [module[at:start], number_synchronization_points(module[start:end])]
        at = end
        try:
            text, used = write_lockstep(module[start:end], name, waiting, metadata) if lockstep else ("", 0)
        except NotUnderstood:
            continue
        written.append(text)
        metadata += used
        made.add(name.replace(SOURCE, RESULT) if text else "")
    sizes = [
        _write_size(name.removeprefix(SOURCE), kinds) for name, kinds in _find_variables(module, references).items()
    ]
    return "\n".join([_remove_declarations(made, "".join([*pieces, module[at:]])), *written, *sizes, DECLARATIONS])


def _remove_declarations(made: set[str], module: str) -> str:
    """Removes the declarations of what is now defined."""
    module = re.sub(r"\n@pm_static_bytes_\d+ = external [^\n]*", "", module)
    if not made:
        return module
    pattern = re.compile(rf"^declare [^\n]*({RESULT}\d+)\([^\n]*\n", re.M)
    return pattern.sub(lambda m: "" if m[1] in made else m[0], module)


def _find_variables(module: str, references: dict[str, set[str]]) -> dict[str, list[str]]:
    """The types of the threadgroup variables that each kernel reaches."""
    kinds = {m[1]: first_type(m[2]) for m in _VARIABLE.finditer(module)}
    sources = [name for name in references if name.startswith(SOURCE)]
    return {name: [kinds[v] for v in _find_reached(name, references) if v in kinds] for name in sources}


def _find_reached(name: str, references: dict[str, set[str]]) -> Iterable[str]:
    reached, frontier = {name: None}, [name]
    while frontier:
        for other in sorted(references.get(frontier.pop(), ())):
            if other not in reached:
                reached[other] = None
                frontier.append(other)
    return reached


def _write_size(number: str, kinds: list[str]) -> str:
    total = "i64 0"
    for kind in kinds:
        total = f"i64 add ({total}, i64 ptrtoint (ptr getelementptr ({kind}, ptr null, i32 1) to i64))"
    return f"@pm_static_bytes_{number} = hidden constant i32 trunc ({total} to i32)\n"


_IN_BLOCK = 1000  # points a block may have
_LABEL = re.compile(r'("[^"]*"|[-\w.$]+):')


def number_synchronization_points(text: str) -> str:
    """The text of a kernel with its points numbered: where the lanes of a simdgroup meet when they run one by one.

    Lanes that wait at several points continue from the first of them. A loop with a simdgroup operation inside gets a
    point at its end as well: lanes that skipped the operation must not run ahead to the next iteration's. The text is
    unchanged where its control flow is not understood, and then lanes meet where the lowest of them waits.
    """
    if BEGIN not in text:
        return text
    try:
        begins, ends = _find_points(
            read_function("\n".join(line for line in text.split("\n") if not line.startswith("  %") or BEGIN in line))
        )
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


def _find_points(function: Function) -> tuple[dict[str, int], dict[str, int]]:
    """The numbers of operations, by the name of their `begin`, and of ends of loops, by the label that jumps back."""
    blocks = order_blocks(function)
    position = {block.label: n for n, block in enumerate(blocks)}
    begins: dict[str, int] = {}
    operating = set()
    for block in blocks:
        started = [i.result for i in block.instructions if i.callee == BEGIN]
        if len(started) >= _IN_BLOCK - 1:
            raise NotUnderstood("too many operations in one block")
        begins |= {name: position[block.label] * _IN_BLOCK + n for n, name in enumerate(started, 1)}
        if started:
            operating.add(block.label)
    ends: dict[str, int] = {}
    for header, (sources, body) in find_loops(function).items():
        if body & operating:
            latch = sources[0] if len(sources) == 1 else name_latch(header)
            ends |= dict.fromkeys(sources, position[latch] * _IN_BLOCK + _IN_BLOCK - 1)
    return begins, ends
