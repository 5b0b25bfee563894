"""Writes loop nests as Metal kernels, runs these on the host and compares them with the graph they come from.

A map has a thread for each element. A nest with reductions has a simdgroup for each row: lanes stride over the loops of
a reduction and of a store, and combine with simd functions; a reduction that has none is done by every lane alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from aten_overlay.metal.build import QUICK, Options, compile_kernels
from aten_overlay.metal.launch import Library
from porter.core.dtypes import DType
from porter.loops.expressions import Buffer
from porter.loops.fusion import LoopNest, Shape, coalesce, fuse
from porter.loops.graph import ConcreteGraph
from porter.metal.codegen.kernel import join_simdgroup
from porter.metal.loop_spelling import Spelling, runs_alone
from porter.metal.loop_text import write_nest
from porter.recording.concrete import evaluate_nodes, read_concrete_graph
from porter.recording.evaluation import describe_difference

if TYPE_CHECKING:
    from aten_overlay.apple.mpsgraph.recorder import GraphRun

LANES = 32
HEADER = """\
#include <c10/metal/special_math.h>
#include <c10/metal/utils.h>
#include <metal_stdlib>

using namespace metal;
"""
# Relative and absolute, by the digits of the element type: kernels compute in float and round once.
_TOLERANCE = {24: 2e-5, 11: 3e-3, 8: 2e-2}


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


def check_loop_kernels(run: GraphRun, include: Path) -> tuple[str, list[str]]:
    """The Metal source of a graph that ran, and how its results differ from the graph's, in float64.

    `include` has c10/metal. Raises PTR345 and what compiling and running a kernel raise.
    """
    graph = read_concrete_graph(run)
    nests = [coalesce(nest) for nest in fuse(graph)]
    kernels = write_loop_kernels(graph, nests)
    source = HEADER + "".join(f"\n{kernel.source}" for kernel in kernels)
    library = Library(
        compile_kernels(source, [kernel.name for kernel in kernels], Options(include=(include,), optimization=QUICK))
    )
    memory = _allocate(run, nests)
    for kernel in kernels:
        buffers = [memory[buffer] for buffer in kernel.buffers]
        library.run(kernel.name, buffers, (kernel.threads,), (kernel.group or 256,))
    exact = evaluate_nodes(run, in_double=True)
    found = []
    for ref in run.results:
        made, expected = memory[Buffer(ref.node, ref.output)], exact[ref]
        digits = graph.nodes[ref.node].results[ref.output].dtype.digits
        difference = describe_difference(made.to(expected.dtype), expected, _TOLERANCE.get(digits, 0))
        found += [f"{ref.node}.{ref.output}: {difference}"] if difference else []
    return source, found


def write_loop_kernels(graph: ConcreteGraph, nests: list[LoopNest]) -> list[LoopKernel]:
    """The kernels of a graph's loop nests, in the order in which they run."""
    dtypes = {
        Buffer(i, output): result.dtype
        for i, node in enumerate(graph.nodes)
        for output, result in enumerate(node.results)
    }
    for nest in nests:
        dtypes |= {store.buffer: store.dtype for store in nest.stores}
    return [write_loop_kernel(nest, f"kernel{i}", dtypes) for i, nest in enumerate(nests)]


def _allocate(run: GraphRun, nests: list[LoopNest]) -> dict[Buffer, Tensor]:
    """The memory of all buffers: what is read has its value, what is written is filled with ones bits."""
    values = {Buffer(ref.node, ref.output): value.contiguous() for ref, value in evaluate_nodes(run).items()}
    written = {store.buffer: _fill(store.size, store.dtype) for nest in nests for store in nest.stores}
    return {**values, **written}


def _fill(size: int, dtype: DType) -> Tensor:
    count = max(size, 1) * dtype.size
    return torch.full((count,), 0xFF, dtype=torch.uint8).view(getattr(torch, dtype.torch))[:size]
