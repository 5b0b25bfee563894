"""Loop nests as Metal kernels, with their numbers as they are: what the loop form means, on the device.

A map has a thread for each element. A nest with reductions has a simdgroup for each row: lanes stride over the loops of
a reduction and of a store, and combine with simd functions; a reduction that has none is done by every lane alone.
Source: Metal Shading Language Specification, sections 6.9 (SIMD-group functions) and 4.2 (address spaces).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from porter.core.dtypes import DType, Kind
from porter.loops.expressions import Buffer, ReductionKind
from porter.loops.fusion import LoopNest, Shape
from porter.metal.loop_spelling import Spelling, runs_alone
from porter.metal.loop_text import write_nest

LANES = 32
HEADER = """\
#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>

using namespace metal;
"""
_SHARED: Mapping[ReductionKind, str] = {
    ReductionKind.SUM: "simd_sum", ReductionKind.MAX_NAN: "simd_max", ReductionKind.MIN_NAN: "simd_min",
    ReductionKind.ANY: "simd_any", ReductionKind.ALL: "simd_all",
}  # fmt: skip


@dataclass(frozen=True)
class LoopKernel:
    """A kernel: its text, the buffers that it binds in order, and how many threads it is launched with."""

    name: str
    source: str
    buffers: tuple[Buffer, ...]
    threads: int
    group: int | None  # None: as the launcher likes


def write_loop_kernel(nest: LoopNest, name: str, dtypes: Mapping[Buffer, DType]) -> LoopKernel:
    """A loop nest as a kernel; `dtypes` are the element types of the buffers that it reads. Raises PTR345."""
    written = [store.buffer for store in nest.stores]
    buffers = (*written, *nest.reads())
    types = {**dtypes, **{store.buffer: store.dtype for store in nest.stores}}
    spelling = Spelling(
        buffers={buffer: f"b{i}" for i, buffer in enumerate(buffers)},
        elements={buffer: types[buffer].metal for buffer in buffers},
        value=lambda dtype: dtype.metal,
        join=join_simdgroup,
        row="int(row)",
    )
    rows = prod(loop.size for loop in nest.rows)
    is_map = nest.shape is Shape.MAP or runs_alone(nest, spelling)
    arguments = [
        f"device {'' if buffer in written else 'const '}{types[buffer].metal}* {spelling.buffers[buffer]}"
        for buffer in buffers
    ]
    arguments.append("uint row [[thread_position_in_grid]]" if is_map else "uint row [[threadgroup_position_in_grid]]")
    arguments += [] if is_map else ["uint lane [[thread_index_in_simdgroup]]"]
    body = "\n".join(f"  {line}" for line in write_nest(nest, spelling))
    source = f"kernel void {name}(\n    " + ",\n    ".join(arguments) + f") {{\n{body}\n}}\n"
    return LoopKernel(name, source, buffers, rows if is_map else rows * LANES, None if is_map else LANES)


def join_simdgroup(kind: ReductionKind, dtype: DType, name: str, _type: str) -> tuple[str, ...] | None:
    """How the lanes of a simdgroup combine what each has reduced; None where no simd function does."""
    if kind not in _SHARED or dtype.size > 4:  # simd functions take 32 bits
        return None
    joined = f"{_SHARED[kind]}({name})"
    keeps_nan = kind in (ReductionKind.MAX_NAN, ReductionKind.MIN_NAN) and dtype.kind is Kind.FLOATING
    return (f"{name} = {f'simd_any(isnan({name})) ? NAN : {joined}' if keeps_nan else joined};",)
