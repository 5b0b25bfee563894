"""Reductions of rows by as many threads as their sizes call for: one, a simdgroup, a threadgroup, or several of these.

The width of a grid is that of a row. Where several threadgroups have a slice of it each, they store what they reduced,
in the type that it was reduced in, and a second kernel combines that and computes what comes after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from porter.core.dtypes import FLOAT, LONG, DType
from porter.loops.expressions import Buffer, Expr, Loop, Op, ReductionKind, find_reductions, walk
from porter.loops.fusion import LoopNest, Shape, Store
from porter.metal.codegen.canonicalize import TYPE as MOMENTS
from porter.metal.codegen.canonicalize import Moments, write_addition, write_element, write_end, write_sharing
from porter.metal.codegen.schedule import COUNT, ONE_DIM, PLAIN, Family, Schedule
from porter.metal.expression import Printed
from porter.metal.loop_spelling import (
    Spelling,
    find_value,
    is_shared,
    may_be_nan,
    write_nan,
    write_start,
    write_turn,
)
from porter.metal.loop_text import NestWriter, Shared

SLICES = "slices"
POSITIONS = (
    "uint2 position [[thread_position_in_grid]]", "uint2 grid_size [[threads_per_grid]]",
    "uint2 tid [[thread_position_in_threadgroup]]", "uint2 group_size [[threads_per_threadgroup]]",
)  # fmt: skip
ROW_POSITIONS = (POSITIONS[0], *POSITIONS[2:])
ROW, SIMD_LANE = "uint group [[threadgroup_position_in_grid]]", "uint lane [[thread_index_in_simdgroup]]"
LANE, WIDTH = "tid.x", "group_size.x"
ROW_IN_GROUP = "tid.y"
# What threads combine reductions with: `c10::metal::threadgroup_sum`, `c10::metal::simd_sum` ...
FUNCTIONS: Mapping[ReductionKind, str] = {
    ReductionKind.SUM: "sum", ReductionKind.PRODUCT: "prod", ReductionKind.MAX_NAN: "max", ReductionKind.MIN_NAN: "min",
    ReductionKind.ANY: "max", ReductionKind.ALL: "min",
}  # fmt: skip
_MOST_LANES = 1024
_READ = "threadgroup_barrier(mem_flags::mem_threadgroup);"  # until all threads have read what is shared
INDEX = LONG.metal  # of elements, where slices are combined


@dataclass(frozen=True)
class Partial:
    """A variable of a kernel, of a Metal type, that threadgroups store for each slice: what they reduced of it.

    One that is `found_in` another is the index of the extreme value that the other is.
    """

    name: str
    type: str
    start: str
    reduced: Expr
    found_in: Partial | None = None
    moments: Moments | None = None

    @property
    def kind(self) -> ReductionKind:
        """How slices combine: the least index, of those of equal values."""
        return ReductionKind.MIN_NAN if self.found_in else self.reduced.reduction.kind

    @property
    def bound(self) -> dict[Expr, str]:
        """What a kernel need not compute, since it has this."""
        if self.moments is None:
            return {self.reduced: self.name}
        return {self.moments.total: "", self.moments.mean: f"{self.name}.x", self.moments.squares: f"{self.name}.y"}


def name_buffers(partials: Sequence[Partial]) -> dict[Partial, str]:
    """The names of the buffers of partial results."""
    return {each: "partials" if len(partials) == 1 else f"partial_{each.name}" for each in partials}


def may_slice(nest: LoopNest, moments: Sequence[Moments], spelling: Spelling) -> bool:
    """Whether a nest reduces the same elements of each row once, and reads nothing else."""
    found = {each for store in nest.stores for each in find_reductions(store.value)}
    once = found - {part for each in moments for part in (each.total, each.squares)}
    loops = {each.reduction.loops for each in (*once, *(each.total for each in moments))}
    if nest.shape is not Shape.REDUCTION or len(loops) != 1 or any(each.total.height != 1 for each in moments):
        return False
    alike = all(each.height == 1 and is_shared(each, spelling) for each in once)
    return alike and not any(map(_reads_beside, nest.stores))


def _reads_beside(store: Store) -> bool:
    """Whether a store reads elements outside of its reductions."""
    within = {each for found in find_reductions(store.value) for each in walk(*found.args)}
    return any(each.op in (Op.LOAD, Op.READ_INDEX) and each not in within for each in walk(store.value, store.place))


def share_lanes(spelling: Spelling, has_one: bool = True) -> Spelling:
    """The words of a kernel whose rows have the width of the grid; lanes combine only where there are several.

    Without `has_one`, there always are.
    """
    join, join_extreme = spelling.join, spelling.join_extreme

    def combine(kind: ReductionKind, dtype: DType, name: str, type_: str) -> tuple[str, ...] | None:
        lines = join(kind, dtype, name, type_)
        return None if lines is None else _among_lanes(lines)

    def combine_extreme(kind: ReductionKind, name: str, index: str, extreme: str, type_: str) -> tuple[str, ...]:
        return _among_lanes(join_extreme(kind, name, index, extreme, type_) if join_extreme else ())

    return replace(
        spelling,
        row="position.y",
        lane="position.x",
        width="grid_size.x",
        join=combine if has_one else join,
        join_extreme=(combine_extreme if has_one else join_extreme) if join_extreme else None,
    )


def _among_lanes(lines: Sequence[str]) -> tuple[str, ...]:
    return (f"if ({WIDTH} > 1) {{", *(f"  {line}" for line in lines), "}")


@dataclass
class SliceWriter(NestWriter):
    """Writes the kernel that reduces rows, or slices of them; `partials` are what it stores of a slice."""

    row: str = ""
    partials: list[Partial] = field(default_factory=list)
    moments: Mapping[Expr, Moments] = field(default_factory=dict)
    schedule: Schedule = PLAIN
    read: Buffer | None = None
    turn: Loop | None = None  # that of the row, where its elements are read as neighbors
    is_index_used: bool = False

    def write_strided(self, loops: tuple[Loop, ...], write: Callable[[], None]) -> None:
        """A loop that reads one element a turn, or neighbors."""
        if self.schedule.family is not Family.STRIDED_SLICES:
            return super().write_strided(loops, write)
        assert self.read is not None
        [loop] = loops
        index, first, lane = self.spelling.index, self.name("first"), self.spelling.lane
        if first == "first":
            self.line(f"constexpr {index} count = {COUNT} ? {COUNT} : 1; // of the elements of a turn")
            self.line(f"const {index} step = {self.spelling.width} * count;")
            self.line(f"const {index} turns = ({self.product(loops)} + step - 1 - {lane} * count) / step;")
        self.lines += [
            f"#pragma unroll({COUNT} == {ONE_DIM} ? 8 : 4)",
            f"for ({index} turn = 0; turn < turns; turn++) {{",
        ]
        self.line(f"  const {index} {first} = {lane} * count + turn * step;")
        type_, place = self.spelling.elements[self.read], self.spelling.place(self.read, first)
        place = f"{self.spelling.buffers[self.read]} + {place}"
        self.line(f"  const auto elements = *reinterpret_cast<constant neighbors<{type_}, count>*>({place});")
        self.line(f"  for ({index} i = 0; i < count; i++) {{")
        outer, self.lines, self.turn, self.is_index_used = self.lines, [], loop, False
        self.indented(write)
        inner, self.lines, self.turn = self.lines, outer, None
        if self.is_index_used:
            self.line(f"    const {index} {self.spelling.loop(loop)} = {first} + i;")
        self.lines += [*(f"  {line}" for line in inner), "}"]
        return None

    def text(self, expr: Expr) -> Printed:
        self.is_index_used |= expr.attribute == self.turn
        return super().text(expr)

    def load(self, expr: Expr) -> str:
        return "elements.at[i]" if self.turn else super().load(expr)

    def write_reductions(self, stores: Sequence[Store], nest: LoopNest, is_alone: bool) -> None:
        for each in find_reductions(*(store.value for store in stores)):
            if each in self.moments and each not in self.bound:
                self._write_moments(self.moments[each])
        super().write_reductions(stores, nest, is_alone)

    def _write_moments(self, moments: Moments) -> None:
        """The mean of a row's elements, the sum of squares around it, and the count of these."""
        name = self.name("moments")
        partial = Partial(name, MOMENTS, "0", moments.squares, moments=moments)
        first = next((each.name for each in self.partials if each.moments), name)
        shared = f"shared_{first}"  # whose memory is a half of all that there is
        if first == name:
            self.line(f"threadgroup {MOMENTS} {shared}[{_MOST_LANES}];")
        self.line(f"{MOMENTS} {name} = 0;")
        value = moments.total.args[0]

        def body() -> None:
            self.bind_shared(value)
            if value not in self.bound:
                self._bind(value)
            self.line(write_addition(name, write_element(self.text(value).text)))

        self.write_strided(moments.total.reduction.loops, body)
        sharing = write_sharing(name, shared, LANE, WIDTH, f"{ROW_IN_GROUP} * {WIDTH}")
        self.lines += _among_lanes((*(() if first == name else (_READ,)), *sharing))
        self.bound |= partial.bound
        self.partials.append(partial)

    def write_shared(self, group: Sequence[Shared]) -> None:
        super().write_shared(group)
        for each in group:
            start = write_start(each.kind, each.expr.dtype or FLOAT, each.type, self.spelling)
            self.partials.append(Partial(each.name, each.type, start, each.expr))

    def write_extreme(self, expr: Expr) -> None:
        super().write_extreme(expr)
        value = find_value(expr)
        assert value.dtype is not None
        type_ = self.spelling.value(value.dtype)
        start = write_start(value.reduction.kind, value.dtype, type_, self.spelling)
        extreme = Partial(self.bound[value], type_, start, value)
        none = f"::metal::numeric_limits<{INDEX}>::max()"
        self.partials += [extreme, Partial(self.bound[expr], INDEX, none, expr, extreme)]

    def write_once(self, stores: Sequence[Store]) -> None:
        self.line(f"if ({LANE} == 0) {{")
        self.indented(lambda: self._write_either(stores))

    def _write_either(self, stores: Sequence[Store]) -> None:
        """Stores of what is reduced of a slice, or of results."""
        at = find_slice(self.row, f"position.x / {WIDTH}")
        self.line(f"if ({SLICES} > 1) {{")
        self.lines += [f"  {buffer}[{at}] = {each.name};" for each, buffer in name_buffers(self.partials).items()]
        self.line("} else {")
        self.indented(lambda: self._write_results(stores))

    def _write_results(self, stores: Sequence[Store]) -> None:
        _end_moments(self, self.partials)
        self.write_stores(stores)


