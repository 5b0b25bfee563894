"""`TestIndexWidthMPS.test_wide_indices_<op>_mps_<dtype>`: small samples by kernels with 64-bit indices.

A port has each kernel for both widths, and no other test has a tensor so large that the wider ones are launched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.testing._internal.common_device_type import OpDTypes
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite import counters
from porter.verdict.suite.consistency import Refused, count_computed_elements, instantiate, to_cpu
from porter.verdict.suite.context import get_context
from porter.verdict.suite.gradients import Gradients, mirror_sample, run_forward
from porter.verdict.suite.index_width import wide_indices
from porter.verdict.suite.leaves import list_tensors
from porter.verdict.suite.opinfos import opinfos, parametrize_over
from porter.verdict.suite.samples import copy_sample

OPINFOS = opinfos(get_context())
WIDE = OPINFOS.context.wide
FORWARD = OPINFOS.select("mps_ops_modifier") if WIDE else []
BACKWARD = OPINFOS.select("mps_ops_grad_modifier", OPINFOS.context.through_backward) if WIDE else []


class TestIndexWidth(Gradients):
    """With wide indices results and gradients are what the device makes of narrow ones, by the kernels for them."""

    opinfos = OPINFOS

    @parametrize_over(FORWARD, allowed_dtypes=[torch.float32, torch.int64])
    def test_wide_indices(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            for sample in OPINFOS.pick_samples(op, dtype):
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
