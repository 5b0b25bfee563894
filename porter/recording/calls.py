"""Captures the calls of an operator that its OpInfo samples make, varies their arguments, and counts what they cost.

A branch or a baked-in number shows only when an argument changes: every scalar is tried with several values, every flag
both ways, every optional argument left out, every tensor with gaps in its layout.

The cost is counted in steps: a clock that calls move, and neither a loaded machine nor a slow one. Limits in seconds of
the processor cut recordings at other calls each time, and the programs of an operator were others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from porter.core import dtypes
from porter.core.dtypes import DType, Kind, name_torch
from porter.core.errors import explained
from porter.mpsgraph.graph import Value
from porter.verdict.backends import host
from porter.verdict.suite.leaves import list_tensors
from porter.verdict.suite.samples import on_device

if TYPE_CHECKING:
    from aten_overlay.apple.mpsgraph.recorder import GraphRun

# What each takes, where a step is about 10 microseconds of an idle core.
_CALL = 50  # of an operator on the CPU, with the tensors that are made for it
_SAMPLE = 200  # of an OpInfo, forward and backward on the device, besides its graphs
_RUN = 60  # of a graph on the stand-in, besides its nodes
_NODE = 30
_READING = 60  # of a node into a loop nest
_ELEMENTS = 2_000  # that a node computes in one step
SAMPLES = 24  # of an OpInfo
MAX_CALLS = 8  # for one overload and dtype
_REAL = (0.0, 1.0, 0.37, 0.59, 1.7, -0.8)
_WHOLE = (0, 1, 2, 3, 5)
_COMPLEX = (0.37 + 0.59j, 1.7 - 0.8j, -0.8 + 0.37j)
_OPTIONAL = ("Optional[number]", "Optional[float]")
_DEVICE_KEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.MPS)
_SKIPPED = ("Device", "Layout", "MemoryFormat", "Generator", "Dimname")


@dataclass
class _Counter:
    """The steps of this process."""

    steps: int = 0


_counter = _Counter()


def spent() -> int:
    """The steps that recordings of this process have taken."""
    return _counter.steps


def count_call(elements: int) -> None:
    """Counts a call on the CPU with tensors of so many elements."""
    _counter.steps += _CALL + elements // _ELEMENTS


def count_reading(runs: Iterable[GraphRun]) -> None:
    """Counts the reading of graphs into loop nests."""
    _counter.steps += _READING * sum(len(each.graph.nodes) for each in runs)


@contextmanager
def counting_sample() -> Iterator[None]:
    """Counts a sample of an OpInfo that a block computes on the device, and the graphs that it runs there."""
    _counter.steps += _SAMPLE
    with counting_graphs():
        yield


@contextmanager
def counting_graphs(runs: list[GraphRun] | None = None) -> Iterator[None]:
    """Counts the graphs that a block runs on the device, if that is started, and adds them to `runs`."""

    def count(run: GraphRun) -> None:
        elements = sum(each.numel() for each in run.values.values())
        _counter.steps += _RUN + len(run.graph.nodes) * (_NODE + elements // _ELEMENTS)
        if runs is not None:
            runs.append(run)

    recorder = host.find_recorder()
    if recorder is None:
        yield
        return
    recorder.on_run = count
    try:
        yield
    finally:
        recorder.on_run = None


@dataclass(frozen=True)
class OpCall:
    """One call of an overload: its arguments by name, including defaults."""

    overload: torch._ops.OpOverload
    arguments: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name in native_functions.yaml: `lerp.Scalar`."""
        return str(self.overload._schema.name).removeprefix("aten::") + (
            f".{self.overload._overloadname}" if self.overload._overloadname != "default" else ""
        )

    def run(self) -> Any:
        """Makes the call and returns its result."""
        schema = self.overload._schema.arguments
        positional = [self.arguments[a.name] for a in schema if not a.kwarg_only and a.name in self.arguments]
        return self.overload(
            *positional, **{a.name: self.arguments[a.name] for a in schema if a.kwarg_only and a.name in self.arguments}
        )

    def with_arguments(self, changed: Mapping[str, Any]) -> OpCall:
        """The call with some of its arguments changed."""
        return OpCall(self.overload, {**self.arguments, **changed})

    def out_names(self) -> frozenset[str]:
        """The names of its out= arguments."""
        return frozenset(a.name for a in self.overload._schema.arguments if a.is_out)

    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors it reads, by name, without out= arguments. Elements of a list have an index: `tensors[0]`."""
        found = {}
        out_names = self.out_names()
        for name, value in self.arguments.items():
            if name in out_names:
                continue
            if isinstance(value, torch.Tensor):
                found[name] = value
            elif isinstance(value, (list, tuple)):
                found |= {f"{name}[{i}]": each for i, each in enumerate(value) if isinstance(each, torch.Tensor)}
        return found


def find_dtype(dtype: torch.dtype) -> DType | None:
    """Metal's element type for one of torch; None if it has none."""
    return dtypes.BY_TORCH.get(name_torch(dtype))


