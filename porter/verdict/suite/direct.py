"""Calls of elementwise operators that gradients alone make: no OpInfo gives them values, flags or numbers of its own.

A gradient test reaches `aten::elu_backward` with the numbers of elu's samples, never with `is_result`, and with no
value at a limit. Here the calls that a backward pass of the CPU makes are samples of an OpInfo of the operator.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.common_dtype import _dispatch_dtypes
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils._python_dispatch import TorchDispatchMode

from porter.languages.identifiers import find_words
from porter.verdict.derivatives import read_derivatives
from porter.verdict.suite.arguments import Varied
from porter.verdict.suite.backward import run_backward
from porter.verdict.suite.context import Context, base_name
from porter.verdict.suite.leaves import Place, change_tensors, compute, list_passed, list_tensors, replace_argument
from porter.verdict.suite.made_opinfos import name_opinfos
from porter.verdict.suite.omitted import list_strings
from porter.verdict.suite.samples import list_other_scalars

_OPINFOS = 4  # that are differentiated for calls of an operator
_SAMPLES = 16  # of each
_CALLS = 4  # of those that differ in what is no tensor
_SIZE = 8  # elements: of one vector on the CPU, so that each is computed by the same code
_FLOATING = (torch.float32, torch.float16, torch.bfloat16)
_COMPLEX = (torch.complex64, torch.complex32)
_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def list_direct_opinfos(context: Context) -> list[OpInfo]:
    """OpInfos of the elementwise operators under test that only backward passes call, in each type that the CPU takes.

    Their samples are calls of the functional overload with all arguments by position, or by name where the schema wants
    that, and with dense tensors of one shape.
    """
    if context.through or not context.through_backward:
        return []
    return [op for base in context.bases if (op := _make_opinfo(base, context.through_backward)) is not None]


def vary_call(op: OpInfo, sample: SampleInput) -> Iterator[Varied]:
    """Yields a call with each flag and string at each value, and each number at others beside every flag and string.

    The CPU may refuse some of them.
    """
    yield "as recorded", sample
    settings = [("", sample)]
    overload: Any = op.op
    names = [argument.name for argument in overload._schema.arguments][1:]

    def name(place: Place) -> str:
        return names[place] if isinstance(place, int) else place

    for place, value in _list_settings(sample):
        others = [not value] if isinstance(value, bool) else [s for s in list_strings(op) if s != value]
        settings += [(f"with {name(place)}={other!r} ", replace_argument(sample, place, other)) for other in others]
    for label, each in settings:
        if label:
            yield label.strip(), each
        for place, value in _list_settings(each, numbers=True):
            for other in list_other_scalars(value, _list_numbers(each)):
                yield f"{label}with {name(place)}={other}", replace_argument(each, place, other)


def list_limits(sample: SampleInput) -> tuple[float, ...]:
    """The numbers among a call's arguments, where an elementwise operator may branch."""
    return tuple(dict.fromkeys(_list_numbers(sample)))


@lru_cache
def _make_opinfo(base: str, through: Sequence[str]) -> OpInfo | None:
    calls = list(_record_calls(base, through))
    calls = [(overload, sample) for overload, sample in calls if _is_elementwise(overload, sample)]
    if not calls or _takes_intermediate(base):
        return None
    overload = calls[0][0]
    found = _choose(sample for other, sample in calls if other is overload)
    kinds = [
        dtype for dtype in (*_FLOATING, *_COMPLEX, *_WHOLE) if any(_takes(overload, _convert(s, dtype)) for s in found)
    ]

    def sample_inputs(
        op: OpInfo, device: str, dtype: torch.dtype, requires_grad: bool, **kwargs: Any
    ) -> Iterator[SampleInput]:
        for sample in found:
            moved = _convert(sample, dtype)
            if _takes(overload, moved):
                yield change_tensors(moved, lambda tensor: tensor.to(device))

    return OpInfo(
        base,
        op=overload,
        aten_name=base,
        dtypes=_dispatch_dtypes(kinds),
        supports_out=False,
        supports_autograd=False,
        sample_inputs_func=sample_inputs,
    )


