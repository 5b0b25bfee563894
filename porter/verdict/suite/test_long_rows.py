"""`TestLongRowsMPS.test_long_rows_<op>_mps_<dtype>`: OpInfo samples with rows that one threadgroup is too small for.

OpInfo's reductions have a few elements, which the largest of kernels compute like the smallest. Here a dimension of
every sample is long, or columns are: kernels that choose their threads by size take other ways, and have the rest of
their rows to combine. Nor has OpInfo elements that are not finite: sums of one pass treat them by where they are.
"""

# mypy: disable-error-code="no-untyped-call, misc, untyped-decorator, arg-type"

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.consistency import Consistency, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.long_rows import SHORT, ignores_order, lengthen, put_ends, reduces
from porter.verdict.suite.opinfos import is_pointwise, opinfos, parametrize_over

OPINFOS = opinfos(get_context())
REDUCING = [each for each in OPINFOS.select("mps_ops_modifier") if not is_pointwise(each)]
DTYPES = [torch.float32, torch.float16, torch.int64, torch.bool]
SAMPLES = 6


def list_long(op: OpInfo, dtype: torch.dtype) -> Iterator[tuple[str, SampleInput]]:
    """The samples of long rows that an operator reduces, which the CPU says of short ones, and those of its own rows
    that end in an element that is not finite.
    """
    found = OPINFOS.samples(op, dtype)
    for sample in found[:: len(found) // SAMPLES + 1]:
        long = [
            (label, each)
            for (label, each), (_, short) in zip(lengthen(sample), lengthen(sample, *SHORT), strict=True)
            if reduces(_compute(op, short), short)
        ]
        yield from long
        if long:
            yield from (each for each in put_ends(sample) if ignores_order(op, each[1]))


def _compute(op: OpInfo, sample: SampleInput) -> Any:
    """The CPU's results, or None where it refuses the sample, as it may of sizes that are not the OpInfo's."""
    try:
        return op(sample.input, *sample.args, **sample.kwargs)
    except (RuntimeError, TypeError, IndexError, ValueError, NotImplementedError):
        return None


def reduces_any(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether there is a long row to test; where the OpInfo raises an error, its test is to tell."""
    try:
        return any(True for _ in list_long(op, dtype))
    except Exception:
        return True


class TestLongRows(Consistency):
    """Where a kernel splits rows, all parts count, and count once."""

    opinfos = OPINFOS

    @parametrize_over(REDUCING, applies=reduces_any, allowed_dtypes=DTYPES)
    def test_long_rows(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            self.match_all(op, dtype, list_long(op, dtype), device)


instantiate(TestLongRows, globals())
