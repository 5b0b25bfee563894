"""Rules that sizes of a call may follow: what each says, whether it holds, and the check of it in host code."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import torch
from torch import Tensor

from porter.core.dtypes import BY_TORCH, name_torch
from porter.core.errors import PorterError
from porter.kernels.call import intercepting
from porter.kernels.kernel import Kernel
from porter.kernels.launch import Mode, running
from porter.kernels.promotion.subject import Subject
from porter.kernels.script import Right, Stage, find_difference, moved, on_cpu, widened
from porter.loops import host_values as host
from porter.loops.host_algebra import apply
from porter.plan.new_operator import operator
from porter.plan.promotion.promotion import Check, Requirement

_FACTORS = (2, 3, 4, 8, 16, 32, 64, 128)


def _holds(rule: Requirement, call: host.Arguments) -> bool:
    """Whether sizes of a call follow a rule: not if they lack a dimension of it."""
    return bool(host.evaluate(rule.condition, call))


def list_rules(parameters: Sequence[operator.Argument], ranks: Mapping[str, int | None]) -> Iterator[Requirement]:
    """The rules that the sizes of tensors may follow, those first that say most in the fewest words.

    `ranks` has the number of dimensions of each tensor, or None for one that may have several: its dimensions are then
    counted from the last. A tensor is compared with those before it.
    """
    tensors = [each.name for each in parameters if each.is_tensor]
    numbers = [host.Scalar(parameter.name, type="int") for parameter in parameters if parameter.type == "int"]
    for at, name in enumerate(tensors):
        yield from (_same_shape(name, other) for other in tensors[:at])
    for name in tensors:
        if (rank := ranks[name]) is not None:
            wanted = f"{name} has to have {rank} dimension{'s' * (rank != 1)}, not "
            yield _rule(apply("==", host.Rank(name), host.Constant(rank)), wanted, host.Rank(name))
    for at, name in enumerate(tensors):
        for other in tensors[:at] if ranks[name] is None else ():
            yield from (_has_elements(name, _size(other, dim)) for dim in _list_dims(ranks[other]))
        others = [_size(other, dim) for other in tensors[:at] for dim in _list_dims(ranks[other])]
        others += [_count(other) for other in tensors[:at]]
        compared = [*others, *numbers]
        for dim in _list_dims(ranks[name]):
            yield from (_compare(name, dim, "==", value) for value in compared)
            for sign in _COMPARED:
                yield from (_compare(name, dim, sign, value, k) for k in _FACTORS for value in compared)
                multiples = (apply("*", value, host.Constant(k)) for k in _FACTORS for value in compared)
                yield from (_compare(name, dim, sign, value) for value in multiples)
            yield from (_compare(name, dim, sign, value) for sign in (">=", "<=") for value in compared)
        yield from (_has_elements(name, _count(other)) for other in tensors[:at])
    for name in tensors:
        for dim in _list_dims(ranks[name]):
            yield _compare(name, dim, ">=", host.Constant(1))
            yield from (_is_multiple(name, dim, factor) for factor in _FACTORS)


def list_constants(name: str, shapes: Sequence[tuple[int, ...]]) -> Iterator[Requirement]:
    """The rules that a size of a tensor is a number, where it is the same in all of its shapes."""
    if len({len(each) for each in shapes}) == 1:
        for dim, sizes in enumerate(zip(*shapes, strict=True)):
            if len(set(sizes)) == 1:
                yield _compare(name, dim, "==", host.Constant(sizes[0]))


def _list_dims(rank: int | None) -> Sequence[int]:
    return range(rank) if rank is not None else (-1, -2, -3, -4)


def _size(name: str, dim: int) -> host.HostValue:
    return host.Size(name, host.Constant(dim))


def _count(name: str) -> host.HostValue:
    return host.SizeProduct(name)


_COMPARED = {"==": "", ">=": "at least ", "<=": "at most "}


def _compare(name: str, dim: int, sign: str, wanted: host.HostValue, factor: int = 1) -> Requirement:
    size = _size(name, dim)
    times = f"{factor} times " if factor > 1 else ""
    message = (f"{name} has size ", size, f" in dimension {dim}, {times}which has to be {_COMPARED[sign]}", wanted)
    return _rule(apply(sign, apply("*", size, host.Constant(factor)), wanted), *message)


def _same_shape(name: str, other: str) -> Requirement:
    sizes, wanted = host.Sizes(name), host.Sizes(other)
    return _rule(host.SameSizes(sizes, wanted), f"{name} has to have the shape ", wanted, f" of {other}, not ", sizes)


def _has_elements(name: str, wanted: host.HostValue) -> Requirement:
    count = _count(name)
    return _rule(apply("==", count, wanted), f"{name} has to have ", wanted, " elements, not ", count)


def _is_multiple(name: str, dim: int, factor: int) -> Requirement:
    size = _size(name, dim)
    condition = apply("==", apply("%", size, host.Constant(factor)), host.Constant(0))
    return _rule(condition, f"{name} has to have a multiple of {factor} in dimension {dim}, not ", size)


def _rule(condition: host.HostValue, *message: str | host.HostValue | host.HostSizes) -> Requirement:
    return Requirement(condition, message, Check.VALUE)


@dataclass(frozen=True)
class OtherCall:
    """Arguments of a call, and which of them have what other sizes."""

    what: str
    arguments: tuple[Any, ...]

    @property
    def shapes(self) -> tuple[tuple[int, ...] | None, ...]:
        """The shape of each argument; None for a number."""
        return tuple(tuple(each.shape) if isinstance(each, Tensor) else None for each in self.arguments)


def without_values(call: OtherCall) -> OtherCall | None:
    """The call with zeros for its integers, which may be places in a tensor that is shorter now; None without any."""
    zeros = [_zero(each) for each in call.arguments]
    same = all(one is other for one, other in zip(zeros, call.arguments, strict=True))
    return None if same else OtherCall(call.what, tuple(zeros))


def _zero(value: Any) -> Any:
    is_integer = isinstance(value, Tensor) and not value.is_floating_point() and value.dtype != torch.bool
    return torch.zeros_like(value) if is_integer else value


_Slot = tuple[int, int]  # the place of an argument, and a dimension of it


def vary_alone(names: Sequence[str], arguments: Sequence[Any]) -> Iterator[OtherCall]:
    """Each dimension of each tensor one shorter and one longer, of one element and empty; each with other ranks."""
    for at, dim in _list_slots(arguments):
        size = arguments[at].shape[dim]
        for other in dict.fromkeys((size - 1, size + 1, 1, 0)):
            if other >= 0 and other != size:
                what = f"{names[at]} with {other} for {size} in dimension {dim}"
                yield OtherCall(what, _resize(arguments, {(at, dim): other}))
    for at, tensor in enumerate(arguments):
        if isinstance(tensor, Tensor):
            more = torch.stack((tensor, tensor.flatten().roll(1).reshape(tensor.shape)))  # which differ
            yield OtherCall(f"{names[at]} with a dimension more", with_argument(arguments, at, more))
            yield OtherCall(f"{names[at]} with one more of one element", with_argument(arguments, at, tensor[None]))
            if tensor.dim() and tensor.shape[0]:
                yield OtherCall(f"{names[at]} with a dimension less", with_argument(arguments, at, tensor[0].clone()))


def vary_together(names: Sequence[str], arguments: Sequence[Any]) -> Iterator[OtherCall]:
    """Longer together: two dimensions, where one is a multiple of the other or equal, and all dimensions of a size."""
    slots = _list_slots(arguments)
    sizes = {slot: arguments[slot[0]].shape[slot[1]] for slot in slots}
    for one, other in combinations(slots, 2):
        least, most = sorted((one, other), key=lambda slot: sizes[slot])
        if sizes[least] and sizes[most] % sizes[least] == 0:
            longer = {least: sizes[least] + 1, most: sizes[most] + sizes[most] // sizes[least]}
            what = " and ".join(f"{names[at]} longer in dimension {dim}" for at, dim in (one, other))
            yield OtherCall(what, _resize(arguments, longer))
    for size in dict.fromkeys(sizes.values()):
        alike = [slot for slot in slots if sizes[slot] == size]
        for changed in (size + 1, 0):
            if changed != size:
                yield OtherCall(f"{changed} for every {size}", _resize(arguments, dict.fromkeys(alike, changed)))


def _list_slots(arguments: Sequence[Any]) -> list[_Slot]:
    return [(at, dim) for at, each in enumerate(arguments) if isinstance(each, Tensor) for dim in range(each.dim())]


def with_argument(arguments: Sequence[Any], at: int, value: Any) -> tuple[Any, ...]:
    """The arguments with another value in one place."""
    return (*arguments[:at], value, *arguments[at + 1 :])


def _resize(arguments: Sequence[Any], sizes: dict[_Slot, int]) -> tuple[Any, ...]:
    """The arguments with elements left out at the end of dimensions, or with those from the beginning once more."""
    resized = list(arguments)
    for (at, dim), size in sizes.items():
        tensor = resized[at]
        if tensor.shape[dim]:
            index = torch.arange(size, device=tensor.device) % tensor.shape[dim]
            resized[at] = tensor.index_select(dim, index)
        else:
            resized[at] = tensor.new_zeros([*tensor.shape[:dim], size, *tensor.shape[dim + 1 :]])
    return tuple(resized)


_ERRORS = (PorterError, RuntimeError, ValueError, TypeError, IndexError, AssertionError, ArithmeticError)
_CHECKED = Mode(checked=True, poison=True)
Function = Callable[..., Any]


@dataclass(frozen=True)
class SizeChecks:
    """The checks that an operator needs besides its script's, and `left`: calls that none of them refuses."""

    requirements: tuple[Requirement, ...]
    left: tuple[str, ...]


