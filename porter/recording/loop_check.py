"""Compares the loop form of a graph with the graph run node by node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from porter.core.dtypes import DType, Kind
from porter.loops.expressions import Buffer
from porter.loops.fusion import LoopNest, fuse
from porter.recording.concrete import evaluate_nodes, read_concrete_graph
from porter.recording.loop_values import evaluate_expression

if TYPE_CHECKING:
    from aten_overlay.apple.mpsgraph.recorder import GraphRun

# Relative and absolute: the graph rounds a reduced type after every node, the loop form when it stores.
_TOLERANCE = {24: (3e-5, 1e-5), 11: (5e-3, 2e-3), 8: (3e-2, 2e-2)}


def check_loop_form(run: GraphRun) -> tuple[tuple[LoopNest, ...], list[str]]:
    """The loop nests of a graph that ran, and how their results differ from the graph's. Raises PTR345 and PTR346."""
    graph = read_concrete_graph(run)
    values = {Buffer(ref.node, ref.output): value for ref, value in evaluate_nodes(run).items()}
    nests = fuse(graph)
    buffers = {buffer: value for buffer, value in values.items() if _is_given(buffer, nests)}
    for nest in nests:
        buffers |= evaluate_nest(nest, buffers)
    found = []
    for tensor in graph.results:
        buffer = Buffer(tensor.node, tensor.output)
        difference = describe_difference(buffers[buffer], values[buffer], graph.result(tensor).dtype)
        found += [f"{buffer.node}.{buffer.output}: {difference}"] if difference else []
    return nests, found


def _is_given(buffer: Buffer, nests: tuple[LoopNest, ...]) -> bool:
    return all(store.buffer != buffer for nest in nests for store in nest.stores)


def evaluate_nest(nest: LoopNest, buffers: Mapping[Buffer, Tensor]) -> dict[Buffer, Tensor]:
    """What a kernel stores, rounded to its element types."""
    made = {}
    for store in nest.stores:
        value = evaluate_expression(store.value, buffers, store.loops)
        made[store.buffer] = value.reshape(store.shape).to(getattr(torch, store.dtype.torch))
    return made


def describe_difference(found: Tensor, expected: Tensor, dtype: DType) -> str:
    """The first element that differs beyond rounding; empty if none does."""
    if dtype.kind is Kind.FLOATING:
        relative, absolute = _TOLERANCE[dtype.digits]
        same = torch.isclose(found.double(), expected.double(), relative, absolute, equal_nan=True)
    else:
        same = found == expected
    if bool(same.all()):
        return ""
    at = tuple(torch.nonzero(~same)[0].tolist())
    return f"{int((~same).sum())} of {same.numel()} differ; at {at}: {found[at].item()} for {expected[at].item()}"
