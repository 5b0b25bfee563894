"""The host code of kernels whose threads keep elements of rows: which instance a row allows, and its threads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from porter.metal.native.host_code import INDEX_TYPE, Line, declare
from porter.metal.native.schedule import FEW, SIMD_LANES, Schedule

HEADER = "ATen/ceil_div.h"
VARIABLES = ("count", "lanes", "are_adjacent")
_MOST_LANES = 512  # more have too few registers each
_LEAST_ROWS = 64 * 1024  # of a thread each that keep a GPU busy


@dataclass(frozen=True)
class RowLaunch:
    """How host code names the rows of one kernel; `inner` is how many neighboring ones are adjacent, if any."""

    schedule: Schedule
    prefix: str
    rows: str
    length: str
    inner: str = ""

    @property
    def count(self) -> str:
        """The variable for how many elements a thread keeps."""
        return f"{self.prefix}count"

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

    def dispatch(self, pso: str) -> Iterator[str]:
        """The launch, after whose name the pipeline state is `pso`."""
        again, lanes = self.schedule.any_row, f"{self.prefix}lanes"
        kept = f"std::max<int64_t>(at::ceil_div({self.length}, {self.count} * {SIMD_LANES}), 1) * {SIMD_LANES}"
        looped = f"{self.count} == {again} ? [{pso} maxTotalThreadsPerThreadgroup] : {kept}"
        yield f"const NSUInteger {lanes} = {f'{self.prefix}are_adjacent ? 1 : ' if self.inner else ''}{looped};"
        yield f"[computeEncoder dispatchThreads:MTLSizeMake({lanes}, {self.rows}, 1)"
        yield f"threadsPerThreadgroup:MTLSizeMake({lanes}, {lanes} > {SIMD_LANES} ? 1 : 256 / {lanes}, 1)];"
