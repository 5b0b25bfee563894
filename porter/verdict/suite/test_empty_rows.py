"""`TestEmptyRowsMPS.test_empty_rows_<op>_mps_<dtype>`: rows without elements, of which results have some.

OpInfo has few of them. Host code that returns where an operand has no elements leaves what was in the results' memory.
"""

# mypy: disable-error-code="no-untyped-call, misc, untyped-decorator, arg-type"

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import Varied
from porter.verdict.suite.consistency import Consistency, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.empty_rows import empty_dimensions, has_other_bools, list_empty_rows
from porter.verdict.suite.opinfos import opinfos, parametrize_over, take_spread

OPINFOS = opinfos(get_context())
FORWARD = OPINFOS.select_structured("mps_ops_modifier")
DTYPES = [each for each in (torch.float32, torch.int64, torch.bool) if each in OPINFOS.dtypes]


def list_varied(op: OpInfo, dtype: torch.dtype) -> Iterator[Varied]:
    """Samples without elements in a dimension."""
    for sample in take_spread(OPINFOS.reaching_samples(op, dtype)):
        yield from list_empty_rows(op, sample)


def has_dimensions(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether there is a dimension to empty."""
    return any(any(True for _ in empty_dimensions(each)) for each in OPINFOS.reaching_samples(op, dtype))


class TestEmptyRows(Consistency):
    """What is made of no elements is written too."""

    opinfos = OPINFOS

    @parametrize_over(FORWARD, applies=has_dimensions, allowed_dtypes=DTYPES)
    def test_empty_rows(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            varied = OPINFOS.put_after_given(op, dtype, list_varied(op, dtype))
            self.match_all(op, dtype, varied, device, self.written_and_same)

    def written_and_same(
        self, op: OpInfo, dtype: torch.dtype, sample: SampleInput, got: Any, want: Any, label: str = ""
    ) -> None:
        if has_other_bools(got):
            raise AssertionError(f"{label}results are neither true nor false: nobody wrote them")
        self.same_or_as_near(op, dtype, sample, got, want, label)


instantiate(TestEmptyRows, globals())
