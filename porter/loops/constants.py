"""Results of a graph that no operand gives: their elements are computed by the kernel, as the graph would have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from porter.loops.graph import ConcreteGraph, Node, Tensor, list_tensors
from porter.loops.lowering import needs_no_table


def compute_constants(graph: ConcreteGraph) -> ConcreteGraph:
    """The graph without the elements of constants that results are, where operations on other constants make them."""
    computed = {each for tensor in graph.results for each in _list_computed(graph, tensor)}
    return replace(graph, nodes=tuple(_forget(node, i, computed) for i, node in enumerate(graph.nodes)))


def _list_computed(graph: ConcreteGraph, tensor: Tensor) -> Iterator[Tensor]:
    """A constant whose elements differ, and those that it is computed from."""
    node, result = graph.nodes[tensor.node], graph.result(tensor)
    operands = list_tensors(node.arguments)
    if tensor in graph.feeds or not result.elements or not operands or needs_no_table(node, result):
        return
    yield tensor
    for each in operands:
        yield from _list_computed(graph, each)


def _forget(node: Node, at: int, computed: set[Tensor]) -> Node:
    results = tuple(
        replace(each, elements=None) if Tensor(at, i) in computed else each for i, each in enumerate(node.results)
    )
    return replace(node, results=results)
