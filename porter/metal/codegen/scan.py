"""Scans: each result is the sum, or the product, of the elements of its row up to its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from textwrap import indent

from porter.languages.identifiers import is_word
from porter.loops.expressions import Expr, Loop, Op, Reduction, ReductionKind, intern, walk
from porter.loops.fusion import LoopNest, Shape
from porter.loops.host_values import Apply, SizeProduct
from porter.loops.program import Programs, ResultBuffer, SymbolicNest, SymbolicProgram
from porter.metal.codegen.schedule import SIMD_LANES
from porter.metal.loop_spelling import Spelling, name_reduction, write_size, write_start, write_turn
from porter.metal.loop_text import NestWriter

_SCANNED = (ReductionKind.SUM, ReductionKind.PRODUCT)
_MOST_THREADS = 1024
_NEIGHBORS = 4  # of a row that a thread reads at once
_COLUMNS = 32  # neighboring rows of a threadgroup
_MANY_ROWS = 2048  # that keep a GPU busy where threadgroups have several each
_SIMDGROUPS = 4096  # that keep a GPU busy; rows of fewer lanes wait less for each other's sums
_SLICE = 16 * 1024  # elements of a row that are worth a threadgroup of their own
_MOST_SLICES = 8  # of a row: each reads all that stands before it
_FEW_LANES = 16  # of rows that a threadgroup has several of: in every turn, each lane goes over the sums of all
_POSITIONS = (
    "position [[thread_position_in_grid]]", "tid [[thread_position_in_threadgroup]]",
    "group_size [[dispatch_threads_per_threadgroup]]",
)  # fmt: skip


@dataclass(frozen=True)
class ScanNest(SymbolicNest):
    """A nest whose value is what is scanned, as a reduction of that kind would, along one of its loops."""

    along: Loop
    kind: ReductionKind

    @property
    def may_split(self) -> bool:
        """Whether a row may have several threadgroups. A product may not: one of elements in the middle may overflow
        where no product from the start of the row does.
        """
        return self.kind is ReductionKind.SUM

    @property
    def positions(self) -> tuple[str, ...]:
        """Where a thread is, as parameters of a kernel."""
        if self.may_split:
            return (*(f"uint3 {position}" for position in _POSITIONS), "uint3 groups [[threadgroups_per_grid]]")
        return tuple(f"uint2 {position}" for position in _POSITIONS)


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
    count = Apply("quotient", (SizeProduct("result0"), along.number.value))
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
    size, index, i = write_size(scan.along), spelling.index, spelling.loop(scan.along)
    element = spelling.elements[store.buffer]
    value = writer.write_addend(total, type_)
    writer.line(f"threadgroup {type_} partial[{_MOST_THREADS}];")
    writer.split_index("position.x", scan.nest.rows)
    add_value = write_turn(scan.kind, name, "values[j]", spelling)
    stored = f"{spelling.buffers[store.buffer]}[{writer.text(store.place)}] = static_cast<{element}>({name});"
    at = f"const {index} {i} = first + tid.y * {_NEIGHBORS} + j;"
    scan_lanes = f"""\
for (ushort delta = 1; delta < {SIMD_LANES}; delta *= 2) {{
  before = shuffle_up({name}, delta);
  if (tid.y % {SIMD_LANES} >= delta) {{
    {write_turn(scan.kind, name, "before", spelling)}
  }}
}}"""
    add_partial = write_turn(scan.kind, "carry", "partial[k * group_size.x + tid.x]", spelling)
    writer.lines += f"""\
// Lanes go along the row, or each has a row of its own
const bool is_row = group_size.x == 1;
const uint part = is_row ? tid.y / {SIMD_LANES} : tid.y;
const uint parts = is_row ? group_size.y / {SIMD_LANES} : group_size.y;
{type_} carry = {none};""".splitlines()
    first, end = f"{index} first = 0", size
    if scan.may_split:
        first, end = f"{index} first = begin", "end"
        writer.lines += f"""\
