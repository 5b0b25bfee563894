"""Calls that no case of a promoted script makes: other sizes, ranks, types, devices and layouts.

What the reference refuses, the operator has to refuse in its meta function, before a kernel reads past the end of a
tensor. What the reference takes, by broadcasting too, the operator computes right or refuses in words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from porter.core.errors import PorterError, code_in
from porter.kernels.promotion.other_sizes import OtherCall, vary_alone, vary_together
from porter.kernels.promotion.size_checks import settle
from porter.kernels.script import Stage

_TYPES = (torch.float32, torch.float16, torch.int32, torch.int64)
ERRORS = (PorterError, RuntimeError, ValueError, TypeError, IndexError)


class Operator(Protocol):
    """An operator under test."""

    @property
    def op(self) -> Any: ...

    def kernel_calls(self) -> int: ...

    def judge(self, got: Sequence[Tensor], arguments: Sequence[Any]) -> str | None: ...


Test = Callable[[], "str | None"]


def list_other_calls(
    operator: Operator, stage: Stage, names: Sequence[str], arguments: Sequence[Any]
) -> Iterator[tuple[str, Test]]:
    """The tests of calls like one, by name; each returns what is wrong."""
    for call in (*vary_alone(names, arguments), *vary_together(names, arguments)):
        yield call.what, lambda call=call: _judge_sizes(operator, stage, call)  # type: ignore[misc]
    for call in (*_vary_types(names, arguments), *_vary_devices(names, arguments), *_vary_layouts(names, arguments)):
        yield call.what, lambda call=call: _judge_others(operator, stage, call)  # type: ignore[misc]


def _judge_sizes(operator: Operator, stage: Stage, call: OtherCall) -> str | None:
    settled, expected = settle(stage, call)
    meta = tuple(each.to("meta") if isinstance(each, Tensor) else each for each in settled.arguments)
    try:
        operator.op(*meta)
    except ERRORS:
        return _judge_refusal(operator, settled)
    if expected is None:
        return f"the reference refuses {call.what}, and the operator does not"
    try:
        return operator.judge(_listed(operator.op(*settled.arguments)), settled.arguments)
    except ERRORS as error:
        return f"the meta function takes {call.what}, and the operator fails: {_first_line(error)}"


def _judge_refusal(operator: Operator, call: OtherCall) -> str | None:
    """What is wrong with the refusal of a call on the device."""
    before = operator.kernel_calls()
    try:
        operator.op(*call.arguments)
    except ERRORS as error:
        if operator.kernel_calls() > before or code_in(str(error)):
            return f"the kernel runs with {call.what}: {_first_line(error)}"
        return None if str(error).strip() else f"{call.what} is refused without a word"
    return f"the meta function refuses {call.what}, and the operator does not"


def _judge_others(operator: Operator, stage: Stage, call: OtherCall) -> str | None:
    """What is wrong with a call that may be refused, or computed as the reference does."""
    _, expected = settle(stage, call)
    before = operator.kernel_calls()
    try:
        results = _listed(operator.op(*call.arguments))
        if expected is None:
            return f"the reference refuses {call.what}, and the operator does not"
        return operator.judge(results, call.arguments)
    except ERRORS as error:
        ran = operator.kernel_calls() > before or code_in(str(error))
        return f"the kernel runs with {call.what}: {_first_line(error)}" if ran else None


def _vary_types(names: Sequence[str], arguments: Sequence[Any]) -> Iterator[OtherCall]:
    for at, tensor in _list_tensors(arguments):
        for dtype in (each for each in _TYPES if each != tensor.dtype):
            yield OtherCall(f"{names[at]} of {dtype}", _replace(arguments, at, tensor.to(dtype)))


def _vary_devices(names: Sequence[str], arguments: Sequence[Any]) -> Iterator[OtherCall]:
    """Each tensor on the CPU, if others are on the device."""
    tensors = list(_list_tensors(arguments))
    for at, tensor in tensors if len(tensors) > 1 else ():
        yield OtherCall(f"{names[at]} on the CPU", _replace(arguments, at, tensor.cpu()))


def _vary_layouts(names: Sequence[str], arguments: Sequence[Any]) -> Iterator[OtherCall]:
    """Each tensor alone with gaps between its elements, and with its last two dimensions turned in memory."""
    for at, tensor in _list_tensors(arguments):
        apart = torch.stack((tensor, torch.zeros_like(tensor)), -1)[..., 0]
        yield OtherCall(f"{names[at]} with gaps", _replace(arguments, at, apart))
        if tensor.dim() > 1:
            turned = tensor.transpose(-1, -2).contiguous().transpose(-1, -2)
            yield OtherCall(f"{names[at]} turned in memory", _replace(arguments, at, turned))


def _list_tensors(arguments: Sequence[Any]) -> Iterator[tuple[int, Tensor]]:
    yield from ((at, each) for at, each in enumerate(arguments) if isinstance(each, Tensor))


def _replace(arguments: Sequence[Any], at: int, value: Any) -> tuple[Any, ...]:
    return (*arguments[:at], value, *arguments[at + 1 :])


def _listed(results: Any) -> tuple[Tensor, ...]:
    return (results,) if isinstance(results, Tensor) else tuple(results)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
