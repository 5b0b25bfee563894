"""Calls whose graphs expand an argument before all else, seen as calls with that argument expanded.

Sizes of porter's own are never 1, so what these graphs expand is as large before: a kernel that reads the argument by
its own sizes is right at all of them, and wrong where one is 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from porter.loops.program import list_own_dims
from porter.recording.flow import same_elements
from porter.recording.record import RecordedRun

if TYPE_CHECKING:
    import torch

    from aten_overlay.apple.mpsgraph.objects import Ref
    from aten_overlay.apple.mpsgraph.recorder import GraphRun, Node

_BROADCAST = "broadcastTensor:toShape"
_TENSOR = "Tensor"
_Fed = tuple[str, int]  # an argument, and the only node that reads what is fed of it


def expand_arguments(ran: RecordedRun) -> RecordedRun:
    """The run with the arguments expanded that its graphs only expand; the run itself if there are none."""
    shapes = _find_shapes(ran)
    if not shapes:
        return ran
    given, call = dict(ran.given), ran.call
    own = {name: tuple(given[name].shape) for name in shapes}
    for name, shape in shapes.items():
        given[name] = given[name].expand(shape).contiguous()
        call = call.with_argument(name, call.tensors()[name].expand(shape))
    runs = tuple(_feed_expanded(run, list(_list_fed(ran, run)), shapes) for run in ran.runs)
    return replace(ran, call=call, given=given, runs=runs, own_shapes=own, before=ran)


def _find_shapes(ran: RecordedRun) -> dict[str, tuple[int, ...]]:
    """What arguments are expanded to, of whose shapes the first sizes are those of the first result."""
    plain = {each.name for each in ran.call.overload._schema.arguments if str(each.type) == _TENSOR}
    found: dict[str, set[tuple[int, ...] | None]] = {}
    for run in ran.runs:
        for _, (name, at) in _list_fed(ran, run):
            found.setdefault(name, set()).add(_read_shape(run.graph.nodes[at]) if at >= 0 else None)
    result = tuple(ran.made[0].shape) if 0 in ran.made else ()
    return {
        name: shape
        for name, shapes in found.items()
        for shape in shapes
        if len(shapes) == 1 and name in plain and shape and list_own_dims(tuple(ran.given[name].shape), shape, result)
    }


def _list_fed(ran: RecordedRun, run: GraphRun) -> Iterator[tuple[Ref, _Fed]]:
    """What is fed of arguments, with the node that reads it; none (-1) where others do."""
    names = {tensor.data_ptr(): name for name, tensor in ran.call.tensors().items()}
    for ref, address in run.feeds.items():
        name = names.get(address)
        if name is not None:
            readers = [i for i, node in enumerate(run.graph.nodes) if ref in _list_refs(node.arguments)]
            is_whole = ref not in run.results and same_elements(run.values[ref], ran.given[name])
            only = readers[0] if is_whole and len(readers) == 1 else -1
            yield ref, (name, only if run.graph.nodes[only].selector == _BROADCAST else -1)


def _list_refs(value: object) -> list[object]:
    if isinstance(value, (list, tuple)):
        return [ref for each in value for ref in _list_refs(each)]
    return [value] if hasattr(value, "node") else []


def _read_shape(node: Node) -> tuple[int, ...] | None:
    made = node.results[0]
    return None if made is None else tuple(made.shape)


def _feed_expanded(run: GraphRun, fed: list[tuple[Ref, _Fed]], shapes: dict[str, tuple[int, ...]]) -> GraphRun:
    """The run fed with what its graph expands."""
    from aten_overlay.apple.mpsgraph.objects import Ref
    from aten_overlay.apple.mpsgraph.recorder import PLACEHOLDER, Node, RecordedGraph

    nodes, feeds, values = list(run.graph.nodes), dict(run.feeds), dict[Ref, "torch.Tensor"](run.values)
    for ref, (name, at) in fed:
        if name not in shapes:
            continue
        old, new, shape = nodes[at], Ref(at, 0), shapes[name]
        nodes[at] = Node(f"{PLACEHOLDER}:dataType", (list(shape),), old.results, old.types)
        feeds[new], values[new] = feeds.pop(ref), values.pop(ref).expand(shape).contiguous()
    return replace(run, graph=RecordedGraph(nodes), feeds=feeds, values=values)