const {index} step = group_size.y * {_NEIGHBORS};
const {index} slice = groups.z > 1 ? (({size} - 1) / ({index}(groups.z) * step) + 1) * step : {size};
const {index} begin = position.z * slice, end = min(begin + slice, {size});
// A later slice of a row goes on from the sum of all that stands before it, a simdgroup from neighbor to neighbor
if (begin > 0 && begin < {size}) {{
  const {index} share = begin / parts, start = part * share;
  {type_} total = {none};
  for ({index} first = start; first < start + share; first += {SIMD_LANES * _NEIGHBORS}) {{
    {type_} before, {name} = {none};
    for (uint j = 0; j < {_NEIGHBORS}; j++) {{
      const {index} {i} = first + tid.y % {SIMD_LANES} * {_NEIGHBORS} + j;
      {write_turn(scan.kind, name, value, spelling)}
    }}
{indent(scan_lanes, "    ")}
    {write_turn(scan.kind, "total", name, spelling)}
  }}
  if (tid.y % {SIMD_LANES} == {SIMD_LANES - 1}) {{
    partial[part] = total;
  }}
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < parts; k++) {{
    {add_partial}
  }}
  threadgroup_barrier(mem_flags::mem_threadgroup);
}}""".splitlines()
    writer.lines += f"""\
for ({first}; first < {end}; first += group_size.y * {_NEIGHBORS}) {{
  {type_} values[{_NEIGHBORS}];
  {type_} {name} = {none};
  for (uint j = 0; j < {_NEIGHBORS}; j++) {{
    {at}
    values[j] = {i} < {end} ? {value} : {type_}({none});
    {add_value}
  }}
  {type_} before = {none};
  if (is_row) {{
{indent(scan_lanes, "    ")}
    before = shuffle_up({name}, 1);
    before = tid.y % {SIMD_LANES} > 0 ? before : {type_}({none});
  }}
  if (!is_row || tid.y % {SIMD_LANES} == {SIMD_LANES - 1}) {{
    partial[part * group_size.x + tid.x] = {name};
  }}
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint k = 0; k < parts; k++) {{
    {name} = k == part ? carry : {name};
    {add_partial}
  }}
  {write_turn(scan.kind, name, "before", spelling)}
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint j = 0; j < {_NEIGHBORS}; j++) {{
    {at}
    if ({i} < {end}) {{
      {add_value}
      {stored}
    }}
  }}
}}""".splitlines()
    return writer.lines


def write_scan_dispatch(pso: str, rows: str, length: str, inner: str, prefix: str, whole: str) -> Iterator[str]:
    """The launch, after whose name the pipeline state is `pso`; `inner` is how many neighboring rows are adjacent.

    There are `rows`: host code has returned for a result without elements, which no grid may be of. Few long rows have
    several threadgroups each, but where the condition `whole` holds; without a condition a kernel splits no rows.
    """
    most, lanes, columns = f"[{pso} maxTotalThreadsPerThreadgroup]", f"{prefix}lanes", f"{prefix}columns"
    if not is_word(rows):
        yield f"const int64_t {prefix}rows = {rows};"
        rows = f"{prefix}rows"
    along = f"at::ceil_div<int64_t>({length}, {_NEIGHBORS * SIMD_LANES}) * {SIMD_LANES}"
    enough = f"std::max<int64_t>(at::ceil_div<int64_t>({_SIMDGROUPS}, {rows}), 4) * {SIMD_LANES}"
    if inner:
        yield "// lanes go along a row, or have neighboring rows each"
        yield f"const NSUInteger {columns} = {inner} >= {_COLUMNS} && {rows} >= {_MANY_ROWS} ? {_COLUMNS} : 1;"
        along = f"{columns} > 1 ? at::ceil_div<int64_t>({length}, {_NEIGHBORS}) : {along}"
        enough = f"{columns} > 1 ? {_FEW_LANES} : {enough}"
        most = f"{most} / {columns}"
    yield f"const auto {prefix}enough = {enough};"
    yield f"const auto {lanes} = std::min<NSUInteger>({most}, std::min<int64_t>({along}, {prefix}enough));"
    slices = "1"
    if whole:
        slices = f"{prefix}slices"
        busy = f"{_SIMDGROUPS * SIMD_LANES} / ({rows} * {lanes})"
        split = f"std::clamp<int64_t>(std::min<int64_t>({busy}, {length} / {_SLICE}), 1, {_MOST_SLICES})"
        whole = f"{columns} > 1 || {whole}" if inner else whole
        yield f"const int64_t {slices} = {whole} ? 1 : {split};"
    yield f"[computeEncoder dispatchThreads:MTLSizeMake({rows}, {lanes}, {slices})"
    yield f"threadsPerThreadgroup:MTLSizeMake({columns if inner else 1}, {lanes}, 1)];"