class _Calls(TorchDispatchMode):
    """Keeps the calls of one operator's functional overloads, with every argument of the schema."""

    def __init__(self, base: str) -> None:
        super().__init__()
        self.base = base
        self.calls: list[tuple[torch._ops.OpOverload, SampleInput]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if base_name(func._schema.name) == self.base and not func._schema.is_mutable:
            sample = _read_sample(func, args, kwargs or {})
            if sample is not None:
                self.calls.append((func, sample))
        return func(*args, **(kwargs or {}))


def _read_sample(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> SampleInput | None:
    """A call as a sample, its tensors detached; None if it does not begin with a tensor."""
    arguments = func._schema.arguments
    passed = {a.name: value for a, value in zip(arguments, args, strict=False)} | kwargs
    whole = {a.name: passed.get(a.name, a.default_value) for a in arguments}
    real = {a.name for a in arguments if str(a.type) in ("number", "float")}
    whole = {name: _prepare(value, name in real) for name, value in whole.items()}
    first, *rest = [whole[a.name] for a in arguments if not a.kwarg_only]
    if not isinstance(first, torch.Tensor):
        return None
    named = {a.name: whole[a.name] for a in arguments if a.kwarg_only}
    return SampleInput(first, args=tuple(rest), kwargs=named)


def _prepare(value: Any, is_real: bool) -> Any:
    """An argument of its own: a tensor detached, a whole number as a real one where the schema takes that."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return float(value) if is_real and isinstance(value, int) else value


def _record_calls(base: str, through: Sequence[str]) -> Iterator[tuple[torch._ops.OpOverload, SampleInput]]:
    """What backward passes of the first samples of OpInfos (full names) call."""
    chosen = [op for op, full_name, _ in name_opinfos() if full_name in through][:_OPINFOS]
    for op in chosen:
        with _Calls(base) as mode, suppress(Exception):  # samples that this machine cannot make
            for sample in islice(op.sample_inputs("cpu", torch.float32, requires_grad=True), _SAMPLES):
                with suppress(Exception):  # of any kind: what the operator refuses
                    results = _leaves(op, sample)
                    with torch.no_grad():  # as without a graph of gradients: other formulas make one
                        run_backward(results)
        yield from mode.calls


def _choose(calls: Iterator[SampleInput]) -> list[SampleInput]:
    """A few calls that differ in arguments that are no tensors."""
    kinds: dict[str, SampleInput] = {}
    for sample in calls:
        plain = change_tensors(sample, lambda _: None)
        kinds.setdefault(repr((plain.args, plain.kwargs)), sample)
    return list(kinds.values())[:_CALLS]


def _is_elementwise(overload: Callable[..., Any], sample: SampleInput) -> bool:
    """Whether each element of the results is computed from the elements of one place: turned over, they turn over."""
    generator = torch.Generator().manual_seed(0)
    columns = change_tensors(sample, lambda t: torch.rand(_SIZE, generator=generator).to(t.dtype))
    with suppress(Exception):  # of any kind: the operator is somebody else's, and need not take such a shape
        straight = _leaves(overload, columns)
        turned = _leaves(overload, change_tensors(columns, lambda tensor: tensor.flip(0)))
        alike = all(each.shape == (_SIZE,) for each in (*straight, *turned))
        return bool(straight) and alike and all(map(_is_flipped, straight, turned))
    return False


def _is_flipped(one: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose(one, other.flip(0), equal_nan=True)


def _leaves(call: Callable[..., Any], sample: SampleInput) -> list[torch.Tensor]:
    return list_tensors(compute(call, sample))


def _takes_intermediate(base: str) -> bool:
    """Whether a derivative gives the operator a result of its forward that has no gradient, such as a buffer.

    What is in it is the device's own affair: log_sigmoid_forward of a GPU leaves its buffer empty.
    """
    for name, formulas in read_derivatives():
        listed = re.search(r"^\s*output_differentiability: \[(.*)\]", formulas, re.M)
        call = re.search(rf"\b{re.escape(base)}\(([^()]*)\)", formulas)
        packet = getattr(torch.ops.aten, name, None)
        if listed and call and packet:
            is_differentiable = [word.strip() == "True" for word in listed[1].split(",")]
            returns = getattr(packet, packet.overloads()[0])._schema.returns
            kept = zip(returns, is_differentiable, strict=False)
            hidden = {word for i, (r, d) in enumerate(kept) if not d for word in (r.name, f"result{i}")}
            if hidden & set(find_words(call[1])):
                return True
    return False


def _convert(sample: SampleInput, dtype: torch.dtype) -> SampleInput:
    """The call with tensors of numbers in another type."""
    return change_tensors(sample, lambda tensor: tensor if tensor.dtype is torch.bool else tensor.to(dtype))


def _takes(call: Callable[..., Any], sample: SampleInput) -> bool:
    with suppress(Exception):
        compute(call, sample)
        return True
    return False


def _list_settings(sample: SampleInput, numbers: bool = False) -> Iterator[tuple[Place, Any]]:
    """The flags and strings of a call by position or name; with `numbers`, its other numbers and Nones instead."""
    for place, value in list_passed(sample):
        if isinstance(value, (bool, str)) != numbers and not isinstance(value, torch.Tensor):
            yield place, value


def _list_numbers(sample: SampleInput) -> Iterator[float]:
    yield from (float(value) for _, value in _list_settings(sample, numbers=True) if isinstance(value, (int, float)))
