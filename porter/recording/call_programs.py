"""The loop nests of one recorded call: all of its graphs, and which memory of the call each buffer is.

Host code may feed graphs numbers that it makes of sizes and scalars in memory that another kernel fills. What such a
kernel computes of elements is no number of the call: it differs where the tensors have other elements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from porter.core.dtypes import DType
from porter.core.errors import PorterError, explained
from porter.loops.building import CallProgram
from porter.loops.expressions import Buffer, Expr, cast, intern, walk
from porter.loops.fusion import LoopNest, Store, coalesce, fuse, reverse_loops
from porter.loops.graph import ConcreteGraph, Tensor
from porter.loops.host_values import Arguments, ArgumentValue, Constant, TensorValue
from porter.loops.numbers import digest_sharing, digest_structure, list_numbers
from porter.loops.program import ArgumentBuffer, ResultBuffer, Role, Table, Temporary
from porter.mpsgraph.graph import Value
from porter.recording.calls import read_choices, read_dtype
from porter.recording.concrete import (
    View,
    evaluate_nodes,
    find_view,
    fit_results,
    fits,
    read_concrete_graph,
    view_feeds,
)
from porter.recording.runs import RecordedRun, check_flow, run_call, same_elements
from porter.verdict.errors import raising_porter_errors

if TYPE_CHECKING:
    from aten_overlay.apple.mpsgraph.objects import Ref
    from aten_overlay.apple.mpsgraph.recorder import GraphRun
    from porter.recording.calls import OpCall

Run = Callable[["OpCall"], "RecordedRun"]
_MAX_MADE = 8  # elements that host code makes, such as sizes and scales


def find_made(ran: RecordedRun, run: Run) -> frozenset[int]:
    """The addresses that graphs are fed one number from, which is the same if the call runs with other elements."""
    try:
        other = run(with_other_elements(ran.call))
    except Exception:  # the fork's code may refuse the elements
        return frozenset()
    return frozenset(_list_same(ran, other)) if len(other.runs) == len(ran.runs) else frozenset()


def _list_same(ran: RecordedRun, other: RecordedRun) -> Iterator[int]:
    given = {tensor.data_ptr() for tensor in ran.call.tensors().values()}
    for one, again in zip(ran.runs, other.runs, strict=True):
        for ref, address in one.feeds.items():
            value, second = one.values[ref], again.values.get(ref)
            if address not in given and value.numel() == 1 and second is not None and value.equal(second):
                yield address


def with_other_elements(call: OpCall) -> OpCall:
    """The call with elements drawn from those of each tensor, floating-point ones smaller."""
    changed = call
    for name, tensor in call.tensors().items():
        if name in call.arguments:  # elements of lists stay
            changed = changed.with_arguments({name: _draw(tensor)})
    return changed


def _draw(tensor: torch.Tensor) -> torch.Tensor:
    known = tensor.detach().cpu()
    if not known.numel():
        return tensor
    generator = torch.Generator().manual_seed(0)
    drawn = known.flatten()[torch.randint(known.numel(), known.shape, generator=generator)]
    made = drawn * 0.75 if drawn.is_floating_point() else drawn
    return made.to(tensor.device)


def read_call_program(ran: RecordedRun) -> CallProgram:
    """The loop nests of a call that ran. Raises PTR135, PTR345 and PTR365."""
    reader = _Reader(ran)
    with raising_porter_errors():
        if ran.others:
            # Follows the elements of a call that ran other kernels too. Raises PTR135.
            before = {tensor.data_ptr(): ran.given[name] for name, tensor in ran.call.tensors().items()}
            try:
                check_flow(ran.runs, before, ran.results)
            except PorterError:
                check_flow(ran.runs, before, ran.results, find_made(ran, run_call))
        nests = tuple(nest for run in ran.runs for nest in reader.read_graph(run))
        reader.check_results()
    arguments = read_call_arguments(ran.call, ran.made)
    own = {name: replace(arguments.tensors[name], own=shape) for name, shape in ran.own_shapes.items()}
    arguments = replace(arguments, tensors={**arguments.tensors, **own})
    key = next(iter(arguments.tensors))  # of a call that takes no tensor, its first result
    dtype = arguments.tensors[key].dtype
    roles = reader.roles
    labels = _label_buffers(nests, roles)
    numbers = list_numbers(nests)
    structure = digest_structure(nests, labels, lambda each, is_memory: _label_dtype(each, dtype, is_memory))
    shared = f"{structure} {digest_sharing(nests)}"
    empty = {f"{name}.empty()": not value for name, value in arguments.others.items() if isinstance(value, tuple)}
    facts = {**read_choices(ran.call), **empty, **dict(_wrapped_dims(arguments, key))}
    return CallProgram(arguments, facts, key, dtype, nests, roles, shared, numbers)


def _wrapped_dims(call: Arguments, tensor: str) -> Iterator[tuple[str, Value]]:
    """What host code can ask of the dimensions that arguments name."""
    rank = len(call.tensors[tensor].shape)
    for name, value in call.others.items():
        if "dim" not in name or isinstance(value, (bool, float, str)) or not rank:
            continue
        if isinstance(value, int):
            wrapped = f"maybe_wrap_dim({name}, {tensor}.dim())"
            yield wrapped, value % rank
            yield f"{wrapped} == {tensor}.dim() - 1", value % rank == rank - 1
        else:
            # Which dimensions a list names; an empty one names all
            text = f"{name}, {tensor}.dim()"
            named = sorted({each % rank for each in (value or ()) if isinstance(each, int)} or range(rank))
            yield f"names_all_dims({text})", len(named) == rank
            yield f"names_first_dims({text})", named[0] == 0 and named[-1] == len(named) - 1
            yield f"names_last_dims({text})", named[-1] == rank - 1 and named[0] == rank - len(named)
            yield f"names_adjacent_dims({text})", named[-1] - named[0] == len(named) - 1


def read_call_arguments(call: OpCall, results: Mapping[int, torch.Tensor]) -> Arguments:
    """The arguments of a call as plain values, and the shapes of its results."""
    found = {**call.tensors(), **{f"result{i}": each for i, each in results.items()}}
    tensors = {name: TensorValue(tuple(each.shape), read_dtype(each)) for name, each in found.items()}
    scalars = {each.name for each in call.overload._schema.arguments if "number" in str(each.type)}
    plain = {name: _plain(value) for name, value in call.arguments.items() if _is_plain(value)}
    truths = {name: int(value) for name, value in plain.items() if name in scalars and isinstance(value, bool)}
    return Arguments(tensors, {**plain, **truths})  # kernels compute with a truth value as a number


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, (bool, int, float, str, type(None)))


def _plain(value: Any) -> ArgumentValue:
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def _label_dtype(dtype: DType | None, key: DType, is_memory: bool) -> str:
    """An element type relative to that of the key, so that calls of several types share a structure."""
    if dtype is None:
        return ""
    return "key" if dtype == (key if is_memory else key.opmath) else str(dtype)


def _label_buffers(nests: Sequence[LoopNest], roles: Mapping[Buffer, Role]) -> dict[Buffer, str]:
    labels: dict[Buffer, str] = {}
    for buffer in (each for nest in nests for each in (*nest.reads(), *(store.buffer for store in nest.stores))):
        match roles[buffer]:
            case ArgumentBuffer(name):
                labels[buffer] = name
            case ResultBuffer(index):
                labels[buffer] = f"result {index}"
            case Table(elements, _):
                labels[buffer] = f"table {elements}"
            case Temporary():
                labels.setdefault(buffer, f"temporary {len(labels)}")
    return labels


class _Reader:
    """Reads the graphs of a call one after the other, following memory by its address."""

    def __init__(self, ran: RecordedRun) -> None:
        self._ran = ran
        self._inputs = ran.call.tensors()
        self._names = {tensor.data_ptr(): name for name, tensor in self._inputs.items()}
        self._results = {tensor.data_ptr(): i for i, tensor in reversed(list(ran.made.items()))}
        self._written: dict[int, Buffer] = {}
        self._nodes = 0
        self.roles: dict[Buffer, Role] = {}

    def read_graph(self, run: GraphRun) -> Iterator[LoopNest]:
        constants = {ref for ref in run.feeds if self._is_constant(run, ref)}
        whole = read_concrete_graph(run, constants)
        fitting = fit_results(whole, self._find_room(run, whole))
        feeds = [ref for ref in run.feeds if ref not in constants]
        views = {Tensor(ref.node, ref.output): view for ref in feeds if (view := self._find_view(run, ref))}
        graph = view_feeds(fitting, {tensor: view for tensor, (_, view) in views.items()})
        nests = [coalesce(nest) for nest in fuse(graph)]
        in_order = [ref for ref in feeds if Tensor(ref.node, ref.output) not in views]
        buffers = {Buffer(ref.node, ref.output): self._find_memory(run, ref) for ref in in_order}
        for i, (name, _) in enumerate(views.values()):
            buffers[Buffer(len(fitting.nodes) + i)] = self._shared(ArgumentBuffer(name))
        for tensor, (ref, address) in zip(graph.results, run.results.items(), strict=True):
            buffers[Buffer(tensor.node, tensor.output)] = self._result_memory(run, ref, address)
        for nest in nests:
            for store in nest.stores:
                if store.buffer not in buffers:
                    buffers[store.buffer] = self._add(Temporary(Constant(store.size), store.dtype))
            for buffer in nest.reads():
                if buffer not in buffers:
                    result = graph.nodes[buffer.node].results[buffer.output]
                    if result.elements is None:
                        raise _unknown("a constant of more elements than are kept")
                    buffers[buffer] = self._add(Table(result.elements, result.dtype))
        for nest in nests:
            yield reverse_loops(_replace_buffers(nest, buffers, self._find_types()))

    def check_results(self) -> None:
        """Every result is written by a graph, or is an argument. Raises PTR365."""
        written = {role.index for role in self.roles.values() if isinstance(role, ResultBuffer)}
        for i, result in self._ran.made.items():
            if i not in written and result.numel() and result.data_ptr() not in self._names:
                raise _unknown(f"no memory of result {i}, of shape {tuple(result.shape)}")

    def _is_constant(self, run: GraphRun, ref: Ref) -> bool:
        """Whether host code made what is fed: one number for all elements, or a few."""
        address, value = run.feeds[ref], run.values[ref]
        if address in {*self._names, *self._written}:
            return False
        if value.numel() == 1:  # also a result that host code fills
            return True
        is_made = value.numel() <= _MAX_MADE or bool((value == value.flatten()[0]).all())
        return is_made and self._find_argument(value, self._inputs) is None

    def _find_room(self, run: GraphRun, graph: ConcreteGraph) -> dict[Tensor, tuple[int, ...]]:
        """The shapes of memory that has no room for all of a result, or for more than the one element of it."""
        held = {tensor.data_ptr(): tensor for tensor in (*self._ran.results, *self._inputs.values())}
        found = {}
        for tensor, address in zip(graph.results, run.results.values(), strict=True):
            shape = tuple(held[address].shape) if address in held else graph.result(tensor).shape
            if fits(shape, graph.result(tensor).shape):
                found[tensor] = shape
        return found

    def _find_types(self) -> dict[Buffer, DType]:
        """The element types of arguments and results, as which a graph may have other types."""
        found = {}
        for buffer, role in self.roles.items():
            if isinstance(role, ArgumentBuffer):
                found[buffer] = read_dtype(self._inputs[role.name])
            elif isinstance(role, ResultBuffer):
                found[buffer] = read_dtype(self._ran.made[role.index])
        return found

    def _add(self, role: Role) -> Buffer:
        self._nodes += 1
        buffer = Buffer(self._nodes)
        self.roles[buffer] = role
        return buffer

    def _shared(self, role: Role) -> Buffer:
        """The buffer with this role: one argument is one buffer, however often it is fed."""
        found = next((buffer for buffer, each in self.roles.items() if each == role), None)
        return found or self._add(role)

    def _find_memory(self, run: GraphRun, ref: Ref) -> Buffer:
        address, value = run.feeds[ref], run.values[ref]
        if address in self._written:
            return self._written[address]
        if address in self._names and same_elements(value, self._ran.given[self._names[address]]):
            return self._shared(ArgumentBuffer(self._names[address]))  # perhaps as another type
        name = None if address in self._names else self._find_argument(value, self._inputs)
        if name is not None:
            return self._shared(ArgumentBuffer(name))
        raise _unknown(f"an operand of shape {tuple(value.shape)}, which is no argument's elements in order")

    def _find_view(self, run: GraphRun, ref: Ref) -> tuple[str, View] | None:
        """The argument that a feed is a view of, and how; None for one whose elements are in order."""
        address, value = run.feeds[ref], run.values[ref]
        if address in self._written or self._find_argument(value, self._inputs) is not None:
            return None
        names = [self._names[address]] if address in self._names else list(self._inputs)
        for name in names:
            if not same_elements(value, self._ran.given[name]) and (view := find_view(value, self._ran.given[name])):
                return name, view
        return None

    def _find_argument(self, value: torch.Tensor, names: Iterable[str]) -> str | None:
        """The argument that has the elements of a value."""
        given = ((name, self._ran.given[name]) for name in names)
        return next((name for name, each in given if _is_held(value, each) and same_elements(value, each)), None)

    def _result_memory(self, run: GraphRun, ref: Ref, address: int) -> Buffer:
        if address in self._names:
            made = self._shared(ArgumentBuffer(self._names[address]))
        elif address in self._results:
            made = self._shared(ResultBuffer(self._results[address]))
        else:
            value = evaluate_nodes(run)[ref]
            made = self._find_copy(value) or self._add(Temporary(Constant(value.numel()), read_dtype(value)))
        self._written[address] = made
        return made

    def _find_copy(self, value: torch.Tensor) -> Buffer | None:
        """The result that host code copies a graph's result to."""
        for i, result in self._ran.made.items():
            is_free = result.data_ptr() not in self._written
            if is_free and result.dtype == value.dtype and same_elements(value, result):
                return self._shared(ResultBuffer(i))
        return None


