"""Scans: each result is the sum, or the product, of the elements of its row up to its own.

The threads of a row have an equal part of it each: they reduce that, scan what all have, and go over their part again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from porter.loops.expressions import Expr, Loop, Op, Reduction, ReductionKind, intern, walk
from porter.loops.fusion import LoopNest, Shape
from porter.loops.host_values import Binary, Operator, SizeProduct
from porter.loops.program import Programs, ResultBuffer, SymbolicNest, SymbolicProgram
from porter.metal.loop_spelling import Spelling, name_reduction, write_size, write_start, write_turn
from porter.metal.loop_text import NestWriter

_SCANNED = (ReductionKind.SUM, ReductionKind.PRODUCT)
_MOST_THREADS = 1024


@dataclass(frozen=True)
class ScanNest(SymbolicNest):
    """A nest whose value is what is scanned, as a reduction of that kind would, along one of its loops."""

    along: Loop
    kind: ReductionKind


def with_scans(programs: Programs) -> Programs:
    """The programs with each case that sums up to every element as a scan."""
    return replace(programs, cases=tuple(_find_scan(case) or case for case in programs.cases))


def _find_scan(case: SymbolicProgram) -> SymbolicProgram | None:
    if len(case.nests) != 1 or case.nests[0].nest.shape is not Shape.REDUCTION or len(case.nests[0].nest.stores) != 1:
        return None
    [store] = case.nests[0].nest.stores
    total = store.value.args[0] if store.value.op is Op.CAST else store.value
    if total.op is not Op.REDUCE or total.reduction.kind not in _SCANNED or len(total.reduction.loops) != 1:
        return None
    [turn] = total.reduction.loops
    element = total.args[0]
    along = next((loop for loop in store.loops if _is_up_to(element, turn, loop)), None)
    if along is None or along.number is None or not isinstance(case.roles[store.buffer], ResultBuffer):
        return None
    scanned = replace(store, value=put_loop(element.args[1], turn, along))
    rows = tuple(loop for loop in store.loops if loop is not along)
    count = Binary(Operator.FLOOR_DIVIDE, SizeProduct("result0"), along.number.value)
    nest = ScanNest(LoopNest((scanned,), rows), count, along, total.reduction.kind)
    return replace(case, nests=(nest,))


def _is_up_to(element: Expr, turn: Loop, along: Loop) -> bool:
    """Whether an element is one up to that of a loop, or else nothing."""
    if element.op is not Op.SELECT or element.args[0].op is not Op.LESS or element.args[2].op is not Op.NUMBER:
        return False
    less, more = element.args[0].args
    start, by = more.args if more.op is Op.SUM and len(more.args) == 2 else (more, more)
    same = turn.number is not None and along.number is not None and turn.number.value == along.number.value
    return same and less.attribute == turn and start.attribute == along and by.integer == 1


def put_loop(root: Expr, turn: Loop, along: Loop) -> Expr:
    """An expression with another loop in the place of one; nothing is simplified by their sizes, which are equal."""
    made: dict[Expr, Expr] = {}
    for each in walk(root):
        attribute = along if each.attribute == turn else each.attribute
        made[each] = intern(each.op, [made[arg] for arg in each.args], each.dtype, attribute)
    return made[root]


def write_scan(scan: ScanNest, spelling: Spelling) -> list[str]:
    """The statements of a kernel that scans. Raises PTR345 for an operation that Metal lacks."""
    [store] = scan.nest.stores
    writer = NestWriter(spelling, is_copy=False)
    total = intern(Op.REDUCE, (store.value,), store.value.dtype, Reduction(scan.kind, (scan.along,)))
    assert total.dtype is not None
    type_ = writer.find_accumulator(total, replace(store, value=total))
    name, none = name_reduction(total.reduction), write_start(scan.kind, total.dtype, type_, spelling)
    turn = write_turn(scan.kind, name, writer.write_addend(total, type_), spelling)
    size, index = write_size(scan.along), spelling.index
    writer.line(f"threadgroup {type_} partial[{_MOST_THREADS}];")
    writer.split_index(spelling.row, scan.nest.rows)
    writer.line(f"const {index} part = ({size} + group_size - 1) / group_size;")
    writer.line(f"const {index} begin = min({index}(tid) * part, {size});")
    writer.line(f"const {index} end = min(begin + part, {size});")
    writer.line(f"{type_} {name} = {none};")
    _write_part(writer, scan, [turn])
    barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);"
    writer.lines += [f"partial[tid] = {name};", barrier]
    writer.line("for (uint offset = 1; offset < group_size; offset *= 2) {")
    writer.line(f"  const {type_} before = tid >= offset ? partial[tid - offset] : {type_}({none});")
    writer.lines += [
        f"  {barrier}",
        f"  {write_turn(scan.kind, 'partial[tid]', 'before', spelling)}",
        f"  {barrier}",
        "}",
    ]
    writer.line(f"{name} = tid > 0 ? partial[tid - 1] : {type_}({none});")
    element = spelling.elements[store.buffer]
    stored = f"{spelling.buffers[store.buffer]}[{writer.text(store.place)}] = static_cast<{element}>({name});"
    _write_part(writer, scan, [turn, stored])
    return writer.lines


def _write_part(writer: NestWriter, scan: ScanNest, lines: Sequence[str]) -> None:
    """A loop over the part of a thread."""
    i = writer.spelling.loop(scan.along)
    writer.line(f"for ({writer.spelling.index} {i} = begin; {i} < end; {i}++) {{")
    writer.lines += [*(f"  {line}" for line in lines), "}"]
