"""How the threads of a kernel share its rows: a value between a loop nest and its text, chosen from a table by family.

A kernel is a template over a count of elements, `N`. The host chooses the instance that a call's rows allow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from porter.metal.codegen.host_code import INDEX_TYPE, Line, declare

COUNT, WIDTH = "N", "V"  # the elements of a thread, and how many neighbors of those it reads at once
SIMD_LANES = 32
ROW_HEADER = "ATen/ceil_div.h"
ROW_VARIABLES = ("count", "lanes", "neighbors", "are_adjacent", "rows", "columns", "enough", "slices")
_MOST_LANES = 512  # more have too few registers each
_LEAST_ROWS = 64 * 1024  # of a thread each that keep a GPU busy


class Family(Enum):
    """What a kernel does with rows."""

    MAP = "a thread a row"
    ROWS = "a threadgroup a row"
    KEPT_ROWS = "rows in registers"
    SLICES = "slices of rows"
    STRIDED_SLICES = "slices of rows, by strides"
    TILES = "a threadgroup a tile"
    MOVES = "four places of a row a thread"


@dataclass(frozen=True)
class Schedule:
    """`counts` are those that a kernel is instantiated for with 32-bit indices; the first serves any row.

    A turn of a thread reads that many neighbors, or a thread keeps that many elements of its row in registers. It then
    reads `neighbors` at once where rows are dense and aligned; those instances are there beside the others.
    """

    family: Family
    counts: tuple[int, ...] = ()
    neighbors: int = 1

    def __post_init__(self) -> None:
        if self.counts != tuple(sorted(set(self.counts))):
            raise ValueError(f"counts are not ascending: {self.counts}")
        if self.neighbors > 1 and any(count % self.neighbors for count in self.counts[1:]):
            raise ValueError(f"a thread of {self.counts} elements has no whole number of {self.neighbors} neighbors")

    @property
    def any_row(self) -> int:
        """The count that serves any row, which 64-bit indices have too."""
        return self.counts[0]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The numbers that a kernel is a template over."""
        return ((COUNT, WIDTH) if self.neighbors > 1 else (COUNT,)) if self.counts else ()

    def list_instances(self) -> list[tuple[int, ...]]:
        """The values of the parameters with 32-bit indices; the first serves any row."""
        if self.neighbors == 1:
            return [(count,) for count in self.counts]
        return [(count, width) for width in (1, self.neighbors) for count in self.counts]

    def describe(self) -> Iterator[str]:
        """Yields what the threads of each instance do."""
        yield self.family.value
        for count in self.counts:
            yield f"{COUNT} = {count}: {_MEANINGS[self.family].get(count, _OTHER[self.family]).format(count)}"
        if self.neighbors > 1:
            yield f"{WIDTH} = {self.neighbors}: {_OTHER[Family.STRIDED_SLICES].format(self.neighbors)}"


ANY_DIMS, ONE_DIM, NEIGHBORS = 0, 1, 4
AGAIN, FEW, MANY = 1, 4, 16
ALONE = 1
PLACES = 4  # of a row that a thread moves elements to, for which it reads sizes and strides once
MOST_ARRAYS = 2  # of elements that a thread keeps
_COUNTS = {Family.STRIDED_SLICES: (ANY_DIMS, ONE_DIM, NEIGHBORS), Family.MOVES: (ALONE, NEIGHBORS)}
_MEANINGS = {
    Family.STRIDED_SLICES: {
        ANY_DIMS: "elements by the sizes and strides of any dimensions",
        ONE_DIM: "elements by one stride, 8 turns at once",
    },
    Family.KEPT_ROWS: {AGAIN: "rows of any size, which each pass reads again"},
    Family.MOVES: {ALONE: "an element each, by strides"},
}
_OTHER = {
    Family.STRIDED_SLICES: "{} neighbors a turn, in rows that are dense and aligned",
    Family.KEPT_ROWS: "up to {} elements of a row a thread, which are read once",
    Family.TILES: "{} rows and columns of a product a threadgroup",
    Family.MOVES: "{} neighbors each, in rows that are dense and aligned",
}


def choose_schedule(family: Family, arrays: int = 1, neighbors: int = 1) -> Schedule:
    """The schedule of a family, where a thread keeps that many `arrays` of elements and may read neighbors at once."""
    if family is Family.KEPT_ROWS:
        return Schedule(family, (AGAIN, FEW, MANY // arrays), neighbors)
    return Schedule(family, _COUNTS.get(family, ()))


PLAIN = choose_schedule(Family.MAP)


@dataclass(frozen=True)
class RowLaunch:
    """How host code names the rows of one kernel; `inner` is how many neighboring ones are adjacent, if any.

    `units` are steps between elements that are 1 where rows are dense, `multiples` what is divisible where they are
    aligned.
    """

    schedule: Schedule
    prefix: str
    rows: str
    length: str
    inner: str = ""
    units: tuple[str, ...] = ()
    multiples: tuple[str, ...] = ()

    @property
    def count(self) -> str:
        """The variable for how many elements a thread keeps."""
        return f"{self.prefix}count"

    @property
    def variables(self) -> tuple[str, ...]:
        """Those that choose the instance."""
        return (self.count, f"{self.prefix}neighbors") if self.schedule.neighbors > 1 else (self.count,)

    def declare(self) -> Iterator[Line]:
        """Variables that choose the instance."""
        again, *_, many = self.schedule.counts
        tests = [f'{INDEX_TYPE} == "long"', f"{self.length} > {many * _MOST_LANES}"]
        if self.inner:
            adjacent = f"{self.prefix}are_adjacent"
            yield Line("// neighboring threads read neighboring elements: of one row, or of as many rows")
            yield declare(adjacent, f"{self.inner} >= {SIMD_LANES} && {self.rows} >= {_LEAST_ROWS}", "bool")
            tests.append(adjacent)
        few = f"{self.length} <= {FEW * SIMD_LANES} ? {FEW} : {many}"
        yield declare(self.count, f"{' || '.join(tests)} ? {again} : {few}", "int64_t")
        if self.schedule.neighbors > 1:
            dense = [f'{INDEX_TYPE} == "int"', *(f"{unit} == 1" for unit in self.units)]
            aligned = f"({' | '.join(self.multiples)}) % {self.schedule.neighbors} == 0"
            yield declare(
                self.variables[1], f"{' && '.join((*dense, aligned))} ? {self.schedule.neighbors} : 1", "int64_t"
            )

    def dispatch(self, pso: str) -> Iterator[str]:
        """The launch, after whose name the pipeline state is `pso`."""
        again, lanes = self.schedule.any_row, f"{self.prefix}lanes"
        kept = f"std::max<int64_t>(at::ceil_div({self.length}, {self.count} * {SIMD_LANES}), 1) * {SIMD_LANES}"
        looped = f"{self.count} == {again} ? [{pso} maxTotalThreadsPerThreadgroup] : {kept}"
        yield f"const NSUInteger {lanes} = {f'{self.prefix}are_adjacent ? 1 : ' if self.inner else ''}{looped};"
        yield f"[computeEncoder dispatchThreads:MTLSizeMake({lanes}, {self.rows}, 1)"
        yield f"threadsPerThreadgroup:MTLSizeMake({lanes}, {lanes} > {SIMD_LANES} ? 1 : 256 / {lanes}, 1)];"
