"""Compares the loop form of a graph with the graph run node by node, both in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from porter.core.errors import PorterError
from porter.loops.coalesce import coalesce
from porter.loops.expressions import Buffer
from porter.loops.fusion import LoopNest, fuse
from porter.recording.concrete import evaluate_nodes, read_concrete_graph
from porter.recording.loop_values import evaluate_expression

if TYPE_CHECKING:
    from aten_overlay.apple.mpsgraph.recorder import GraphRun

TOLERANCE = 1e-5  # relative, and absolute: MPSGraph's operations on images find places in float32


def check_loop_form(run: GraphRun, tolerance: float = TOLERANCE) -> tuple[tuple[LoopNest, ...], list[str]]:
    """The loop nests of a graph that ran, and how their results differ from the graph's. Raises PTR345 and PTR346."""
    graph = read_concrete_graph(run)
    values = {Buffer(ref.node, ref.output): value for ref, value in evaluate_nodes(run, in_double=True).items()}
    nests = tuple(map(coalesce, fuse(graph)))
    buffers = {buffer: value for buffer, value in values.items() if _is_given(buffer, nests)}
    for nest in nests:
        buffers |= evaluate_nest(nest, buffers)
    found = []
    for tensor in graph.results:
        buffer = Buffer(tensor.node, tensor.output)
        difference = describe_difference(buffers[buffer], values[buffer], tolerance)
        found += [f"{buffer.node}.{buffer.output}: {difference}"] if difference else []
    return nests, found


def _is_given(buffer: Buffer, nests: tuple[LoopNest, ...]) -> bool:
    return all(store.buffer != buffer for nest in nests for store in nest.stores)


def evaluate_nest(nest: LoopNest, buffers: Mapping[Buffer, Tensor]) -> dict[Buffer, Tensor]:
    """What a kernel stores."""
    made = {}
    for store in nest.stores:
        place, value = (evaluate_expression(each, buffers, store.loops) for each in (store.place, store.value))
        if sorted(place.flatten().tolist()) != list(range(store.size)):
            raise PorterError("PTR346", "a loop form does not store every element once", hint="Report it.")
        made[store.buffer] = torch.empty(store.size, dtype=value.dtype).scatter_(0, place.flatten(), value.flatten())
    return made


def describe_difference(found: Tensor, expected: Tensor, tolerance: float) -> str:
    """The first element that differs beyond rounding; empty if none does."""
    found = found.reshape(expected.shape)
    same = torch.isclose(found.to(expected.dtype), expected, tolerance, tolerance, equal_nan=True)
    if bool(same.all()):
        return ""
    at = tuple(torch.nonzero(~same)[0].tolist())
    return f"{int((~same).sum())} of {same.numel()} differ; at {at}: {found[at].item()} for {expected[at].item()}"