@dataclass
class _Calls:
    """Tensors and whole numbers of calls: of right ones, and of those to refuse, with what these are."""

    right: list[host.Arguments] = field(default_factory=list)
    wrong: list[tuple[host.Arguments, str]] = field(default_factory=list)


def find_size_checks(subject: Subject, parameters: Sequence[operator.Argument]) -> SizeChecks:
    """The checks of sizes that refuse every wrong call that was tried, and no right one."""
    calls = _try_calls(subject, parameters)
    rules = [rule for rule in _list_all_rules(parameters, calls) if all(_holds(rule, call) for call in calls.right)]
    chosen: list[Requirement] = []
    unrefused = []
    for call, what in calls.wrong:
        if all(_holds(rule, call) for rule in chosen):
            refusing = next((rule for rule in rules if not _holds(rule, call)), None)
            if refusing is None:
                unrefused.append(what)
            else:
                chosen.append(refusing)
    return SizeChecks(tuple(dict.fromkeys(rule for rule in rules if rule in chosen)), tuple(unrefused))


def _list_all_rules(parameters: Sequence[operator.Argument], calls: _Calls) -> Iterator[Requirement]:
    tensors = [each.name for each in parameters if each.is_tensor]
    seen = {name: [call.tensors[name].shape for call in calls.right] for name in tensors}
    ranks = {name: {len(shape) for shape in shapes} for name, shapes in seen.items()}
    yield from list_rules(parameters, {name: min(found) if len(found) == 1 else None for name, found in ranks.items()})
    for name, shapes in seen.items():
        yield from list_constants(name, shapes)


