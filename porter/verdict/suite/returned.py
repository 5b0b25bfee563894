"""Results that are written to given tensors, of which a device may leave some to itself.

`nll_loss_forward` returns a weight that only its own backward reads. A GPU's log_sigmoid_forward does not write its
buffer (aten/src/ATen/native/cuda/Activation.cpp). What the same call returns without `out=` tells which those are; of a
call that gradients or other operators make, what it returns with the arguments that it was recorded with does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.consistency import Consistency, to_cpu
from porter.verdict.suite.context import aten_names, base_name
from porter.verdict.suite.leaves import compute
from porter.verdict.suite.overloads import AS_RECORDED, call_overload, find_returning, name_row


class Returned(Consistency):
    """Compares results of `overloads.call_overload`: written to `out=` tensors, or of calls with varied arguments."""

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
        outs = {each.name for each in writing._schema.arguments if each.is_out}
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
