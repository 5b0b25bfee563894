"""Runs elementwise operators on edge values: each element is the CPU's, or what double precision rounds to."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite import bounds, compare, samples
from porter.verdict.suite.consistency import Refused, summary, to_cpu
from porter.verdict.suite.gradients import Gradients
from porter.verdict.suite.opinfos import operands


class Elementwise(Gradients):
    """Compares results element by element."""

    def edges(
        self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, device: str, told: str = "", times: float = 0.0
    ) -> None:
        """Fails for elements that are wrong; with `times`, one may be that many times as far off as the CPU's."""
        sample, want = self.answered(op, sample)
        got = pytree.tree_leaves(pytree.tree_map(to_cpu, self.mps(op, sample, device)))
        precise = flushed = [None] * len(got)
        elsewhere = pytree.tree_leaves(self.cpu(op, sample.transform(samples.make_strided)))
        if dtype.is_floating_point or dtype.is_complex:
            precise = pytree.tree_leaves(self.cpu(op, sample.transform(compare.widen)))
            if self.opinfos.context.flushes:
                flushed = pytree.tree_leaves(self.cpu(op, sample.transform(compare.flush_denormals)))
        every = (got, pytree.tree_leaves(want), precise, flushed, elsewhere)
        for at, (mine, theirs, exact, zeroed, strided) in enumerate(zip(*every, strict=True)):
            tolerance: dict[str, Any] = compare.tolerances(self.opinfos.low_precision, op.name, dtype)
            find = partial(
                compare.find_disagreement, mine, theirs, exact, operands(sample), zeroed, strided, times, **tolerance
            )
            why = find()
            if why:
                excused = self.find_as_near(sample, mine, partial(self.compute_leaf, op, at), **tolerance)
                if excused is None or find(excused=excused):
                    self.fail(f"{told}{why}")
                self.remark_on_cpu(op, dtype)
        if not dtype.is_floating_point and not dtype.is_complex:
            self.rounded(op, sample, got, want, told)

    def compute_leaf(self, op: OpInfo, at: int, sample: SampleInput) -> Any:
        """One of the results of the CPU."""
        return pytree.tree_leaves(self.cpu(op, sample))[at]

    def rounded(self, op: OpInfo, sample: SampleInput, got: list[Any], want: Any, told: str) -> None:
        """Real results of integers are as accurate as those of the floats that these become."""
        floats = sample.transform(samples.round_integers)
        if any(mine.dtype == torch.float32 for mine in got):
            with suppress(Refused):
                every = (got, pytree.tree_leaves(want), pytree.tree_leaves(self.cpu(op, floats)))
                for mine, theirs, exact in zip(*every, strict=True):
                    why = bounds.excess(mine, theirs, exact, operands(sample), self.opinfos.context.flushes)
                    if why:
                        self.fail(f"{told}{why}")

    def rounded_once(self, op: OpInfo, sample: SampleInput, device: str) -> None:
        """Fails for a call whose results in 16 bits err more than the CPU's and than one rounding."""
        every = (self.mps(op, sample, device), self.cpu(op, sample), self.cpu(op, sample.transform(compare.widen)))
        for mine, theirs, exact in zip(*map(pytree.tree_leaves, every), strict=True):
            if why := compare.measure_accuracy(to_cpu(mine), theirs, exact, operands(sample)).beyond:
                self.fail(f"as recorded: {why}")

    def same_truncated(
        self,
        op: OpInfo,
        dtype: torch.dtype,
        sample: SampleInput,
        got: Any,
        want: Any,
        label: str = "",
        compute: Callable[[SampleInput], Any] | None = None,
    ) -> None:
        """As `same`; and where the CPU's integers are those of double precision without a fraction, so are these.

        Upstream's tolerance of one hides integers that are rounded. Of what is near a whole number the rounding of
        float32 may leave the one below.
        """
        self.same_or_as_near(op, dtype, sample, got, want, label, compute)
        if dtype.is_floating_point or dtype.is_complex or sample.kwargs.get("dtype") != dtype:
            return
        kwargs = {**sample.kwargs, "dtype": torch.float64}
        exact = self.cpu(op, SampleInput(sample.input, args=sample.args, kwargs=kwargs))
        if compare.loses_more_than_fraction(to_cpu(got), want, exact):
            self.fail(f"{label}{to_cpu(got)} for {exact}, of which the CPU leaves {want}\n{summary(sample)}")

    def accepted(self, op: OpInfo, sample: SampleInput) -> list[SampleInput]:
        """The sample, or if the CPU refuses operands of one length, those with single values in all but the first."""
        try:
            self.answered(op, sample)
        except Refused:
            return samples.take_single_values(sample) or [sample]
        return [sample]

    def answered(self, op: OpInfo, sample: SampleInput) -> tuple[SampleInput, Any]:
        """The sample, without what the CPU refuses in integers, and the CPU's result. Raises Refused."""
        whole = not sample.input.is_floating_point() and not sample.input.is_complex()
        for changed in (sample, samples.replace_zeros(sample)) if whole else ():
            with suppress(Refused):
                return changed, self.cpu(op, changed)
        last = samples.remove_zeros(sample) if whole else sample
        return last, self.cpu(op, last)
