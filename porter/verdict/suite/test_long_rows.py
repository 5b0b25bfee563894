"""`TestLongRowsMPS.test_long_rows_<op>_mps_<dtype>`: OpInfo samples with rows that one threadgroup is too small for.

OpInfo's reductions have a few elements, which the largest of kernels compute like the smallest. Here a dimension of
every sample is long, or columns are: kernels that choose their threads by size take other ways, and have the rest of
their rows to combine.
"""

# mypy: disable-error-code="no-untyped-call, misc, untyped-decorator, arg-type"

from __future__ import annotations

from contextlib import suppress

import torch
from torch.testing._internal.opinfo.core import OpInfo

from porter.verdict.suite.consistency import Consistency, Refused, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.long_rows import SHORT, lengthen, reduces
from porter.verdict.suite.opinfos import is_pointwise, opinfos, parametrize_over

OPINFOS = opinfos(get_context())
REDUCING = [each for each in OPINFOS.select("mps_ops_modifier") if not is_pointwise(each)]
DTYPES = [torch.float32, torch.float16, torch.int64, torch.bool]
SAMPLES = 6


class TestLongRows(Consistency):
    """Where a kernel splits rows, all parts count, and count once."""

    opinfos = OPINFOS

    @parametrize_over(REDUCING, allowed_dtypes=DTYPES)
    def test_long_rows(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            found = OPINFOS.samples(op, dtype)
            for sample in found[:: len(found) // SAMPLES + 1]:
                pairs = zip(lengthen(sample), lengthen(sample, *SHORT), strict=True)
                for (label, long), (_, short) in pairs:
                    with self.noting(), suppress(Refused):
                        if reduces(self.cpu(op, short), short):
                            self.match(op, dtype, long, device, f"{label}: ")
            if not self.elements:
                self.skipTest("nothing reduces long rows")


instantiate(TestLongRows, globals())
