"""`TestArgumentsMPS.test_arguments_<op>_mps_<dtype>` and `test_slopes_by_arguments`: samples with an argument varied.

Arguments of elementwise operators are numbers, which the tests of edge values vary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch.testing._internal.common_device_type import OpDTypes
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied, keep_computed, keep_survived, list_result_types, vary_arguments
from porter.verdict.suite.consistency import instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.gradients import Gradients, differentiate
from porter.verdict.suite.indices import fill_with_numbers, list_indices, put_outside, vary_indices
from porter.verdict.suite.opinfos import MPS_DTYPES, opinfos, parametrize_over, take_spread
from porter.verdict.suite.samples import copy_sample

OPINFOS = opinfos(get_context())
FORWARD = OPINFOS.select_structured("mps_ops_modifier")
BACKWARD = OPINFOS.select_structured("mps_ops_grad_modifier", OPINFOS.context.through_backward)


def varies(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether there is an argument to vary."""
    return any(any(True for _ in vary_arguments(op, each, MPS_DTYPES)) for each in OPINFOS.pick_samples(op, dtype))


class TestArguments(Gradients):
    """Values of arguments that no OpInfo sample gives make what the CPU makes of them.

    Some values need no kernel (a factor of 1): the sample as given, which comes first, is to reach it.
    """

    opinfos = OPINFOS

    @parametrize_over(FORWARD, applies=varies, allowed_dtypes=OPINFOS.dtypes)
    def test_arguments(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            for sample in OPINFOS.pick_samples(op, dtype):
                varied = keep_computed(op, vary_arguments(op, sample, list_result_types(op, MPS_DTYPES)))
                # A flag may have a sample written to.
                copied = ((label, copy_sample(each)) for label, each in (("as given", sample), *varied))
                self.match_all(op, dtype, copied, device, self.same_or_as_near)

    @parametrize_over(BACKWARD, applies=varies, dtypes=OpDTypes.supported_backward, allowed_dtypes=OPINFOS.grad_dtypes)
    def test_slopes_by_arguments(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        computed = partial(differentiate, op)
        with self.count_calls(dtype, op, slopes=True):
            for sample in OPINFOS.pick_samples(op, dtype, requires_grad=True):
                varied = vary_arguments(op, sample, list_result_types(op, OPINFOS.grad_dtypes))
                with self.asking():
                    self.reach(op, sample, device)
                for label, each in keep_computed(computed, varied):
                    with self.asking():
                        self.match_slopes(op, dtype, each, device, f"{label}: ")


instantiate(TestArguments, globals())


# `TestIndicesMPS.test_indices_<op>_mps_<dtype>` and `test_slopes_by_indices`: samples with an index tensor varied.


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
