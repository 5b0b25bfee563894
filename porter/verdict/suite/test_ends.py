"""`TestEndsMPS.test_ends_<op>_mps_<dtype>`: samples with elements at the ends of a type, or that are not finite.

OpInfo's integers are below ten and its floats finite, where a comparison in another type or a maximum that starts from
some small number computes the same. Elementwise operators have tests of edge values, and reductions of elements that
are not finite.
"""

# mypy: disable-error-code="no-untyped-call, misc, untyped-decorator, arg-type"

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite.arguments import Varied, keep_computed
from porter.verdict.suite.consistency import Consistency, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.ends import list_all_ends, list_ends
from porter.verdict.suite.opinfos import opinfos, parametrize_over

OPINFOS = opinfos(get_context())
FORWARD = OPINFOS.select_structured("mps_ops_modifier")


def list_varied(op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """A few samples with elements at the ends of their type, that the CPU computes."""
    yield from keep_computed(op, list_all_ends(op, OPINFOS.pick_samples(op, dtype), dtype))


def has_ends(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether there is a sample to change."""
    return any(any(True for _ in list_ends(op, each)) for each in OPINFOS.pick_samples(op, dtype))


class TestEnds(Consistency):
    """Elements at the ends of a type, and infinite ones and NaN, give what they give on the CPU."""

    opinfos = OPINFOS

    @parametrize_over(FORWARD, applies=has_ends, allowed_dtypes=OPINFOS.dtypes)
    def test_ends(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            varied = OPINFOS.put_after_given(op, dtype, list_varied(op, dtype))
            self.match_all(op, dtype, varied, device, self.same_or_as_near)


instantiate(TestEnds, globals())