def read_dtype(tensor: torch.Tensor) -> DType:
    """The element type of a tensor. Raises PTR345 for one that Metal has not."""
    dtype = find_dtype(tensor.dtype)
    if dtype is None:
        name = name_torch(tensor.dtype)
        raise explained("PTR345", f"elements of type {name} have no loop form")
    return dtype


class _Capture(TorchDispatchMode):
    """Records every call of an operator; of one that only a device has, also what kernels of others call."""

    def __init__(self, base: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[OpCall] = []
        self._bases = frozenset({base, f"{base}_"})
        self._is_within = _is_of_device(base)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "aten" and func._schema.name.removeprefix("aten::") in self._bases:
            self.found.append(_bind_arguments(func, args, kwargs))
            return func(*args, **kwargs)
        is_here = any(isinstance(each, torch.Tensor) and each.device.type == "mps" for each in args)
        if self._is_within and is_here and not func.is_view:  # the kernel of detach calls it again
            with self:
                return func.redispatch(_DEVICE_KEYS, *args, **kwargs)
        return func(*args, **kwargs)


@lru_cache
def _is_of_device(base: str) -> bool:
    """Whether the CPU has no kernel of an operator, not even one that is composed of others."""
    packet = getattr(torch.ops.aten, base, None)
    overloads = [getattr(packet, name) for name in packet.overloads()] if packet else []
    names = [each.name() for each in overloads if not each._schema.is_mutable]  # not those that copy to an output
    has_kernel = torch._C._dispatch_has_computed_kernel_for_dispatch_key
    return bool(names) and not any(has_kernel(name, "CPU") for name in names)


def capture_calls(op: Any, base: str, dtype: DType) -> Iterator[OpCall]:
    """Yields the calls of a base name that an OpInfo's samples make on the device, forward and backward."""
    torch_dtype = getattr(torch, dtype.torch)
    if torch_dtype not in op.supported_dtypes("cpu"):
        return
    differentiable = op.supports_autograd and dtype.kind is Kind.FLOATING
    # ATen may choose an operator only where no gradient is asked for
    for slopes in dict.fromkeys((differentiable, False)):
        try:
            samples = list(islice(op.sample_inputs("cpu", torch_dtype, requires_grad=slopes), SAMPLES))
        except (RuntimeError, TypeError, ValueError):  # the OpInfo has no samples of this dtype
            return
        captured = [call for sample in samples for call in capture_sample_calls(op, base, sample, slopes)]
        yield from captured
        if captured:
            return


def capture_sample_calls(op: Any, base: str, sample: Any, differentiable: bool) -> Iterator[OpCall]:
    """Yields the calls of a base name that one sample makes on the device; none if the device does not support it."""
    try:
        moved = on_device(sample)
    except TypeError:  # of float64, for one
        return
    yield from filter(_is_on_device, capture_calls_in_place(op, base, moved, differentiable))


def capture_calls_in_place(op: Any, base: str, sample: Any, differentiable: bool) -> list[OpCall]:
    """The calls of a base name that a sample makes where it is, forward and backward."""
    with counting_sample(), _Capture(base) as capture:
        _run_op(op, sample, differentiable)
    return list(capture.found)


def _run_op(op: Any, sample: Any, differentiable: bool) -> None:
    try:
        result = op(sample.input, *sample.args, **sample.kwargs)
        if differentiable:
            leaves = [v for v in list_tensors(result) if v.requires_grad]
            if leaves:
                torch.autograd.backward(leaves, [torch.rand_like(leaf) for leaf in leaves])
    except Exception:  # calls made before the error still count; recording reports the error
        return


def pick_diverse_calls(found: Sequence[OpCall]) -> list[OpCall]:
    """A few diverse calls: the first of every combination of flags, strings, optional arguments, ranks, and zero or
    nonzero values, then the second of each, and so on.
    """
    ranks: list[tuple[int, int]] = []
    counts: dict[str, int] = {}
    for i, call in enumerate(found):
        flags = repr([_flag(value) for value in call.arguments.values()])
        counts[flags] = counts.get(flags, 0) + 1
        ranks.append((counts[flags], i))
    return [found[i] for _, i in sorted(ranks)[:MAX_CALLS]]


def _flag(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.ndim, bool(value.detach().cpu().any())
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return type(value).__name__, value == 0
    return value if isinstance(value, (bool, str, type(None))) else type(value).__name__


def vary_arguments(call: OpCall, dtype: DType) -> Iterator[OpCall]:
    """Yields the call itself, the call with one argument changed at a time, and with its optional numbers set."""
    yield call
    for argument in call.overload._schema.arguments:
        value = call.arguments.get(argument.name)
        kind = str(argument.type)
        if "Optional" in kind and value is not None and not isinstance(value, torch.Tensor):
            yield call.with_arguments({argument.name: None})
        if isinstance(value, bool) and ("number" not in kind or dtype.kind is Kind.BOOL):
            yield call.with_arguments({argument.name: not value})
        elif isinstance(value, (int, float, complex)) or (value is None and kind in _OPTIONAL):
            yield from (call.with_arguments({argument.name: probe}) for probe in _probes(kind, dtype))
        elif isinstance(value, torch.Tensor) and value.ndim:
            storage = torch.zeros((*value.shape, 2), dtype=value.dtype, device=value.device)
            storage[..., 0].copy_(value)
            yield call.with_arguments({argument.name: storage[..., 0]})
    yield from _vary_numbers_together(call, dtype)


def _vary_numbers_together(call: OpCall, dtype: DType) -> Iterator[OpCall]:
    """Calls with all optional numbers set, and with all but one, if there are several."""
    optional = [a.name for a in call.overload._schema.arguments if str(a.type) in _OPTIONAL]
    if len(optional) < 2:
        return
    _, _, *probes = _probes("number", dtype)
    for i in range(3):
        given = dict(zip(optional, (*probes[i:], *probes[:i]), strict=False))
        yield call.with_arguments(given)
        yield from (call.with_arguments({**given, name: None}) for name in optional)


def _probes(kind: str, dtype: DType) -> tuple[complex, ...]:
    """The numbers to try for an argument of this schema type."""
    if "number" in kind and dtype.kind is Kind.COMPLEX:
        return _REAL + _COMPLEX
    return _WHOLE if "int" in kind or ("number" in kind and dtype.kind is not Kind.FLOATING) else _REAL


def read_arguments(call: OpCall) -> dict[str, Value]:
    """The non-tensor arguments and the properties of the tensors, by their C++ expressions: `self.dim()`."""
    found: dict[str, Value] = {}
    tensors = call.tensors()
    is_complex = any(tensor.is_complex() for tensor in tensors.values())
    for argument in call.overload._schema.arguments:
        value = call.arguments.get(argument.name)
        if isinstance(value, torch.Tensor) or any(word in str(argument.type) for word in _SKIPPED):
            if "Optional" in str(argument.type):
                found[argument.name] = True
            continue
        if isinstance(value, (list, tuple)):
            found[f"{argument.name}.size()"] = len(value)
        found[argument.name] = _to_scalar(value) if "number" in str(argument.type) else _to_value(value)
        if "number" in str(argument.type) and isinstance(value, (int, float, complex)) and is_complex:
            found |= argument_parts(argument.name, value)
        if "number" in str(argument.type) and value is not None:
            found[f"{argument.name}.isFloatingPoint()"] = isinstance(value, float)
            found[f"{argument.name}.isBoolean()"] = isinstance(value, bool)
    for name, tensor in tensors.items():
        layout = {f"{name}.dim()": tensor.ndim, f"{name}.is_contiguous()": tensor.is_contiguous()}
        found |= {**layout, **_describe_sizes(name, tensor)}
    for (one, first), (other, second) in pairwise(tensors.items()):
        found[f"{one}.sizes() == {other}.sizes()"] = first.shape == second.shape
        found[f"{one}.scalar_type() == {other}.scalar_type()"] = first.dtype == second.dtype
    return found


def argument_parts(name: str, value: complex) -> dict[str, Value]:
    """The parts of an argument, by the expressions host code reads them with."""
    return {f"{name}.real()": float(value.real), f"{name}.imag()": float(value.imag)}


def _to_scalar(value: Any) -> Value:
    """A Scalar as host code compares it: an integer becomes a float."""
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else _to_value(value)


def read_choices(call: OpCall) -> dict[str, Value]:
    """What may choose a case: `read_arguments` without sizes, which every call has its own of."""
    tensors = call.tensors()
    sizes = {fact for name, tensor in tensors.items() for fact in _describe_sizes(name, tensor)}
    sizes |= {f"{one}.sizes() == {other}.sizes()" for one, other in pairwise(tensors)}
    return {fact: value for fact, value in read_arguments(call).items() if fact not in sizes}


def _describe_sizes(name: str, tensor: torch.Tensor) -> dict[str, Value]:
    sizes = {f"{name}.size({i})": size for i, size in enumerate(tensor.shape)}
    sizes |= {f"{name}.size({i - tensor.ndim})": size for i, size in enumerate(tensor.shape)}
    return {f"{name}.numel()": tensor.numel(), f"{name}.sizes()": tuple(tensor.shape), **sizes}


def _bind_arguments(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> OpCall:
    arguments = dict(kwargs)
    for i, argument in enumerate(func._schema.arguments):
        if i < len(args):
            arguments[argument.name] = args[i]
        elif argument.name not in kwargs and argument.has_default_value():
            arguments[argument.name] = argument.default_value
    return OpCall(func, pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, arguments))


def _is_on_device(call: OpCall) -> bool:
    """Whether its tensors are on the device and the first has elements; another may be an unused buffer."""
    tensors = list(call.tensors().values())
    has_elements = all(t.numel() or t.shape == (0,) for t in tensors) and all(t.numel() for t in tensors[:1])
    return has_elements and all(t.device.type == "mps" for t in tensors)


def _to_value(value: Any) -> Value:
    if isinstance(value, (list, tuple)):
        return tuple(map(_to_value, value))
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)
