"""Turns a graph that ran into a concrete one: the shapes and types of all tensors, and the elements of constants.

Calls whose graphs expand an argument before all else are seen as calls with that argument expanded. Sizes of porter's
own are never 1, so a kernel that reads the argument by its own sizes would be right at all of them, and wrong at 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod
from typing import TYPE_CHECKING, Any

from porter.loops.graph import Argument, ConcreteGraph, Descriptor, Node, Result, Tensor
from porter.loops.program import list_own_dims
from porter.recording.calls import read_dtype
from porter.recording.runs import RecordedRun, same_elements

if TYPE_CHECKING:
    import torch

    from aten_overlay.apple.mpsgraph.objects import Ref
    from aten_overlay.apple.mpsgraph.recorder import GraphRun

_MAX_ELEMENTS = 4096  # of a constant that is kept
_PLACEHOLDER = "placeholderWithShape:dataType"
_MAX_TURNED = 5  # dimensions of a tensor whose orders are tried
_SLICE = "sliceTensor:starts:ends:strides"
_BROADCAST = "broadcastTensor:toShape"
_TENSOR = "Tensor"


def read_concrete_graph(run: GraphRun, constants: Collection[Ref] = ()) -> ConcreteGraph:
    """The graph of a run; what is fed for `constants` is no memory, but their elements.

    Raises PTR345 for elements of a type that Metal does not have.
    """
    known = {(ref.node, ref.output): run.values[ref] for ref in constants}
    values = evaluate_nodes(run)
    feeds = frozenset(_tensor(ref) for ref in run.feeds if ref not in constants)
    nodes = tuple(
        Node(
            node.selector,
            tuple(map(_argument, node.arguments)),
            _results(i, tuple(known.get((i, j), result) for j, result in enumerate(node.results)), values, feeds),
        )
        for i, node in enumerate(run.graph.nodes)
    )
    return ConcreteGraph(nodes, feeds, tuple(_tensor(ref) for ref in run.results))


@dataclass(frozen=True)
class View:
    """What host code feeds in place of an argument: an operation on it, and its arguments after the tensor."""

    selector: str
    arguments: tuple[Argument, ...]
    shape: tuple[int, ...]  # of the argument


def find_view(value: torch.Tensor, given: torch.Tensor) -> View | None:
    """How a value is a view of a tensor: expanded, or with its dimensions in another order."""
    shape = tuple(given.shape)
    if given.dtype != value.dtype or not value.numel():
        return None
    sizes = zip(reversed(given.shape), reversed(value.shape), strict=False)
    is_smaller = given.dim() <= value.dim() and all(a in (1, b) for a, b in sizes)
    if is_smaller and given.numel() < value.numel() and given.expand(value.shape).equal(value):
        return View(_BROADCAST, (tuple(value.shape),), shape)
    if len(shape) != value.dim() or len(shape) > _MAX_TURNED or given.numel() != value.numel():
        return None
    for order in permutations(range(len(shape))):
        if given.permute(order).shape == value.shape and given.permute(order).equal(value):
            return View("transposeTensor:permutation", (order,), shape)
    return None


def view_feeds(graph: ConcreteGraph, views: Mapping[Tensor, View]) -> ConcreteGraph:
    """The graph fed with arguments in place of their views, which it makes."""
    nodes = list(graph.nodes)
    feeds = set(graph.feeds)
    for tensor, view in views.items():
        made = graph.result(tensor)
        argument = Tensor(len(nodes))
        nodes.append(Node(_PLACEHOLDER, (), (Result(view.shape, made.dtype),)))
        nodes[tensor.node] = Node(view.selector, (argument, *view.arguments), (made,))
        feeds = (feeds - {tensor}) | {argument}
    return ConcreteGraph(tuple(nodes), frozenset(feeds), graph.results)


def fits(room: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether memory has room for a part of a result alone, which is cut to it, or for more than its one element."""
    pairs = list(zip(room, shape, strict=False))
    is_part = len(room) == len(shape) and all(a <= b for a, b in pairs)
    return room != shape and (is_part or prod(shape) == 1 < prod(room))


