"""`TestLongRowsMPS.test_long_rows_<op>_mps_<dtype>`: OpInfo samples with rows that one threadgroup is too small for.

OpInfo's rows have a few elements, which the largest of kernels compute like the smallest. Here a dimension of
every sample is long, or columns are: kernels that choose their threads by size take other ways, and have the rest of
their rows to combine. Nor has OpInfo elements that are not finite: sums of one pass treat them by where they are.
"""

# mypy: disable-error-code="no-untyped-call, misc, untyped-decorator, arg-type"

from __future__ import annotations

import torch
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite.consistency import Consistency, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.long_rows import list_long
from porter.verdict.suite.opinfos import opinfos, parametrize_over

OPINFOS = opinfos(get_context())
ROW_WISE = OPINFOS.select_structured("mps_ops_modifier")


def has_long_rows(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether there is a long row to test."""
    return any(True for _ in list_long(OPINFOS, op, dtype))


class TestLongRows(Consistency):
    """Where a kernel splits rows, all parts count, and count once."""

    opinfos = OPINFOS

    @parametrize_over(ROW_WISE, applies=has_long_rows, allowed_dtypes=OPINFOS.dtypes)
    def test_long_rows(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            self.match_all(op, dtype, OPINFOS.put_after_given(op, dtype, list_long(OPINFOS, op, dtype)), device)


instantiate(TestLongRows, globals())
