"""Records the graphs that host code builds, and runs them: every message to MPSGraph becomes a node.

A node's shape and element type are what its implementation gives for `meta` tensors; running a graph calls the same
implementation on CPU tensors. Faithful to the algorithm (casts, order, constants), not to Apple's kernels.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from aten_overlay.apple.mpsgraph import kernels, semantics
from aten_overlay.apple.mpsgraph.objects import HANDLER, Array, Frameworks, Handle, Ref, Value
from aten_overlay.apple.mpsgraph.precision import AS_WRITTEN, Precision
from aten_overlay.apple.mpsgraph.types import MPS, Unknown, over, torch_type
from aten_overlay.errors import OverlayError

_RUN = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_DROP = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
PLACEHOLDER = "placeholderWithShape"
_NOT_INFERABLE = (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError)


@dataclass(frozen=True)
class Node:
    """One operation: its selector, its arguments without the name, and its results as far as they are known.

    They are `meta` tensors, values where all that goes in is constant, and None where a placeholder's shape is unknown.
    """

    selector: str
    arguments: tuple[Value, ...]
    results: tuple[torch.Tensor | None, ...]
    types: tuple[torch.dtype, ...]


@dataclass
class RecordedGraph:
    """A graph as far as it is built."""

    nodes: list[Node] = field(default_factory=list)


@dataclass(frozen=True)
class GraphRun:
    """One execution: the graph, the device address and the value of every fed placeholder, and the device address that
    every tensor asked for is written to.
    """

    graph: RecordedGraph
    feeds: Mapping[Ref, int]
    values: Mapping[Ref, torch.Tensor]
    results: Mapping[Ref, int]


@dataclass
class Recorder:
    """Answers for class MPSGraph in this process. `on_run` is called before each graph runs."""

    frameworks: Frameworks
    host_address: Callable[[int], int]
    on_run: Callable[[GraphRun], None] | None = None
    graphs: dict[int, RecordedGraph] = field(default_factory=dict)
    _callbacks: list[Any] = field(default_factory=list)
    _precision: Precision = AS_WRITTEN

    @contextmanager
    def use_precision(self, precision: Precision) -> Iterator[None]:
        """Runs graphs in this precision inside the context."""
        self._precision = precision
        try:
            yield
        finally:
            self._precision = AS_WRITTEN

    def install(self) -> None:
        """Registers this as the recorder of every graph from now on."""
        functions = (HANDLER(self._message), _RUN(self._run), _DROP(self._drop))
        self._callbacks += functions
        self.frameworks.library.porter_handle_messages(b"MPSGraph", functions[0])
        self.frameworks.library.porter_set_graphs(functions[1], functions[2])
        self._callbacks.append(kernels.install(self.frameworks, self.host_address))

    def _message(self, graph: int, selector: bytes, types: bytes | None, count: int, given: Any, result: Any) -> int:
        def record() -> None:
            if types is None:
                raise _undeclared(selector.decode())
            values = tuple(self.frameworks.value(given[i]) for i in range(count))
            result[0].value.p = self._record(graph, selector.decode(), values)

        return self.frameworks.catch_errors(record)

    def _record(self, graph: int, selector: str, values: tuple[Value, ...]) -> int:
        recorded = self.graphs.setdefault(graph, RecordedGraph())
        name = selector.removesuffix("name:").rstrip(":") if selector.endswith("name:") else selector.rstrip(":")
        arguments = values[:-1] if selector.endswith("name:") else values
        results, types, many = self._infer_results(recorded, name, arguments)
        recorded.nodes.append(Node(name, arguments, results, types))
        made = [self._tensor(graph, len(recorded.nodes) - 1, i, types[i], each) for i, each in enumerate(results)]
        if not many:
            return made[0]
        array = (ctypes.c_void_p * len(made))(*made)
        return int(self.frameworks.library.porter_make_array(array, len(made)))

    def _infer_results(
        self, recorded: RecordedGraph, name: str, arguments: tuple[Value, ...]
    ) -> tuple[tuple[torch.Tensor | None, ...], tuple[torch.dtype, ...], bool]:
        if name.startswith(PLACEHOLDER):
            return (*_placeholder(arguments), False)
        unknown = any(recorded.nodes[r.node].results[r.output] is None for r in _find_refs(arguments))

        def known(ref: Ref) -> torch.Tensor:
            node = recorded.nodes[ref.node]
            found = node.results[ref.output]
            return torch.empty((1,), dtype=node.types[ref.output], device="meta") if found is None else found

        try:
            made = _infer(name, arguments, known)
        except OverlayError:
            if not (unknown and semantics.only_moves(name)):
                raise
            made = Unknown(known(_find_refs(arguments)[0]).dtype)
        many = isinstance(made, (tuple, list))
        found = tuple(made) if many else (made,)
        results = tuple(None if unknown or isinstance(each, Unknown) else each for each in found)
        return results, tuple(each.dtype for each in found), many

    def _tensor(self, graph: int, node: int, output: int, dtype: torch.dtype, known: torch.Tensor | None) -> int:
        shape = list(known.shape) if known is not None else []
        sizes = (ctypes.c_int64 * max(len(shape), 1))(*shape)
        rank = len(shape) if known is not None else -1
        return int(self.frameworks.library.porter_make_tensor(graph, node, output, MPS[dtype], sizes, rank))

    def _run(self, graph: int, feeds: int, results: int) -> int:
        def run() -> None:
            recorded = self.graphs[graph]
            fed, asked = self._dictionary(feeds), self._dictionary(results)
            values = {ref: over(array, self.host_address).clone() for ref, array in fed}
            if self.on_run:
                self.on_run(GraphRun(recorded, _find_addresses(fed), dict(values), _find_addresses(asked)))
            values = {ref: self._precision.convert(value) for ref, value in values.items()}
            with torch.no_grad():
                for ref, array in asked:
                    target = over(array, self.host_address)
                    _write(target, evaluate(recorded, ref, values, self._precision))

        return self.frameworks.catch_errors(run)

    def _dictionary(self, address: int) -> list[tuple[Ref, Array]]:
        """The tensors that a dictionary feeds or asks for, and the memory of each."""
        library = self.frameworks.library
        pairs = []
        for i in range(library.porter_count(address)):
            ref = self.frameworks.object(library.porter_key_at(address, i))
            assert isinstance(ref, Ref)
            array = Array()
            library.porter_array_of(library.porter_value_at(address, i), ctypes.byref(array))
            pairs.append((ref, array))
        return pairs

    def _drop(self, graph: int) -> None:
        self.graphs.pop(graph, None)


def _undeclared(selector: str) -> OverlayError:
    near = semantics.suggest(selector.removesuffix("name:").rstrip(":"))
    message = f"-[MPSGraph {selector}] is not supported{near}"
    return OverlayError("PTR120", message, hint="`porter explain PTR120` says more.")


def _find_addresses(arrays: list[tuple[Ref, Array]]) -> dict[Ref, int]:
    return {ref: int(array.address) for ref, array in arrays}


def _write(target: torch.Tensor, value: torch.Tensor) -> None:
    """Gives host code a result: of a larger one, what its array has room for, from the start of every dimension.

    A convolution whose stride leaves some of its source over, asked for the gradient of a transposed one.
    Source: pytorch#94871, with which that gradient's test passes on a Mac.
    """
    if value.numel() == target.numel():
        value = value.reshape(target.shape)
    elif value.ndim == target.ndim:
        value = value[tuple(slice(size) for size in target.shape)]
    target.copy_(value)


def _placeholder(arguments: tuple[Value, ...]) -> tuple[tuple[torch.Tensor | None], tuple[torch.dtype]]:
    shape = arguments[0]
    code = arguments[1] if len(arguments) > 1 else None
    dtype = torch_type(code) if isinstance(code, int) else torch.float32
    if not isinstance(shape, list) or any(size < 0 for size in shape):
        return (None,), (dtype,)
    return (torch.empty(shape, dtype=dtype, device="meta"),), (dtype,)


def _infer(name: str, arguments: tuple[Value, ...], known: Callable[[Ref], torch.Tensor]) -> Any:
    """The results of an operation as far as they are known: values where every operand is a constant, else `meta`.

    A constant operand is first given as it is, since a shape or an axis may be read from it. Raises PTR131 or PTR133.
    """
    implementation = semantics.find(name)
    try:
        return implementation(*_bind(arguments, known))
    except _NOT_INFERABLE:
        pass
    try:
        return implementation(*_bind(arguments, lambda ref: known(ref).to("meta")))
    except _NOT_INFERABLE as error:
        message = f"cannot infer the shape of `{name}`: {str(error).splitlines()[0]}"
        raise OverlayError("PTR133", message, hint="Report it with the operator.") from error


def evaluate(
    recorded: RecordedGraph, target: Ref, values: dict[Ref, torch.Tensor], precision: Precision = AS_WRITTEN
) -> torch.Tensor:
    """The value of a tensor, from the placeholders' values; what it needs is added to `values`.

    Raises PTR134 for a placeholder that is not fed.
    """
    pending = [target]
    while pending:
        ref = pending[-1]
        if ref in values:
            pending.pop()
            continue
        node = recorded.nodes[ref.node]
        if node.selector.startswith(PLACEHOLDER):
            raise OverlayError("PTR134", "a placeholder of the graph is not fed")
        missing = [each for each in _find_refs(node.arguments) if each not in values]
        if missing:
            pending += missing
            continue
        made = precision.compute(node.selector, _bind(node.arguments, values.__getitem__))
        values.update({Ref(ref.node, i): each for i, each in enumerate(made)})
        pending.pop()
    return values[target]


def _find_refs(arguments: Any) -> list[Ref]:
    if isinstance(arguments, Ref):
        return [arguments]
    if isinstance(arguments, (tuple, list)):
        return [ref for each in arguments for ref in _find_refs(each)]
    return []


def _bind(arguments: tuple[Value, ...], tensor: Callable[[Ref], torch.Tensor]) -> list[Any]:
    """The arguments with tensors in the place of references."""

    def bind(value: Any) -> Any:
        if isinstance(value, Ref):
            return tensor(value)
        if isinstance(value, list):
            return [bind(each) for each in value]
        if isinstance(value, Handle):
            raise OverlayError("PTR131", "an operation of the graph takes an object without a value")
        return value

    return [bind(value) for value in arguments]