def fit_results(graph: ConcreteGraph, shapes: Mapping[Tensor, tuple[int, ...]]) -> ConcreteGraph:
    """The graph with some results cut or, if they are of one element, expanded to these shapes of memory."""
    nodes = list(graph.nodes)
    results = []
    for tensor in graph.results:
        fitting = tensor
        shape = shapes.get(tensor)
        if shape is not None:
            made = graph.result(tensor)
            cut = Node(_SLICE, (tensor, (0,) * len(shape), shape, (1,) * len(shape)), (Result(shape, made.dtype),))
            expanded = Node(_BROADCAST, (tensor, shape), (Result(shape, made.dtype),))
            fitting = Tensor(len(nodes))
            nodes.append(expanded if made.size == 1 else cut)
        results.append(fitting)
    return ConcreteGraph(tuple(nodes), graph.feeds, tuple(results))


def fit_value(value: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
    """A result as memory of some shape has it."""
    if not fits(shape, tuple(value.shape)):
        return value
    return value.reshape(()).expand(shape) if value.numel() == 1 else value[tuple(map(slice, shape))]


def evaluate_nodes(run: GraphRun, in_double: bool = False) -> Mapping[Ref, torch.Tensor]:
    """The value of every tensor that the results depend on; `in_double`, no floating type rounds."""
    import torch

    from aten_overlay.apple.mpsgraph.precision import AS_WRITTEN, IN_DOUBLE
    from aten_overlay.apple.mpsgraph.recorder import evaluate

    precision = IN_DOUBLE if in_double else AS_WRITTEN
    values = {ref: precision.convert(value) for ref, value in run.values.items()}
    with torch.no_grad():
        for ref in run.results:
            evaluate(run.graph, ref, values, precision)
    return values


def _results(
    node: int, known: tuple[torch.Tensor | None, ...], values: Mapping[Ref, torch.Tensor], feeds: frozenset[Tensor]
) -> tuple[Result, ...]:
    from aten_overlay.apple.mpsgraph.objects import Ref

    found = []
    for i, inferred in enumerate(known):
        value = values.get(Ref(node, i), inferred)
        if value is None:
            return ()
        is_constant = inferred is not None and not inferred.is_meta and Tensor(node, i) not in feeds
        constant = inferred if is_constant else None
        elements = None
        if constant is not None and not constant.is_complex() and constant.numel() <= _MAX_ELEMENTS:
            elements = tuple(constant.flatten().tolist())
        found.append(Result(tuple(value.shape), read_dtype(value), elements))
    return tuple(found)


def _argument(value: Any) -> Argument:
    if hasattr(value, "node"):
        return _tensor(value)
    if hasattr(value, "properties"):
        return Descriptor(value.name, tuple((name, _argument(each)) for name, each in value.properties))
    if isinstance(value, (list, tuple)):
        return tuple(map(_argument, value))
    return value if isinstance(value, (bool, int, float, str, type(None))) else type(value).__name__


def _tensor(ref: Ref) -> Tensor:
    return Tensor(ref.node, ref.output)


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
        call = call.with_arguments({name: call.tensors()[name].expand(shape)})
    runs = tuple(_feed_expanded(run, list(_list_fed(ran, run)), shapes) for run in ran.runs)
    return replace(ran, call=call, given=given, runs=runs, own_shapes=own, before=ran)


def _find_shapes(ran: RecordedRun) -> dict[str, tuple[int, ...]]:
    """What arguments are expanded to, of whose shapes the first sizes are those of the first result."""
    plain = {each.name for each in ran.call.overload._schema.arguments if str(each.type) == _TENSOR}
    found: dict[str, set[tuple[int, ...] | None]] = {}
    for run in ran.runs:
        for _, (name, at) in _list_fed(ran, run):
            expanded = run.graph.nodes[at].results[0] if at >= 0 else None
            found.setdefault(name, set()).add(None if expanded is None else tuple(expanded.shape))
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
