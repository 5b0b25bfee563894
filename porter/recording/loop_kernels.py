"""Runs the kernels of loop nests on the host and compares them with the graph they come from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from aten_overlay.metal.build import Options, compile_kernels
from aten_overlay.metal.launch import Library
from porter.core.dtypes import DType
from porter.loops.coalesce import coalesce
from porter.loops.expressions import Buffer
from porter.loops.fusion import LoopNest, fuse
from porter.loops.graph import ConcreteGraph
from porter.metal.loop_kernel import HEADER, LoopKernel, write_loop_kernel
from porter.recording.concrete import evaluate_nodes, read_concrete_graph
from porter.recording.loop_check import describe_difference

if TYPE_CHECKING:
    from aten_overlay.apple.mpsgraph.recorder import GraphRun

# Relative and absolute, by the digits of the element type: kernels compute in float and round once.
_TOLERANCE = {24: 2e-5, 11: 3e-3, 8: 2e-2}


def check_loop_kernels(run: GraphRun, include: Path) -> tuple[str, list[str]]:
    """The Metal source of a graph that ran, and how its results differ from the graph's, in float64.

    `include` has c10/metal. Raises PTR345 and what compiling and running a kernel raise.
    """
    graph = read_concrete_graph(run)
    nests = [coalesce(nest) for nest in fuse(graph)]
    kernels = write_loop_kernels(graph, nests)
    source = HEADER + "".join(f"\n{kernel.source}" for kernel in kernels)
    library = Library(compile_kernels(source, [kernel.name for kernel in kernels], Options(include=(include,))))
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
