"""`TestCutsMPS.test_cuts_<op>_mps_<dtype>`: samples with one tensor smaller in a dimension, where the CPU allows it."""

# mypy: disable-error-code="no-untyped-call, misc, untyped-decorator, arg-type"

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.consistency import Consistency, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.cuts import cut_operands, list_expanded, stay_inside
from porter.verdict.suite.opinfos import opinfos, parametrize_over, take_spread

OPINFOS = opinfos(get_context())
FORWARD = OPINFOS.select_structured("mps_ops_modifier")


def list_varied(op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Those with a tensor cut, or of one element in a dimension, that the CPU computes."""
    few = take_spread(OPINFOS.reaching_samples(op, dtype))
    yield from keep_computed(stay_inside(op), (each for sample in few for each in cut_operands(sample)))
    yield from (each for sample in few for each in list_expanded(op, sample))


def takes_several(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether there is a tensor to cut."""
    return any(any(True for _ in cut_operands(each)) for each in OPINFOS.reaching_samples(op, dtype))


class TestCuts(Consistency):
    """Operands of other sizes than those that OpInfo gives are each read by their own."""

    opinfos = OPINFOS

    @parametrize_over(FORWARD, applies=takes_several, allowed_dtypes=[torch.float32])
    def test_cuts(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            varied = OPINFOS.put_after_given(op, dtype, list_varied(op, dtype))
            self.match_all(op, dtype, varied, device, self.same_or_as_near)


instantiate(TestCuts, globals())