def _end_moments(writer: NestWriter, partials: Sequence[Partial]) -> None:
    """Moments as results have them, where all threads and slices are combined."""
    for each in partials:
        if each.moments:
            writer.lines += write_end(each.name, writer.text(each.moments.mean.args[1]).text)


def find_slice(row: str, slice_: str) -> str:
    """The index of a slice among those of all rows."""
    return f"{row} * {SLICES} + {slice_}" if row else slice_


def write_slices(
    nest: LoopNest, moments: Sequence[Moments], spelling: Spelling, schedule: Schedule
) -> tuple[list[str], tuple[Partial, ...]]:
    """The statements of the kernel that reduces rows or slices of them, and what it stores of slices."""
    parts = {part: each for each in moments for part in (each.total, each.squares)}
    writer = SliceWriter(spelling, is_copy=False, row=_name_row(nest, spelling), moments=parts, schedule=schedule)
    writer.read = next(iter(nest.reads()), None)
    writer.write_body(nest)
    return writer.lines, tuple(writer.partials)


def _name_row(nest: LoopNest, spelling: Spelling) -> str:
    """The index of a row; nothing if there is only one."""
    if len(nest.rows) == 1:
        return spelling.loop(nest.rows[0])
    return spelling.row if nest.rows else ""


def write_combination(nest: LoopNest, partials: Sequence[Partial], spelling: Spelling) -> list[str]:
    """The statements of a kernel whose simdgroups combine what is stored of a row's slices, and store the results."""
    writer = NestWriter(spelling, is_copy=False)
    writer.split_index(spelling.row, nest.rows)
    at = find_slice(_name_row(nest, spelling), "slice")
    stored = {each: f"{buffer}[{at}]" for each, buffer in name_buffers(partials).items()}
    plain = [each for each in partials if each.found_in is None]
    for group in (plain, *([each] for each in partials if each.found_in)):
        _combine(writer, {each: stored[each] for each in group}, stored)
    for each in partials:
        writer.bound |= each.bound
    _end_moments(writer, partials)
    writer.write_once(nest.stores)
    return writer.lines