def _is_held(value: torch.Tensor, given: torch.Tensor) -> bool:
    """Whether a value has the type of a tensor, or that which graphs take a bool as."""
    return given.dtype == value.dtype or (str(given.dtype), str(value.dtype)) == ("torch.bool", "torch.int8")


def _unknown(what: str) -> PorterError:
    return explained("PTR365", f"the call's graphs use {what}")


def _replace_buffers(nest: LoopNest, buffers: Mapping[Buffer, Buffer], types: Mapping[Buffer, DType]) -> LoopNest:
    """The nest with other names of its memory, and with the types that it has, which nothing is simplified by."""
    made: dict[Expr, Expr] = {}
    for each in walk(*(expr for store in nest.stores for expr in (store.place, store.value))):
        args = [made[arg] for arg in each.args]
        if isinstance(each.attribute, Buffer):
            buffer = buffers[each.attribute]
            made[each] = intern(each.op, args, types.get(buffer, each.dtype), buffer)
            if each.dtype is not None and made[each].dtype != each.dtype:
                made[each] = cast(made[each], each.dtype)
        else:
            made[each] = intern(each.op, args, each.dtype, each.attribute)

    def change(store: Store) -> Store:
        buffer, value = buffers[store.buffer], made[store.value]
        dtype = types.get(buffer, store.dtype)
        value = value if dtype == store.dtype else cast(value, dtype)
        return replace(store, buffer=buffer, dtype=dtype, place=made[store.place], value=value)

    return LoopNest(tuple(map(change, nest.stores)), nest.rows)
