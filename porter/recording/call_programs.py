"""The loop nests of one recorded call: all of its graphs, and which memory of the call each buffer is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from porter.core import dtypes
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.loops.building import CallProgram
from porter.loops.coalesce import coalesce
from porter.loops.expressions import Buffer, Expr, Op, intern, walk
from porter.loops.fusion import LoopNest, Store, fuse
from porter.loops.graph import ConcreteGraph
from porter.loops.host_values import Arguments, ArgumentValue, Constant, TensorValue
from porter.loops.numbers import digest_structure, list_numbers
from porter.loops.program import ArgumentBuffer, ResultBuffer, Role, Table, Temporary
from porter.mpsgraph.graph import Value
from porter.recording.calls import read_arguments
from porter.recording.concrete import evaluate_nodes, read_concrete_graph
from porter.recording.flow import check_flow, same_elements
from porter.verdict.errors import raising_porter_errors

if TYPE_CHECKING:
    import torch

    from aten_overlay.apple.mpsgraph.objects import Ref
    from aten_overlay.apple.mpsgraph.recorder import GraphRun
    from porter.recording.calls import OpCall
    from porter.recording.record import RecordedRun


def read_call_program(ran: RecordedRun) -> CallProgram:
    """The loop nests of a call that ran. Raises PTR135, PTR345 and PTR365."""
    reader = _Reader(ran)
    with raising_porter_errors():
        if ran.others:
            before = {tensor.data_ptr(): ran.given[name] for name, tensor in ran.call.tensors().items()}
            check_flow(ran.runs, before, ran.results)
        nests = tuple(nest for run in ran.runs for nest in reader.read_graph(run))
        reader.check_results()
    arguments = read_call_arguments(ran.call, ran.results)
    key = next(iter(arguments.tensors))  # of a call that takes no tensor, its first result
    dtype = arguments.tensors[key].dtype
    roles = reader.roles
    labels = _label_buffers(nests, roles)
    numbers = list_numbers(nests)
    structure = digest_structure(nests, labels, lambda each, is_memory: _label_dtype(each, dtype, is_memory))
    shared = f"{structure} {len(numbers)}"  # values that equal numbers make one are visited once
    facts = {**read_arguments(ran.call), **dict(_wrapped_dims(arguments, key))}
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
            yield from _named_dims(f"{name}, {tensor}.dim()", value or (), rank)


def _named_dims(text: str, dims: Sequence[object], rank: int) -> Iterator[tuple[str, Value]]:
    """Which dimensions a list names; an empty one names all."""
    named = sorted({each % rank for each in dims if isinstance(each, int)} or range(rank))
    yield f"names_all_dims({text})", len(named) == rank
    yield f"names_first_dims({text})", named[0] == 0 and named[-1] == len(named) - 1
    yield f"names_last_dims({text})", named[-1] == rank - 1 and named[0] == rank - len(named)
    yield f"names_adjacent_dims({text})", named[-1] - named[0] == len(named) - 1


def read_call_arguments(call: OpCall, results: Sequence[torch.Tensor]) -> Arguments:
    """The arguments of a call as plain values, and the shapes of its results."""
    found = {**call.tensors(), **{f"result{i}": each for i, each in enumerate(results)}}
    tensors = {name: TensorValue(tuple(each.shape), _dtype(each)) for name, each in found.items()}
    return Arguments(tensors, {name: _plain(value) for name, value in call.arguments.items() if _is_plain(value)})


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, (bool, int, float, str, type(None)))


def _plain(value: Any) -> ArgumentValue:
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def _dtype(tensor: torch.Tensor) -> DType:
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in dtypes.BY_TORCH:
        raise PorterError("PTR345", f"elements of type {name} have no loop form", hint="See docs/errors/PTR345.md.")
    return dtypes.BY_TORCH[name]


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
        self._results = {tensor.data_ptr(): i for i, tensor in reversed(list(enumerate(ran.results)))}
        self._written: dict[int, Buffer] = {}
        self._nodes = 0
        self.roles: dict[Buffer, Role] = {}

    def read_graph(self, run: GraphRun) -> Iterator[LoopNest]:
        scalars = {ref for ref, address in run.feeds.items() if self._is_scalar(run, ref, address)}
        graph = read_concrete_graph(run, scalars)
        nests = [coalesce(nest) for nest in fuse(graph)]
        buffers = {Buffer(ref.node, ref.output): self._find_memory(run, ref) for ref in run.feeds if ref not in scalars}
        for ref, address in run.results.items():
            buffers[Buffer(ref.node, ref.output)] = self._result_memory(run, ref, address)
        for nest in nests:
            for store in nest.stores:
                if store.buffer not in buffers:
                    buffers[store.buffer] = self._add(Temporary(Constant(store.size), store.dtype))
            for buffer in nest.reads():
                if buffer not in buffers:
                    buffers[buffer] = self._add(_table(graph, buffer))
        for nest in nests:
            yield _replace_buffers(nest, buffers)

    def check_results(self) -> None:
        """Every result is written by a graph, or is an argument. Raises PTR365."""
        written = {role.index for role in self.roles.values() if isinstance(role, ResultBuffer)}
        for i, result in enumerate(self._ran.results):
            if i not in written and result.numel() and result.data_ptr() not in self._names:
                raise _unknown(f"no memory of result {i}, of shape {tuple(result.shape)}")

    def _is_scalar(self, run: GraphRun, ref: Ref, address: int) -> bool:
        known = {*self._names, *self._results, *self._written}
        return run.values[ref].numel() == 1 and address not in known

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
        names = [self._names[address]] if address in self._names else list(self._inputs)
        for name in names:
            given = self._ran.given[name]
            if given.dtype == value.dtype and same_elements(value, given):
                return self._shared(ArgumentBuffer(name))
        raise _unknown(f"an operand of shape {tuple(value.shape)}, which is no argument's elements in order")

    def _result_memory(self, run: GraphRun, ref: Ref, address: int) -> Buffer:
        if address in self._names:
            made = self._shared(ArgumentBuffer(self._names[address]))
        elif address in self._results:
            made = self._shared(ResultBuffer(self._results[address]))
        else:
            made = self._find_copy(evaluate_nodes(run)[ref]) or self._add(_temporary(evaluate_nodes(run)[ref]))
        self._written[address] = made
        return made

    def _find_copy(self, value: torch.Tensor) -> Buffer | None:
        """The result that host code copies a graph's result to."""
        for i, result in enumerate(self._ran.results):
            is_free = result.data_ptr() not in self._written
            if is_free and result.dtype == value.dtype and same_elements(value, result):
                return self._shared(ResultBuffer(i))
        return None


