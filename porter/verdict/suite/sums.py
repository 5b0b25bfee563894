"""Sums of many addends in 16 bits, forward and backward: as near to float64 as those that are added up in 32.

Upstream's tolerances of 16 bits hide what adding up in 16 bits loses, and so does the CPU's result: some of its own
kernels add up in 16 bits, as that of avg_pool2d's gradient (aten/src/ATen/native/cpu/AvgPoolKernel.cpp).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput
from torch.utils import _pytree as pytree

from porter.verdict.suite import bounds, counters, execution, samples
from porter.verdict.suite.consistency import count_computed_elements, summary, to_cpu
from porter.verdict.suite.gradients import Gradients, make_seeds, mirror_sample, run_forward
from porter.verdict.suite.leaves import compute
from porter.verdict.suite.opinfos import watching

Tensors = Sequence[torch.Tensor | None]
_ONCE = 0.6  # ULP: what rounding once is off by, and float32 before it
_ALIKE = 1e-3  # relative: what the device has of a call in float32 where its result is the same one


class Sums(Gradients):
    """Compares linear operators with sums in 32 bits, whose rounding to 16 bits is all that may be off."""

    def match_sums(self, op: OpInfo, sample: SampleInput, device: str, label: str = "") -> None:
        """Notes where results or gradients are farther from float64 than a few times what sums in float32 are.

        Only what kernels under test compute is judged: a CPU fallback may add up in 16 bits.
        """
        with watching(op, self.opinfos.context) as draws:
            seeds = make_seeds(run_forward(op, sample)[0])
        if draws.drawn:
            return
        wide, exact = (_compute(op, sample, seeds, dtype) for dtype in (torch.float32, torch.float64))
        before = counters.read_kernels()
        with execution.device_context():
            outputs, inputs = run_forward(op, mirror_sample(sample, device))
        self.elements += count_computed_elements(outputs, inputs)
        between = counters.read_kernels()
        with execution.device_context():
            slopes = torch.autograd.grad(outputs, inputs, samples.mirror(seeds, device), allow_unused=True)
        after = counters.read_kernels()
        parts = ((outputs, 0, between - before, "result"), (slopes, 1, after - between, "gradient"))
        for got, part, called, kind in parts:
            if self.opinfos.context.count_ported(called):
                with self.noting():
                    self.same_sums(got, wide[part], exact[part], f"{label}{kind}", sample)

    def match_rounded(
        self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, device: str, label: str = "", is_once: bool = False
    ) -> None:
        """Asserts that floating results of a call in 16 bits are what the same call in float32 is, rounded; or rounded
        `is_once` from what the device has in float32, where the CPU's are.

        Statistics that it returns in 32 bits are rounded too. Not judged is what float32 has no exact digits for, and
        where the device has another result in float32: of what no user sees, such as a total weight of a sum of losses.
        Nor is what a CPU fallback computes.
        """
        with watching(op, self.opinfos.context) as draws:
            every = (dtype, torch.float32, torch.float64)
            nearest, float32, float64 = (_call(op, convert(sample, each)) for each in every)
        if draws.drawn:
            return
        before = counters.read_kernels()
        results = self.mps(op, sample, device)
        if not self.opinfos.context.count_ported(counters.read_kernels() - before):
            return
        with execution.device_context():
            alike = _call(op, mirror_sample(convert(sample, torch.float32), device))
        floating = [to_cpu(each) for each in pytree.tree_leaves(results) if _is_floating(each)]
        every_result = zip(floating, map(to_cpu, alike), nearest, float32, float64, strict=True)
        for i, (got, same, near, wide, exact) in enumerate(every_result):
            if got.shape != same.shape or got.shape != wide.shape:
                continue
            agreed = torch.where(torch.isclose(same, wide, rtol=_ALIKE), got.to(dtype), wide.to(dtype))
            if is_once and (excess := excess_of_one_rounding(got.to(dtype), same, near.to(dtype), exact)):
                self.fail(f"{label}result {i}: {excess}\n{summary(sample)}")
            excess = excess_of_rounding(agreed, wide, exact, dtype, self.opinfos.context.flushes)
            if excess:
                self.fail(f"{label}result {i}: {excess} of what is computed in float32\n{summary(sample)}")

    def same_sums(self, got: Tensors, wide: Tensors, exact: Tensors, label: str, sample: SampleInput) -> None:
        """Asserts that each of some tensors in 16 bits is within the bound that float32's own rounding sets."""
        for i, (mine, float32, float64) in enumerate(zip(got, wide, exact, strict=True)):
            if mine is None or float32 is None or float64 is None:
                self.assertTrue(mine is float32 is float64, f"{label} {i}: is there on one of two devices alone")
                continue
            rounded = to_cpu(float32).to(mine.dtype)
            told = bounds.excess(to_cpu(mine), rounded, to_cpu(float64), [], self.opinfos.context.flushes)
            if told:
                self.fail(f"{label} {i}: {told} of sums in float32\n{summary(sample)}")


def excess_of_rounding(
    got: torch.Tensor, wide: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype, flushes: bool = False
) -> str:
    """Where a result is off by more than float32's own rounding to 16 bits allows; "" if nowhere.

    Not judged is what float32, `wide`, has no exact digits for, as float64, `exact`, tells.
    """
    rounded = wide.to(dtype)
    judged = bounds.ulp_with_denormals(rounded, exact) <= 1
    return bounds.excess(torch.where(judged, got.to(dtype), rounded), rounded, exact, [], flushes)


def excess_of_one_rounding(got: torch.Tensor, wide: torch.Tensor, nearest: torch.Tensor, exact: torch.Tensor) -> str:
    """Where a result in 16 bits is not the device's own one in float32, `wide`, rounded once; "" if nowhere.

    Not judged is what equals the CPU's, `nearest`, and where that is not float64's, `exact`, rounded once, or `wide` is
    not near it.
    """
    is_judged = (bounds.ulp_with_denormals(nearest, exact) <= _ONCE) & (got != nearest)
    is_judged &= bounds.ulp_with_denormals(wide.to(got.dtype), exact) <= 1
    off = torch.where(is_judged, bounds.ulp_with_denormals(got, wide.double()), 0.0)
    if not bool((off > _ONCE).any()):
        return ""
    at = int(off.argmax())
    error = f"off by {float(off.flatten()[at]):.2f} ULP: {got.flatten()[at].item()} for {wide.flatten()[at].item()}"
    return f"{error} in float32; the CPU rounds once, to {nearest.flatten()[at].item()}"


def _call(op: OpInfo, sample: SampleInput) -> list[torch.Tensor]:
    results = pytree.tree_leaves(compute(op, sample))
    return [each for each in results if _is_floating(each)]


def _is_floating(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.is_floating_point()


def _compute(
    op: OpInfo, sample: SampleInput, seeds: Sequence[torch.Tensor], dtype: torch.dtype
) -> tuple[Tensors, Tensors]:
    """The results of a sample and its gradients on the CPU, of the same elements in another type."""
    outputs, inputs = run_forward(op, convert(sample, dtype))
    return outputs, torch.autograd.grad(outputs, inputs, [each.to(dtype) for each in seeds], allow_unused=True)


def convert(sample: SampleInput, dtype: torch.dtype) -> SampleInput:
    """The sample with its floating elements, and the type of a result that it asks for, in another type."""
    converted: SampleInput = sample.transform(partial(_convert, dtype))
    return converted


def _convert(dtype: torch.dtype, value: Any) -> Any:
    if isinstance(value, torch.dtype):
        return dtype if value.is_floating_point else value
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.detach().to(dtype).requires_grad_(value.requires_grad)
