"""OpInfos of operators that torch has none for: samples made from the schema, of shapes that the CPU's kernel takes.

Source: torch/testing/_internal/opinfo/core.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, combinations, product
from math import prod
from typing import Any

import torch
from torch.testing._internal.common_dtype import _dispatch_dtypes
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.core.dtypes import TESTED, Kind
from porter.verdict.derivatives import read_derivatives
from porter.verdict.suite.children import ask_child
from porter.verdict.suite.compare import HALVES
from porter.verdict.suite.context import aten_names
from porter.verdict.suite.cuts import Margins
from porter.verdict.suite.leaves import list_tensors
from porter.verdict.suite.made_factories import make_factory_opinfo

_DEVICE_ENDINGS = ("_for_mps", "_mps")
# Of a layer: how its arguments begin, and those that say what it computes.
_TENSORS = ["Tensor", "List[Tensor]", "List[Tensor]"]
_NAMES = {"has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first"}
_GATES = 4
_SIZES = ((5, 3, 4, 6), (3, 2, 7, 5), (4, 1, 3, 9), (1, 4, 2, 3), (2, 5, 70, 33))  # steps, rows, features, states
_LAYERS = (1, 2, 3)


@dataclass(frozen=True)
class RecurrentCall:
    """Calls a device's overload on it, and its twin on the CPU; results are those of the twin.

    In 16 bits, the CPU would round what each step begins with: it computes all steps in float32.
    OpInfos of recurrent layers that only one device has, and that torch has none for: the CPU's twin is the reference.
    A twin takes the same arguments, and returns the first of the results; the others are for the device's own backward.
    Source: aten/src/ATen/native/RNN.cpp (`lstm`, which calls the device's operator in a build for it).
    """

    overload: _Overload
    twin: _Overload

    def __call__(self, *sequence: Any) -> Any:
        if sequence[0].device.type == "cpu":
            _require_fitting(*sequence)
            dtype = sequence[0].dtype
            wide = pytree.tree_map(partial(_convert, dtype=torch.float32), sequence) if dtype in HALVES else sequence
            return pytree.tree_map(partial(_convert, dtype=dtype), self.twin(*wide))
        return tuple(self.overload(*sequence)[: len(self.twin._schema.returns)])


def _require_fitting(
    sequence: torch.Tensor, starts: Sequence[torch.Tensor], params: Sequence[torch.Tensor], has_biases: bool,
    layers: int, dropout: float, train: bool, bidirectional: bool, batch_first: bool,
) -> None:  # fmt: skip
    """Raises RuntimeError for sizes that do not go with each other, as `torch.nn.RNNBase.check_forward_args` does.

    The CPU's operator looks at few of them, and reaches beyond tensors.
    """
    shapes = [tuple(each.shape) for each in (*starts, *params)]
    if sequence.ndim != 3 or not starts or starts[0].ndim != 3 or not sequence.shape[1 if batch_first else 0]:
        raise RuntimeError("Expected an input of 3 dimensions with steps, and states with as many")
    rows, states, directions = sequence.shape[0 if batch_first else 1], starts[0].shape[2], 2 if bidirectional else 1
    expected: list[tuple[int, ...]] = [(layers * directions, rows, states)] * 2
    for layer in range(layers):
        width = directions * states if layer else sequence.shape[2]
        parameters = [
            (_GATES * states, width),
            (_GATES * states, states),
            *([(_GATES * states,)] * 2 if has_biases else []),
        ]
        expected += parameters * directions
    if shapes != expected or {each.dtype for each in (*starts, *params)} != {sequence.dtype}:
        raise RuntimeError(f"Expected states and parameters of one dtype and {expected}, but got {shapes}")


def find_twin(overload: _Overload) -> _Overload | None:
    """What an operator that only one device has is called for others, with arguments of the same types."""
    name = overload._schema.name.removeprefix("aten::")
    ending = next((each for each in _DEVICE_ENDINGS if name.endswith(each)), "")
    plain = name.removesuffix(ending) if ending else ""
    types = _list_types(overload)
    named = (each for other in dict.fromkeys((plain, plain.lstrip("_"))) if other for each in _list_overloads(other))
    return next((each for each in named if _list_types(each) == types), None)


def _list_types(overload: _Overload) -> list[str]:
    return [str(each.type) for each in overload._schema.arguments]


@lru_cache
def make_recurrent_opinfo(base: str) -> OpInfo | None:
    """An OpInfo of a recurrent layer's operator, if a twin of it computes samples on the CPU; else None."""
    overload = next((each for each in _list_overloads(base) if not each._schema.is_mutable), None)
    if overload is None or not {each.name for each in overload._schema.arguments} >= _NAMES:
        return None
    twin = find_twin(overload) if _list_types(overload)[: len(_TENSORS)] == _TENSORS else None
    if twin is None:
        return None
    call = RecurrentCall(overload, twin)
    supported = [dtype for dtype in _TYPES if _takes_layers(call, next(_make_layer_samples(dtype)))]
    return OpInfo(
        base,
        op=call,
        aten_name=base,
        dtypes=_dispatch_dtypes(supported),
        # In 16 bits, the functions of one and of the other direction round alike only where both are ported
        backward_dtypes=_dispatch_dtypes([torch.float32]),
        supports_out=False,
        supports_autograd=any(base == name for name, _ in read_derivatives()),
        sample_inputs_func=_sample_layers,
    )


def _list_overloads(base: str) -> list[_Overload]:
    packet = getattr(torch.ops.aten, base, None)
    return [getattr(packet, name) for name in packet.overloads()] if packet else []


def _takes_layers(call: RecurrentCall, sample: SampleInput) -> bool:
    try:
        with torch.no_grad():
            call(sample.input, *sample.args)
    except RuntimeError:  # the CPU has no kernel of the type
        return False
    return True


def is_recurrent(op: OpInfo) -> bool:
    """Whether an OpInfo is one of these: its samples have all values of flags, which tensors go with."""
    return isinstance(op.op, RecurrentCall)


def _sample_layers(
    op: OpInfo, device: str, dtype: torch.dtype, requires_grad: bool, **kwargs: Any
) -> Iterator[SampleInput]:
    """Samples of real numbers: no device has such layers of others."""
    if dtype.is_floating_point:
        yield from _make_layer_samples(dtype, device, requires_grad)


def _make_layer_samples(dtype: torch.dtype, device: str = "cpu", requires_grad: bool = False) -> Iterator[SampleInput]:
    """Layers with all flags, of several sizes; dropout only where none is left out: between no layers, or untrained."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        drawn = torch.rand(shape, generator=generator) - 0.5
        return drawn.to(device, dtype).requires_grad_(requires_grad)

    flags = product(_LAYERS, (True, False), (False, True), (False, True))
    for at, (layers, has_biases, bidirectional, batch_first) in enumerate(flags):
        steps, rows, features, states = _SIZES[at % len(_SIZES)]
        directions = 2 if bidirectional else 1
        train = at % 2 == 0
        dropout = 0.5 if (layers == 1 or not train) and at % 3 == 0 else 0.0
        sequence = draw(rows, steps, features) if batch_first else draw(steps, rows, features)
        starts = [draw(layers * directions, rows, states) for _ in range(2)]
        params = []
        for layer in range(layers):
            width = directions * states if layer else features
            for _ in range(directions):
                params += [draw(_GATES * states, width), draw(_GATES * states, states)]
                params += [draw(_GATES * states) for _ in range(2 if has_biases else 0)]
        yield SampleInput(
            sequence, args=(starts, params, has_biases, layers, dropout, train, bidirectional, batch_first)
        )


_SHAPES = ((5, 3, 4), (4, 6), (7,), (3, 2, 5, 4))  # of the first tensor: all sizes differ
_MOST = 4  # whole numbers that an argument is tried with: 0 and the last dimension among them
_TYPES = tuple(getattr(torch, each.torch) for each in TESTED if each.kind is Kind.FLOATING)
_TENSOR, _INTEGER, _FLAG = "Tensor", ("int", "SymInt"), "bool"
_Dims = tuple[int, ...]
_Overload = torch._ops.OpOverload


def list_opinfos(bases: Collection[str], full_names: Collection[str], backward: Collection[str]) -> list[OpInfo]:
    """The OpInfos of operators by their ATen base names, and those of these full names; all, without bases.

    Where torch has none, not even one whose `backward` (full names) calls them, those made from their schemas. Those of
    recurrent layers have full names, too.
    """
    every = name_opinfos()
    named = [op for op, full, names in every if not bases or not names.isdisjoint(bases) or full in full_names]
    named += [op for name in full_names if (op := make_recurrent_opinfo(name))]
    if named or backward:
        return named
    makers = (make_opinfo, make_factory_opinfo, make_recurrent_opinfo)
    return [op for base in bases if (op := next(filter(None, (make(base) for make in makers)), None))]


@lru_cache(maxsize=1)
def name_opinfos() -> tuple[tuple[OpInfo, str, frozenset[str]], ...]:
    """Every OpInfo with its full name and the names of its operator: to read them of each takes long."""
    return tuple((op, op.full_name, aten_names(op)) for op in op_db)


@lru_cache
def make_opinfo(base: str) -> OpInfo | None:
    """An OpInfo of the first overload of an operator, if its arguments are tensors, whole numbers and flags, the first
    is a tensor, and the CPU computes some samples of it; else None.
    """
    packet = getattr(torch.ops.aten, base, None)
    call = _read_call(getattr(packet, packet.overloads()[0])) if packet and packet.overloads() else None
    if call is None:
        return None
    supported = [dtype for dtype in _TYPES if any(True for _ in _make_samples(call, dtype))]
    if not supported:
        return None
    return OpInfo(
        base,
        op=call,
        aten_name=base,
        dtypes=_dispatch_dtypes(supported),
        backward_dtypes=_dispatch_dtypes([dtype for dtype in supported if _keeps_type(call, dtype)]),
        supports_out=False,
        supports_autograd=any(base == name for name, _ in read_derivatives()),
        sample_inputs_func=_sample_inputs,
    )


def is_made(op: OpInfo) -> bool:
    """Whether an OpInfo is made from a schema."""
    return isinstance(op.op, FittedCall) or is_recurrent(op)


@dataclass(frozen=True)
class FittedCall:
    """Calls an overload with tensors that are all given in the shape of the first.

    Each has that shape in a call only in the dimensions in which the CPU needs it to, and one element in the others.
    What the CPU refuses in 16 bits it computes in float32. All flags are set: results that none asks for, a device may
    leave out where the CPU does not.
    """

    overload: _Overload

    def __call__(self, *given: Any) -> Any:
        """Raises ValueError if the shapes differ, the CPU takes none of them with these numbers, or a flag is unset."""
        if any(each is False for each in given):
            raise ValueError("a flag that asks for less")
        shapes = {each.shape for each in given if isinstance(each, torch.Tensor)}
        numbers = tuple(each for each in given if not isinstance(each, (torch.Tensor, bool)))
        dims = find_dims(self.overload, len(given[0].shape), numbers) if len(shapes) == 1 else None
        if dims is None:
            raise ValueError("no operands of these shapes")
        fitted = list(_fit(given, dims))
        if given[0].device.type != "cpu" or given[0].dtype not in HALVES:
            return self.overload(*fitted)
        try:
            return self.overload(*fitted)
        except RuntimeError:
            made = self.overload(*(_convert(each, torch.float32) for each in fitted))
            return pytree.tree_map(lambda each: _convert(each, given[0].dtype), made)


def _convert(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, torch.Tensor) else value


def _read_call(overload: _Overload) -> FittedCall | None:
    kinds = [str(each.type) for each in overload._schema.arguments]
    is_made = kinds and kinds[0] == _TENSOR and all(each in (_TENSOR, *_INTEGER, _FLAG) for each in kinds)
    return FittedCall(overload) if is_made and not overload._schema.is_mutable else None


def _fit(given: Sequence[Any], dims: Sequence[_Dims]) -> Iterator[Any]:
    """The operands of a call: each tensor with one element in the dimensions that it does not have."""
    left = iter(dims)
    for each in given:
        yield _narrow(each, next(left)) if isinstance(each, torch.Tensor) else each


def _narrow(tensor: torch.Tensor, dims: _Dims) -> torch.Tensor:
    if len(dims) == tensor.ndim:
        return tensor
    part = tensor[tuple(slice(None) if dim in dims else slice(1) for dim in range(tensor.ndim))]
    return part.clone(memory_format=torch.contiguous_format)


@lru_cache(maxsize=256)
def find_dims(overload: _Overload, rank: int, numbers: tuple[int, ...]) -> tuple[_Dims, ...] | None:
    """The dimensions that each tensor of a call has, for the CPU to read all of its elements and none beyond.

    None if it refuses tensors that are all of one shape, or there are no such dimensions.
    """
    shape = next((each for each in _SHAPES if len(each) == rank), tuple(range(2, 2 + rank)))
    given = _list_given(overload, shape, numbers)
    found = ask_child(partial(_find_dims, overload, given)) if _takes(overload, given) else None
    return tuple(map(tuple, found)) if found else None


def _find_dims(overload: _Overload, given: Sequence[Any]) -> list[_Dims] | None:
    """As `find_dims`. The most elements come first: with too few, a kernel may write beyond what it allocates.

    Memory that it does not write to has NaN, in deterministic mode.
    """
    torch.use_deterministic_algorithms(True, warn_only=True)
    shape = given[0].shape
    whole = tuple(range(len(shape)))
    found = [whole for each in given if isinstance(each, torch.Tensor)]
    if not _is_taken(overload, given, found, 1):
        return None
    largest = sorted(_list_subsets(whole), key=lambda dims: -prod(shape[dim] for dim in dims))
    for at in range(1, len(found)):
        tried = ([*found[:at], dims, *found[at + 1 :]] for dims in largest)
        fitting = next((each for each in tried if _is_taken(overload, given, each, at + 1)), None)
        if fitting is None:
            return None
        found = fitting
    return found


def _list_subsets(dims: _Dims) -> Iterator[_Dims]:
    return chain.from_iterable(combinations(dims, count) for count in range(len(dims) + 1))


def _list_given(
    overload: _Overload, shape: Sequence[int], numbers: Sequence[int], make: Callable[..., torch.Tensor] = torch.ones
) -> list[Any]:
    """The arguments of a call: tensors all of one shape, and flags that ask for all results."""
    left = iter(numbers)
    kinds = [str(each.type) for each in overload._schema.arguments]
    return [make(shape) if each == _TENSOR else True if each == _FLAG else next(left) for each in kinds]


def _is_taken(overload: _Overload, given: Sequence[Any], dims: Sequence[_Dims], count: int) -> bool:
    """Whether the CPU takes a call, stays within its operands, and reads the last element of the first `count`."""
    margins = Margins()
    plain = list(_fit(given, dims))
    placed = [margins.place(each) if isinstance(each, torch.Tensor) else each for each in plain]
    tensors = [each for each in placed if isinstance(each, torch.Tensor)]
    with torch.no_grad(), suppress(RuntimeError, IndexError):  # what the CPU's checks raise
        known = _find_nan(overload(*plain))
        is_inside = _find_nan(overload(*placed)) == known and margins.are_intact()
        return is_inside and all(_is_read(overload, placed, each, known) for each in tensors[:count])
    return False


def _is_read(overload: _Overload, placed: Sequence[Any], tensor: torch.Tensor, known: list[Any]) -> bool:
    """Whether the last element of an operand, as that of a larger one, makes a difference."""
    last = tensor.view(-1)[-1]
    before = last.clone()
    last.fill_(float("nan"))
    is_read = _find_nan(overload(*placed)) != known
    last.copy_(before)
    return is_read


def _find_nan(results: Any) -> list[Any]:
    """Where results are NaN."""
    return [each.isnan().tolist() for each in list_tensors(results)]


def _sample_inputs(
    op: OpInfo, device: str, dtype: torch.dtype, requires_grad: bool, **kwargs: Any
) -> Iterator[SampleInput]:
    call: Any = op.op
    yield from _make_samples(call, dtype, device, requires_grad)


def _make_samples(
    call: FittedCall, dtype: torch.dtype, device: str = "cpu", requires_grad: bool = False
) -> Iterator[SampleInput]:
    """Samples of several ranks with each whole number that the CPU takes.

    The elements after the first tensor's are ones that may be divided by. With flags, the first tensor has equal
    elements too.
    """
    kinds = [str(each.type) for each in call.overload._schema.arguments]
    makers: tuple[Callable[..., torch.Tensor], ...] = (torch.randn,)
    makers += (_make_pairs, torch.zeros) if _FLAG in kinds else ()
    count = sum(each in _INTEGER for each in kinds)
    for shape in _SHAPES:
        for numbers, make in product(product(range(_MOST), repeat=count), makers):
            given = _list_given(call.overload, shape, numbers, lambda shape: torch.rand(shape) + 0.5)
            given[0] = make(shape)
            given = [each.to(device, dtype) if isinstance(each, torch.Tensor) else each for each in given]
            if not _takes(call, given):
                continue
            first, *others = (
                each.requires_grad_(requires_grad) if isinstance(each, torch.Tensor) else each for each in given
            )
            yield SampleInput(first, args=tuple(others))


def _make_pairs(shape: Sequence[int]) -> torch.Tensor:
    """Elements of which two that follow each other, in any dimension, are often equal."""
    made = torch.randn(*shape)
    for dim, size in enumerate(shape):
        made = made.index_select(dim, torch.arange(size) // 2)
    return made


def _keeps_type(call: FittedCall, dtype: torch.dtype) -> bool:
    """Whether all results have the type of the operands, in which a device has them: others' gradients may not fit."""
    sample = next(_make_samples(call, dtype))
    return all(each.dtype == dtype for each in list_tensors(call(sample.input, *sample.args)))


def _takes(call: Callable[..., Any], given: Sequence[Any]) -> bool:
    """Whether the CPU takes a call with these operands, wherever they are."""
    try:
        with torch.no_grad():
            call(*(each.cpu() if isinstance(each, torch.Tensor) else each for each in given))
    except (RuntimeError, ValueError, IndexError, TypeError):
        return False
    return True