def _temporary(value: torch.Tensor) -> Temporary:
    return Temporary(Constant(value.numel()), _dtype(value))


def _table(graph: ConcreteGraph, buffer: Buffer) -> Table:
    result = graph.nodes[buffer.node].results[buffer.output]
    if result.elements is None:
        raise _unknown("a constant of more elements than are kept")
    return Table(result.elements, result.dtype)


def _unknown(what: str) -> PorterError:
    return PorterError("PTR365", f"the call's graphs use {what}", hint="See docs/errors/PTR365.md.")


def _replace_buffers(nest: LoopNest, buffers: Mapping[Buffer, Buffer]) -> LoopNest:
    """The nest with other names of its memory, which nothing is simplified by."""
    made: dict[Expr, Expr] = {}
    for each in walk(*(expr for store in nest.stores for expr in (store.place, store.value))):
        attribute = buffers[each.attribute] if isinstance(each.attribute, Buffer) else each.attribute
        made[each] = intern(each.op, [made[arg] for arg in each.args], each.dtype, attribute)

    def change(store: Store) -> Store:
        return replace(store, buffer=buffers[store.buffer], place=made[store.place], value=made[store.value])

    assert all(each.op is not Op.LOAD or isinstance(each.attribute, Buffer) for each in made)
    return LoopNest(tuple(map(change, nest.stores)), nest.rows)
