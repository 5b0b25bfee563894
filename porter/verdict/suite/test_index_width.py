"""`TestIndexWidthMPS.test_wide_indices_<op>_mps_<dtype>`: samples whose offsets, as host code is told, need 64 bits.

A port has each kernel for both widths, and no other test has a tensor so large that the wider ones are launched.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.testing._internal.common_device_type import OpDTypes
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite import counters
from porter.verdict.suite.consistency import instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.gradients import Gradients
from porter.verdict.suite.index_width import wide_indices
from porter.verdict.suite.opinfos import opinfos, parametrize_over

OPINFOS = opinfos(get_context())
WIDE = OPINFOS.context.wide
FORWARD = OPINFOS.select("mps_ops_modifier") if WIDE else []
BACKWARD = OPINFOS.select("mps_ops_grad_modifier", OPINFOS.context.through_backward) if WIDE else []


class TestIndexWidth(Gradients):
    """With wide indices results are what they are with narrow ones, by the kernels for them."""

    opinfos = OPINFOS

    @parametrize_over(FORWARD, allowed_dtypes=[torch.float32, torch.int64])
    def test_wide_indices(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op), self.launching_wide_kernels():
            labeled = (("with wide indices", sample) for sample in OPINFOS.pick_samples(op, dtype))
            self.match_all(op, dtype, labeled, device, self.same_or_as_near)

    @parametrize_over(BACKWARD, dtypes=OpDTypes.supported_backward, allowed_dtypes=[torch.float32])
    def test_slopes_of_wide_indices(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op, slopes=True), self.launching_wide_kernels():
            for sample in OPINFOS.pick_samples(op, dtype, requires_grad=True):
                with self.asking():
                    self.match_slopes(op, dtype, sample, device, "with wide indices: ")

    @contextmanager
    def launching_wide_kernels(self) -> Iterator[None]:
        """Fails the test where a kernel runs that another one is registered for that has wide indices."""
        before = counters.read_kernels()
        with wide_indices():
            yield
        launched = counters.read_kernels() - before
        for narrow, wide in WIDE:
            if launched[narrow]:
                self.fail(f"{narrow} runs where host code is told that offsets need 64 bits, not {wide}")


instantiate(TestIndexWidth, globals())
