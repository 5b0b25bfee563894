"""`TestArgumentsMPS.test_arguments_<op>_mps_<dtype>` and `test_slopes_by_arguments`: samples with an argument varied.

Arguments of elementwise operators are numbers, which the tests of edge values vary.
"""

from __future__ import annotations

from functools import partial

import torch
from torch.testing._internal.common_device_type import OpDTypes
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite.arguments import keep_computed, list_result_types, vary_arguments
from porter.verdict.suite.consistency import instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.gradients import Gradients, differentiate
from porter.verdict.suite.opinfos import MPS_DTYPES, opinfos, parametrize_over
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