def _combine(writer: NestWriter, group: Mapping[Partial, str], stored: Mapping[Partial, str]) -> None:
    """Variables for what is reduced of all slices, in every lane, from elements that are `stored`."""
    lane, width = writer.spelling.lane, writer.spelling.width
    for each in group:
        if each.moments:
            writer.line(f"threadgroup {each.type} shared_{each.name}[{width}];")
        writer.line(f"{each.type} {each.name} = {each.start};")
    writer.line(f"for (uint slice = {lane}; slice < {SLICES}; slice += {width}) {{")
    for each, value in group.items():
        plain = write_turn(each.kind, each.name, value, writer.spelling)
        turn = (write_addition(each.name, value) if each.moments else plain,)
        lines = _among_equal(each.found_in, stored[each.found_in], turn, writer.spelling) if each.found_in else turn
        writer.lines += [f"  {line}" for line in lines]
    writer.line("}")
    for each in group:
        dtype = LONG if each.found_in else each.reduced.dtype
        assert dtype is not None
        combined = writer.spelling.join(each.kind, dtype, each.name, each.type) or ()
        writer.lines += write_sharing(each.name, f"shared_{each.name}", lane, width) if each.moments else combined


def _among_equal(extreme: Partial, value: str, turn: Sequence[str], spelling: Spelling) -> Iterator[str]:
    """What a turn does of slices that have the extreme value."""
    nan = f" || {write_nan(value, spelling)}" if may_be_nan(extreme.reduced.dtype, spelling) else ""
    yield f"if ({value} == {extreme.name}{nan}) {{"
    yield from (f"  {line}" for line in turn)
    yield "}"
