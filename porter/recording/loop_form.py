"""The loop form of one recorded call, as text: what its graphs would be as fused kernels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from porter.core.errors import PorterError
from porter.loops.coalesce import coalesce
from porter.loops.expressions import Buffer
from porter.loops.fusion import LoopNest, fuse
from porter.loops.graph import ConcreteGraph, Tensor
from porter.loops.printing import name_buffers, nest_lines
from porter.mpsgraph.graph import LoopForm
from porter.recording.concrete import read_concrete_graph
from porter.recording.loop_cost import cost_lines, count_cost, count_graph_bytes
from porter.verdict.errors import raising_porter_errors

if TYPE_CHECKING:
    import torch

    from aten_overlay.apple.mpsgraph.recorder import GraphRun


def describe_loop_form(runs: Sequence[GraphRun], inputs: Mapping[str, torch.Tensor]) -> LoopForm:
    """The kernels of a call's graphs, with its tensors by name; a graph without loop form is a line with its code."""
    shapes = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in inputs.items())
    names = {tensor.data_ptr(): name for name, tensor in inputs.items()}
    lines, cost = zip(*(_describe_graph(run, names) for run in runs), strict=True) if runs else ((), ())
    return LoopForm(shapes, tuple(chain(*lines)), tuple(chain(*cost)))


def _describe_graph(run: GraphRun, names: Mapping[int, str]) -> tuple[list[str], list[str]]:
    """The lines of the kernels, and those of their cost."""
    try:
        with raising_porter_errors():
            graph = read_concrete_graph(run)
            nests = [coalesce(nest) for nest in fuse(graph)]
    except PorterError as error:
        return [f"{error.code} {error.what}"], []
    feeds = enumerate(run.feeds.items())
    given = {Buffer(ref.node, ref.output): names.get(address, f"in{i}") for i, (ref, address) in feeds}
    buffers = name_buffers(nests, given)
    return [line for nest in nests for line in nest_lines(nest, buffers)], list(_describe_cost(graph, nests, buffers))


def _describe_cost(graph: ConcreteGraph, nests: Sequence[LoopNest], names: Mapping[Buffer, str]) -> Iterator[str]:
    sizes = {
        buffer: graph.result(Tensor(buffer.node, buffer.output)).size for buffer in names if not buffer.is_temporary
    }
    try:
        yield from cost_lines(count_cost(nests, sizes), names)
    except PorterError as error:
        yield f"{error.code} {error.what}"
    operations, moved = count_graph_bytes(graph)
    yield f"the graph: {operations} operations, {moved} bytes moved if none are fused"
