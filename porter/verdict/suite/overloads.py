"""Calls of ATen's own overloads: those that an operator's samples end in on the CPU, forward and backward.

A Python function has fewer arguments than the rows that it calls: no `out=` of `avg_pool2d`, no call of a backward.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from porter.verdict.suite.backward import run_backward
from porter.verdict.suite.context import aten_names, base_name
from porter.verdict.suite.kept_outcomes import on_cpu
from porter.verdict.suite.leaves import compute

Overload = torch._ops.OpOverload
_OF_RESULTS = ("dtype", "layout", "device", "pin_memory")  # of a factory, which has no say where it gets tensors


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
def call_overload(*args: Any, overload: str, **kwargs: Any) -> Any:
    """Calls the overload of a row, as `median.dim_values`. Raises what it does."""
    base, _, name = overload.partition(".")
    return getattr(getattr(torch.ops.aten, base), name or "default")(*args, **kwargs)


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
