"""`TestIndicesMPS.test_indices_<op>_mps_<dtype>` and `test_slopes_by_indices`: samples with an index tensor varied."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.testing._internal.common_device_type import OpDTypes
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed, keep_survived
from porter.verdict.suite.consistency import instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.gradients import Gradients, differentiate
from porter.verdict.suite.indices import fill_with_numbers, list_indices, put_outside, vary_indices
from porter.verdict.suite.opinfos import opinfos, parametrize_over, take_spread

OPINFOS = opinfos(get_context())
FORWARD = OPINFOS.select_structured("mps_ops_modifier")
BACKWARD = OPINFOS.select_structured("mps_ops_grad_modifier", OPINFOS.context.through_backward)


def takes_indices(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether there is an index tensor to vary."""
    return any(list_indices(each) for each in OPINFOS.pick_samples(op, dtype))


def list_varied(op: OpInfo, compute: Callable[..., Any], samples: list[SampleInput]) -> Iterator[Varied]:
    """A few samples, and each with its index tensors varied whose values the CPU checks, where it computes that.

    For some of what is varied no kernel runs; the samples as they are need one.
    """
    found = [(each, place) for each in samples for place in list_indices(each)]
    few = take_spread(found)
    outside = [(str(i), put_outside(each, place)) for i, (each, place) in enumerate(few)]
    for label, _ in keep_survived(compute, outside):
        sample, place = few[int(label)]
        varied = (*vary_indices(sample, place), *fill_with_numbers(op, sample, place))
        yield from keep_computed(compute, (("as it is", sample), *varied))


class TestIndices(Gradients):
    """What indices name that no OpInfo sample gives is what it is on the CPU."""

    opinfos = OPINFOS

    @parametrize_over(FORWARD, applies=takes_indices, allowed_dtypes=OPINFOS.dtypes)
    def test_indices(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            varied = list_varied(op, stay_inside(op), OPINFOS.pick_samples(op, dtype))
            self.match_all(op, dtype, varied, device, self.same_or_as_near)

    @parametrize_over(
        BACKWARD, applies=takes_indices, dtypes=OpDTypes.supported_backward, allowed_dtypes=OPINFOS.grad_dtypes
    )
    def test_slopes_by_indices(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op, slopes=True):
            found = OPINFOS.pick_samples(op, dtype, requires_grad=True)
            for label, each in list_varied(op, partial(differentiate, op), found):
                with self.asking():
                    self.match_slopes(op, dtype, each, device, f"{label}: ")


instantiate(TestIndices, globals())
