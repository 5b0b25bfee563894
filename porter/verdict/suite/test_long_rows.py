"""`TestLongRowsMPS.test_long_rows_<op>_mps_<dtype>`: OpInfo samples with rows that one threadgroup is too small for.

OpInfo's rows have a few elements, which the largest of kernels compute like the smallest. Here a dimension of
every sample is long, or columns are: kernels that choose their threads by size take other ways, and have the rest of
their rows to combine. Nor has OpInfo elements that are not finite: sums of one pass treat them by where they are.
"""

# mypy: disable-error-code="no-untyped-call, misc, untyped-decorator, arg-type"

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.arguments import turn_flags
from porter.verdict.suite.consistency import Consistency, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.long_rows import (
    SEVERAL,
    SHORT,
    ignores_order,
    keeps,
    lengthen,
    makes_nan,
    put_ends,
    put_nan_last,
    reduces,
    repeat_rows,
)
from porter.verdict.suite.opinfos import opinfos, parametrize_over, take_spread
from porter.verdict.suite.refusals import REFUSALS

OPINFOS = opinfos(get_context())
ROW_WISE = OPINFOS.select_structured("mps_ops_modifier")
DTYPES = [torch.float32, torch.float16, torch.int64, torch.bool]  # other types have one long row
KEPT = 2


def list_long(op: OpInfo, dtype: torch.dtype) -> Iterator[tuple[str, SampleInput]]:
    """The samples of long rows that an operator reduces, which the CPU says of short ones, those of its own rows that
    end in an element that is not finite, and samples of rows that it keeps, as a scan or a sort does.
    """
    few = take_spread(OPINFOS.samples(op, dtype))
    if dtype not in DTYPES:
        yield from islice((each for sample in few for each in _list_reduced(op, sample)), 1)
        return
    kept = KEPT
    for sample in few:
        long = _list_reduced(op, sample)
        yield from long
        many = zip(repeat_rows(sample), repeat_rows(sample, SHORT[0]), strict=False)
        yield from (each for each, (_, few_rows) in many if reduces(_compute(op, few_rows), few_rows))
        if long:
            yield from put_nan_last(long[:1])
            ends = (each for each in put_ends(sample) if ignores_order(op, each[1]))
            yield from (each for each in ends if not makes_nan(op, each[1]))
        elif kept and (several := _list_kept(op, sample)):
            kept -= 1
            yield from several


def _list_reduced(op: OpInfo, sample: SampleInput) -> list[tuple[str, SampleInput]]:
    """The sample with rows of several parts, where results have one element for each row.

    None of a type whose elements the CPU cannot put into long rows.
    """
    try:
        varied = list(zip(lengthen(sample), lengthen(sample, *SHORT), strict=True))
    except NotImplementedError:
        return []
    return [each for each, (_, short) in varied if reduces(_compute(op, short), short)]


def _list_kept(op: OpInfo, sample: SampleInput) -> list[tuple[str, SampleInput]]:
    """The sample with rows of several threadgroups, where results are as long; one of them with flags turned over."""
    varied = zip(lengthen(sample, *SEVERAL), lengthen(sample, *SHORT), strict=True)
    kept = [each for each, (_, short) in varied if keeps(_compute(op, short), short)]
    turned = ((f"{label}, {flag}", each) for label, long in kept[-1:] for flag, each in turn_flags(op, long))
    return [*kept, *turned]


def _compute(op: OpInfo, sample: SampleInput) -> Any:
    """The CPU's results, or None where it refuses the sample, as it may of sizes that are not the OpInfo's."""
    try:
        return op(sample.input, *sample.args, **sample.kwargs)
    except REFUSALS:
        return None


def has_long_rows(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether there is a long row to test."""
    return any(True for _ in list_long(op, dtype))


class TestLongRows(Consistency):
    """Where a kernel splits rows, all parts count, and count once."""

    opinfos = OPINFOS

    @parametrize_over(ROW_WISE, applies=has_long_rows, allowed_dtypes=OPINFOS.dtypes)
    def test_long_rows(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            self.match_all(op, dtype, OPINFOS.put_after_given(op, dtype, list_long(op, dtype)), device)


instantiate(TestLongRows, globals())
