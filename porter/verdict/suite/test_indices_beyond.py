"""`TestIndicesBeyondMPS.test_indices_beyond_<op>_mps_<dtype>`: samples with an index that the CPU refuses.

A kernel cannot refuse a call. It guards what it reads and writes, or reports the index; what comes of it is not
compared. Only a run that checks memory sees the difference.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed, keep_refused
from porter.verdict.suite.consistency import Consistency, instantiate, summary
from porter.verdict.suite.context import get_context
from porter.verdict.suite.indices import list_indices, list_sizes, put_at_ends, put_beyond
from porter.verdict.suite.opinfos import opinfos, parametrize_over, take_spread

OPINFOS = opinfos(get_context())
FORWARD = OPINFOS.select_structured("mps_ops_modifier") if OPINFOS.context.checks_memory else []
_CODED = "PTR"


def takes_indices(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether there is an index tensor to vary."""
    return any(list_indices(each) for each in OPINFOS.reaching_samples(op, dtype))


def list_varied(op: OpInfo, samples: list[SampleInput]) -> Iterator[Varied]:
    """Samples with an index beyond the input that the CPU refuses, where it computes those at both ends."""
    found = [(each, place) for each in samples for place in list_indices(each)]
    for each, place in take_spread(found):
        for size in list_sizes(each):
            ends = put_at_ends(each, place, size)
            if len(list(keep_computed(op, ends))) == len(ends):
                yield from keep_refused(op, put_beyond(each, place, size))


class TestIndicesBeyond(Consistency):
    """An index that names nothing reaches no memory beyond a tensor."""

    opinfos = OPINFOS
    elements = answers = 0

    @parametrize_over(FORWARD, applies=takes_indices, allowed_dtypes=[torch.float32])
    def test_indices_beyond(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        for label, sample in list_varied(op, OPINFOS.reaching_samples(op, dtype)):
            with self.noting():
                self.run_beyond(op, sample, device, label)
        self.raise_noted()

    def run_beyond(self, op: OpInfo, sample: SampleInput, device: str, label: str) -> None:
        """Runs a sample on the device, which may refuse it too; what checks memory tells has a code."""
        try:
            self.mps(op, sample, device)
        except Exception as error:
            if _CODED in str(error):
                raise AssertionError(f"index {label}: {error}\n{summary(sample)}") from None


instantiate(TestIndicesBeyond, globals())