def _try_calls(subject: Subject, parameters: Sequence[operator.Argument]) -> _Calls:
    names = [argument.name for argument in parameters]
    calls = _Calls()
    for size in subject.script.sizes:
        given = subject.arguments(subject.case(size))
        calls.right.append(_describe(names, given))
        if size != subject.smallest:
            continue
        for other in (*vary_together(names, given), *vary_alone(names, given)):
            if not _is_taken(subject.function, other.arguments):
                continue
            if _is_right(subject, other):
                calls.right.append(_describe(names, other.arguments))
            else:
                calls.wrong.append((_describe(names, other.arguments), other.what))
    return calls


def _describe(names: Sequence[str], arguments: Sequence[Any]) -> host.Arguments:
    """The tensors, and the whole numbers, by name."""
    pairs = list(zip(names, arguments, strict=True))
    tensors = {
        name: host.TensorValue(tuple(value.shape), BY_TORCH[name_torch(value.dtype)])
        for name, value in pairs
        if isinstance(value, Tensor)
    }
    numbers = {name: value for name, value in pairs if isinstance(value, int) and not isinstance(value, bool)}
    return host.Arguments(tensors, numbers)


def _is_taken(function: Function, arguments: Sequence[Any]) -> bool:
    """Whether the script comes to the launch of its kernel, which is not run."""

    def take(_kernel: Kernel, call: Mapping[str, Any]) -> list[Any]:
        pairs = zip(call["output_shapes"], call["output_dtypes"], strict=True)
        return [torch.empty(tuple(shape), dtype=dtype) for shape, dtype in pairs]

    try:
        with intercepting(take):
            function(*arguments)
    except _ERRORS:
        return False
    return True


def _is_right(subject: Subject, call: OtherCall) -> bool:
    """Whether the reference takes a call, and the kernel computes the same, within its operands."""
    stage = subject.stage
    settled, expected = settle(stage, call)
    is_alone = sum(isinstance(each, Tensor) for each in call.arguments) == 1
    if expected is None or is_alone:  # one tensor alone has the sizes that its grid is made of
        return expected is not None
    values = dict(zip(stage.takes, settled.arguments, strict=True))
    try:
        with running(_CHECKED):
            got = stage.results(subject.function, moved(values, "mps"))
            precise = stage.results(stage.reference, widened(values))
            return find_difference(stage, got, Right(expected, precise), subject.script.tolerance) is None
    except _ERRORS:
        return False


def settle(stage: Stage, call: OtherCall) -> tuple[OtherCall, Mapping[str, Any] | None]:
    """The call, and what the reference computes of it on the CPU; None if it refuses the sizes.

    Where it refuses the integers in a tensor alone, the call has zeros for them.
    """
    expected = _compute(stage, call)
    if expected is None and (zeros := without_values(call)) and (found := _compute(stage, zeros)) is not None:
        return zeros, found
    return call, expected


def _compute(stage: Stage, call: OtherCall) -> Mapping[str, Any] | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return stage.results(stage.reference, on_cpu(dict(zip(stage.takes, call.arguments, strict=True))))
    except _ERRORS:
        return None
