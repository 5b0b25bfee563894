"""`TestDeterministicMPS.test_deterministic_mode_<op>_mps_float32`: what depends on the order of threads says so.

In deterministic mode a call must raise an error if the CPU's raises one, or if a kernel under test adds to floats
atomically for it: see torch.use_deterministic_algorithms.
"""

# mypy: disable-error-code="misc, attr-defined"

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch.testing._internal.common_device_type import OpDTypes
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite import counters, results
from porter.verdict.suite.backward import run_backward
from porter.verdict.suite.consistency import instantiate, summary
from porter.verdict.suite.context import get_context
from porter.verdict.suite.gradients import Gradients, run_forward
from porter.verdict.suite.leaves import compute
from porter.verdict.suite.opinfos import opinfos, parametrize_over
from porter.verdict.suite.samples import copy_sample
from porter.verdict.suite.variations.result_types import list_real_others

OPINFOS = opinfos(get_context())
ADDS = bool(OPINFOS.context.adding)
FORWARD = OPINFOS.select_structured("mps_ops_modifier")
SLOPES = OPINFOS.select_structured("mps_ops_grad_modifier", OPINFOS.context.through_backward) if ADDS else []
_ALERT = "does not have a deterministic implementation"
_FLOATING = ("_float", "_half", "_bfloat")


@contextmanager
def deterministic() -> Iterator[None]:
    """Turns deterministic mode on, in which ATen fills no memory besides: what is not written stays what it is."""
    fills = torch.utils.deterministic.fill_uninitialized_memory
    torch.utils.deterministic.fill_uninitialized_memory = False
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)
        torch.utils.deterministic.fill_uninitialized_memory = fills


def alerts(call: Callable[[], object]) -> bool:
    """Whether a call in deterministic mode raises the error of one that has no deterministic implementation."""
    with deterministic():
        try:
            call()
        except RuntimeError as error:
            return _ALERT in str(error)
    return False


def may_alert(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether a kernel under test adds to floats atomically, or the CPU's own code has an alert for a sample."""

    def call(sample: SampleInput) -> Callable[[], object]:
        copied = copy_sample(sample)
        return lambda: compute(op, copied)

    if dtype is torch.int64 and torch.float32 in op.supported_dtypes("cpu"):  # not of integers alone, as bincount is
        return False
    return ADDS or any(alerts(call(sample)) for sample in OPINFOS.pick_samples(op, dtype))


class TestDeterministic(Gradients):
    """Turns deterministic mode on for a few samples, forward and backward."""

    opinfos = OPINFOS

    def require_alert(self, sample: SampleInput, reference: Callable[[], object], call: Callable[[], object]) -> None:
        """Notes a call of the device that raises no alert where there has to be one."""
        self.elements = self.answers = 0
        before = counters.read_kernels()
        if alerts(call):
            return
        adding = self.find_adding(counters.read_kernels() - before)
        if adding:
            self.fail(f"in deterministic mode kernel {adding} adds atomically, and nothing alerts: {summary(sample)}")
        if alerts(reference):
            self.fail(f"the CPU alerts in deterministic mode, and mps does not: {summary(sample)}")

    def find_adding(self, launched: Counter[str]) -> str:
        """The name of a kernel that adds to floats atomically among those launched; "" if none does."""
        context = OPINFOS.context
        return next(
            (n for n in launched if context.owner(n) in context.adding and any(kind in n for kind in _FLOATING)), ""
        )

    @contextmanager
    def recording_kernels(self) -> Iterator[None]:
        """Records which kernels ran: a list that expects the operator's results to fail does not expect this of a port.

        All samples are asked before the test fails for the first that is wrong.
        """
        before = counters.read_kernels()
        try:
            yield
        finally:
            record = results.get_record(self._testMethodName)
            record.kernels = counters.read_kernels() - before
            record.calls = OPINFOS.context.count_ported(record.kernels)
        self.raise_noted()

    @parametrize_over(FORWARD, applies=may_alert, allowed_dtypes=[torch.float32, torch.int64])
    def test_deterministic_mode(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        real = [sample for _, sample in list_real_others(OPINFOS, op, dtype)]
        with self.recording_kernels():
            for sample in (*OPINFOS.pick_samples(op, dtype), *real):
                with self.asking():
                    self.require_alert(
                        sample, lambda s=sample: self.cpu(op, copy_sample(s)), lambda s=sample: self.mps(op, s, device)
                    )

    @parametrize_over(SLOPES, dtypes=OpDTypes.supported_backward, allowed_dtypes=[torch.float32])
    def test_deterministic_slopes(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.recording_kernels():
            for sample in OPINFOS.pick_samples(op, dtype, requires_grad=True):
                with self.asking():
                    self.require_alert(
                        sample,
                        lambda s=sample: run_backward(run_forward(op, copy_sample(s))[0]),
                        lambda s=sample: self.reach(op, s, device),
                    )


instantiate(TestDeterministic, globals())
