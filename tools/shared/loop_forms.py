"""Compares the loop form of a graph with the graph itself, for the tool that measures whole forks and for tests."""

from __future__ import annotations

from aten_overlay.apple.mpsgraph.recorder import GraphRun
from porter.loops.expressions import Buffer
from porter.loops.fusion import LoopNest, coalesce, fuse
from porter.recording.concrete import evaluate_nodes, read_concrete_graph
from porter.recording.evaluation import describe_difference, evaluate_nest

TOLERANCE = 1e-5  # relative, and absolute: MPSGraph's operations on images find places in float32


def check_loop_form(run: GraphRun, tolerance: float = TOLERANCE) -> tuple[tuple[LoopNest, ...], list[str]]:
    """The loop nests of a graph that ran, and how their results differ from the graph's. Raises PTR345 and PTR346."""
    graph = read_concrete_graph(run)
    values = {Buffer(ref.node, ref.output): value for ref, value in evaluate_nodes(run, in_double=True).items()}
    nests = tuple(map(coalesce, fuse(graph)))
    stored = {store.buffer for nest in nests for store in nest.stores}
    buffers = {buffer: value for buffer, value in values.items() if buffer not in stored}
    for nest in nests:
        buffers |= evaluate_nest(nest, buffers)
    differing = []
    for tensor in graph.results:
        buffer = Buffer(tensor.node, tensor.output)
        difference = describe_difference(buffers[buffer], values[buffer], tolerance)
        differing += [f"{buffer.node}.{buffer.output}: {difference}"] if difference else []
    return nests, differing
