"""Calls of ATen's own overloads: those that an operator's samples end in on the CPU, forward and backward.

A Python function has fewer arguments than the rows that it calls: no `out=` of `avg_pool2d`, no call of a backward.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from porter.verdict.suite.backward import run_backward
from porter.verdict.suite.consistency import Consistency, to_cpu
from porter.verdict.suite.context import aten_names, base_name
from porter.verdict.suite.kept_outcomes import on_cpu
from porter.verdict.suite.leaves import Place, compute

Overload = torch._ops.OpOverload
_OF_RESULTS = ("dtype", "layout", "device", "pin_memory")  # of a factory, which has no say where it gets tensors


WRITTEN_OVER = "written_over"  # the argument of `call_overload`
AS_RECORDED = " as recorded"  # behind the name of a row, in the label of a call whose arguments are as they were


@dataclass(frozen=True)
class Call:
    """A call of an overload with arguments on the CPU, which nothing has written to."""

    overload: Overload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def name(self) -> str:
        """`gather`, `median.dim`: the name of the row."""
        return name_row(self.overload)

    @property
    def base(self) -> str:
        """The name of the operator."""
        return base_name(self.name)

    @property
    def defaults(self) -> dict[str, Any]:
        """The arguments that the call omits and their values, but for those that are None: dispatch drops defaults."""
        omitted = self.overload._schema.arguments[len(self.args) :]
        values = {each.name: each.default_value for each in omitted if each.name not in self.kwargs}
        return {name: value for name, value in values.items() if value is not None}

    def make_sample(self, overload: Overload | None = None, **others: Any) -> SampleInput:
        """A sample for `call_overload` of this overload or another one, with other arguments by name added, and without
        those that the other one does not take.

        Raises ValueError if the call has no positional argument.
        """
        if not self.args:
            raise ValueError(f"{self.name} has no argument that may be the input of a sample")
        first, *rest = self.args
        called = overload or self.overload
        named = {**self.kwargs, **others}
        kwargs = {each.name: named[each.name] for each in called._schema.arguments if each.name in named}
        return SampleInput(first, args=tuple(rest), kwargs={**kwargs, "overload": name_row(called)})


@on_cpu
def call_overload(
    *args: Any,
    overload: str,
    written_over: Mapping[str, tuple[Place, tuple[int, ...]]] = MappingProxyType({}),
    **kwargs: Any,
) -> Any:
    """Calls the overload of a row, as `median.dim_values`. Raises what it does.

    Results named in `written_over`, with their shapes, are written to the memory of an argument, by its position or
    name, or to its first elements: a copy of a call for another device shares no memory among its tensors.
    """
    base, _, name = overload.partition(".")
    outs = {}
    for out, (place, shape) in written_over.items():
        argument = kwargs[place] if isinstance(place, str) else args[place]
        outs[out] = argument if argument.shape == shape else argument.view(-1)[: math.prod(shape)].view(shape)
    return getattr(getattr(torch.ops.aten, base), name or "default")(*args, **kwargs, **outs)


def name_row(overload: Overload) -> str:
    """The name of a row, as native_functions.yaml has it."""
    name: str = overload._schema.overload_name
    return overload._schema.name.removeprefix("aten::") + (f".{name}" if name else "")


def writes_results(writing: Overload, returning: Overload) -> bool:
    """Whether one overload writes what another returns to tensors, and reads the same arguments."""
    read = {each.name: str(each.type) for each in writing._schema.arguments if not each.is_out}
    taken = {each.name: str(each.type) for each in returning._schema.arguments}
    of_results = {name for name in _OF_RESULTS if name not in read}
    outs = {str(each.type) for each in writing._schema.arguments if each.is_out}
    return outs == {"Tensor"} and read == {name: kind for name, kind in taken.items() if name not in of_results}


def find_returning(row: str) -> tuple[Overload, Overload] | None:
    """The overload of a row that writes results, and the one that returns them; None if there is no such pair."""
    base, _, name = row.partition(".")
    packet = getattr(torch.ops.aten, base)
    writing = getattr(packet, name or "default")
    every = (getattr(packet, other) for other in packet.overloads())
    return next(((writing, returning) for returning in every if writes_results(writing, returning)), None)


def record_calls(op: OpInfo, samples: Iterable[SampleInput], bases: Collection[str]) -> Iterator[Call]:
    """Yields the calls of operators, by their ATen base names, that write to no argument; backward ones as well.

    Samples that require gradients are differentiated. What the CPU refuses ends in no call. Where a Python function
    calls another operator on the CPU, as `torch.norm` does linalg_vector_norm, the one of its name is called instead.
    """
    named = sorted(aten_names(op).intersection(bases))
    packets = [packet for name in named if (packet := getattr(torch.ops.aten, name, None)) is not None]
    for sample in samples:
        with _Recording(bases) as recording, suppress(Exception):
            results = compute(op, sample)
            run_backward([each for each in pytree.tree_leaves(results) if _requires_gradient(each)])
        for packet in packets if not recording.calls else ():
            with recording, suppress(Exception):
                compute(packet, sample)
        yield from recording.calls


class _Recording(TorchDispatchMode):
    """Keeps the calls that are made, with the arguments as they were."""

    def __init__(self, bases: Collection[str]) -> None:
        super().__init__()
        self._bases = bases
        self.calls: list[Call] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        if base_name(func._schema.name) in self._bases and not func._schema.is_mutable:
            kept = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach(), (args, named))
            self.calls.append(Call(func, *kept))
        return func(*args, **named)


def _requires_gradient(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


class Returned(Consistency):
    """Compares results of `overloads.call_overload`: written to `out=` tensors, or of calls with varied arguments.

    `nll_loss_forward` returns a weight that only its own backward reads. A GPU's log_sigmoid_forward does not write its
    buffer (aten/src/ATen/native/cuda/Activation.cpp). What the same call returns without `out=` tells which those are;
    of a call that gradients or other operators make, what it returns with the arguments that it was recorded with does.
    """

    hidden: Mapping[str, set[int]] = MappingProxyType({})  # by row, of the calls of one test

    def same_where_returned(
        self,
        op: OpInfo,
        dtype: torch.dtype,
        sample: SampleInput,
        got: Any,
        want: Any,
        label: str = "",
        compute: Callable[[SampleInput], Any] | None = None,
    ) -> None:
        """As `same_or_as_near`, but for those of several results that differ as well where they are returned.

        A result that a user sees is compared where it is returned, by the tests of the operator itself. One result has
        to match, whatever is returned.
        """
        try:
            self.same_or_as_near(op, dtype, sample, got, want, label, compute)
        except AssertionError:
            unlike: set[int] = set()
            if isinstance(got, tuple) and not compute:
                unlike = self._list_unlike(op, dtype, sample, got) or self._list_hidden(
                    op, dtype, sample, got, want, label
                )
            if not unlike or len(unlike) == len(got):
                raise
            for at, (mine, theirs) in enumerate(zip(got, want, strict=True)):
                if at not in unlike:
                    pick = _pick_result(at)
                    self.same_or_as_near(op, dtype, sample, mine, theirs, f"{label}result {at}: ", pick)

    def _list_hidden(
        self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, got: Sequence[Any], want: Sequence[Any], label: str
    ) -> set[int]:
        """The places of floating results in which a call that the operator's user does not make itself differs as it
        was recorded: where that matters, what is made of them differs too.
        """
        name = sample.kwargs["overload"]
        if label.startswith(f"{name}{AS_RECORDED}") and base_name(name) not in aten_names(op):
            differing = set()
            for at, (mine, theirs) in enumerate(zip(got, want, strict=True)):
                try:
                    self.same(op, dtype, sample, to_cpu(mine), theirs, compute=_pick_result(at))
                except AssertionError:
                    differing.add(at)
            self.hidden = {**self.hidden, name: {at for at in differing if want[at].is_floating_point()}}
        return self.hidden.get(name, set())

    def _list_unlike(
        self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, got: tuple[torch.Tensor, ...]
    ) -> set[int]:
        """The places of results in which both devices differ where the call returns them."""
        returning = find_returning(sample.kwargs["overload"])
        if returning is None:
            return set()
        writing, overload = returning
        outs = {WRITTEN_OVER, *(each.name for each in writing._schema.arguments if each.is_out)}
        kwargs = {name: value for name, value in sample.kwargs.items() if name not in outs}
        returned = SampleInput(sample.input, args=sample.args, kwargs={**kwargs, "overload": name_row(overload)})
        want = self.cpu(call_overload, returned)
        pairs = zip(self.mps(call_overload, returned, got[0].device.type), want, strict=True)
        unlike = set()
        for at, (mine, theirs) in enumerate(pairs):
            try:
                self.same(op, dtype, returned, to_cpu(mine), theirs, compute=_pick_result(at))
            except AssertionError:
                unlike.add(at)
        return unlike


def _pick_result(at: int) -> Callable[[SampleInput], Any]:
    return lambda sample: compute(call_overload, sample)[at]
