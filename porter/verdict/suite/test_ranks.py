"""`TestRanksMPS.test_ranks_<op>_mps_float32`: samples of one or two dimensions with another one."""

# mypy: disable-error-code="no-untyped-call, misc, untyped-decorator, arg-type"

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.consistency import Consistency, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.opinfos import opinfos, parametrize_over, take_spread
from porter.verdict.suite.ranks import MOST, add_dimensions

OPINFOS = opinfos(get_context())
FORWARD = OPINFOS.select_structured("mps_ops_modifier")


def list_varied(op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Those with another dimension that the CPU computes."""
    few = take_spread([each for each in OPINFOS.samples(op, dtype) if any(True for _ in add_dimensions(each))])
    yield from keep_computed(stay_inside(op), (each for sample in few for each in add_dimensions(sample)))


def has_few_dimensions(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether some samples may have another dimension, and none has as many by itself."""
    inputs = [each.input for each in OPINFOS.samples(op, dtype) if isinstance(each.input, torch.Tensor)]
    return max((each.ndim for each in inputs), default=0) in range(1, MOST + 1)


class TestRanks(Consistency):
    """What is right in two dimensions is right in three."""

    opinfos = OPINFOS

    @parametrize_over(FORWARD, applies=has_few_dimensions, allowed_dtypes=[torch.float32])
    def test_ranks(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            varied = OPINFOS.put_after_given(op, dtype, list_varied(op, dtype))
            self.match_all(op, dtype, varied, device, self.same_or_as_near)


instantiate(TestRanks, globals())
