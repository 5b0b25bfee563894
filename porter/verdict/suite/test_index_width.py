"""`TestIndexWidthMPS.test_wide_indices_<op>_mps_<dtype>`: small samples by kernels with 64-bit indices.

A port has each kernel for both widths, and no other test has a tensor so large that the wider ones are launched.
`test_wide_operands` has some tensors of a call alone be so large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from copy import copy

import torch
from torch.testing._internal.common_device_type import OpDTypes
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite import counters
from porter.verdict.suite.consistency import Refused, count_computed_elements, instantiate, summary, to_cpu
from porter.verdict.suite.context import get_context
from porter.verdict.suite.gradients import Gradients, mirror_sample, run_forward
from porter.verdict.suite.index_width import wide_indices
from porter.verdict.suite.leaves import list_tensors
from porter.verdict.suite.opinfos import opinfos, parametrize_over
from porter.verdict.suite.overloads import call_overload
from porter.verdict.suite.samples import copy_sample
from porter.verdict.suite.variations.made_of_numbers import pick_samples
from porter.verdict.suite.wide_operands import list_wide_operands

OPINFOS = opinfos(get_context())
WIDE = OPINFOS.context.wide
FORWARD = OPINFOS.select("mps_ops_modifier") if WIDE else []
BACKWARD = OPINFOS.select("mps_ops_grad_modifier", OPINFOS.context.through_backward) if WIDE else []
CALLING = list({op.formatted_name: op for op in (*BACKWARD, *FORWARD)}.values())


def _has_wide_operands(op: OpInfo, dtype: torch.dtype) -> bool:
    return any(True for _ in list_wide_operands(OPINFOS, op, dtype))


class TestIndexWidth(Gradients):
    """With wide indices results and gradients are what the device makes of narrow ones, by the kernels for them."""

    opinfos = OPINFOS

    @parametrize_over(FORWARD, allowed_dtypes=[torch.float32, torch.int64])
    def test_wide_indices(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            for sample in pick_samples(OPINFOS, op, dtype):
                self.widen(op, dtype, sample, lambda given: list_tensors(self.mps(op, given, device)))

    @parametrize_over(BACKWARD, dtypes=OpDTypes.supported_backward, allowed_dtypes=[torch.float32])
    def test_slopes_of_wide_indices(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        def differentiate(sample: SampleInput) -> list[torch.Tensor]:
            outputs, inputs = run_forward(op, mirror_sample(sample, device))
            self.elements += count_computed_elements(outputs, inputs)
            seeds = [torch.ones_like(output) for output in outputs]
            return list_tensors(torch.autograd.grad(outputs, inputs, seeds, allow_unused=True))

        with self.count_calls(dtype, op, slopes=True):
            for sample in OPINFOS.pick_samples(op, dtype, requires_grad=True):
                self.widen(op, dtype, sample, differentiate)

    @parametrize_over(CALLING, applies=_has_wide_operands, allowed_dtypes=[torch.float32, torch.int64])
    def test_wide_operands(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        called = copy(op)
        called.op = call_overload
        with self.count_calls(dtype, op, direct=True):
            for limit, (label, sample) in list_wide_operands(OPINFOS, op, dtype):
                before = counters.read_kernels()
                with suppress(Refused, RuntimeError):  # a matter of other tests
                    self.cpu(called, copy_sample(sample))
                    with wide_indices(limit):
                        self.mps(called, sample, device)
                launched = counters.read_kernels() - before
                narrow = [name for name, _ in WIDE if launched[name]]
                with self.noting():
                    if narrow and not any(launched[name] for _, name in WIDE):
                        self.fail(f"{label}: {', '.join(narrow)} alone runs\n{summary(sample)}")

    def widen(
        self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, run: Callable[[SampleInput], list[torch.Tensor]]
    ) -> None:
        """Judges a sample that the device computes as it is: what is wrong with it then is a matter of other tests."""
        try:
            self.cpu(op, copy_sample(sample))
            narrow = run(copy_sample(sample))
        except (Refused, RuntimeError):
            return
        with self.asking(), self.launching_wide_kernels():
            for wide, expected in zip(run(copy_sample(sample)), narrow, strict=True):
                self.same(op, dtype, sample, to_cpu(wide), to_cpu(expected), "with wide indices: ")

    @contextmanager
    def launching_wide_kernels(self) -> Iterator[None]:
        """Fails the test where a kernel runs that another one is registered for that has wide indices."""
        before = counters.read_kernels()
        with wide_indices():
            yield
        launched = counters.read_kernels() - before
        for narrow, wide in WIDE:
            if launched[narrow]:
                self.fail(f"{narrow} runs instead of {wide}, though no offset is said to fit in 32 bits")


instantiate(TestIndexWidth, globals())
