"""`TestPicksMPS.test_picks_<op>_mps_<dtype>`: several long rows of elements that all differ.

A kernel that sorts, or looks for some elements of a row, joins what it found in parts of the row. What it joins of
another row, or in another order, shows where elements differ in all rows.
"""

# mypy: disable-error-code="no-untyped-call, misc, untyped-decorator, arg-type"

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import torch
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.consistency import Consistency, instantiate
from porter.verdict.suite.context import get_context
from porter.verdict.suite.opinfos import opinfos, parametrize_over, take_spread
from porter.verdict.suite.picks import list_picked, tell_apart

OPINFOS = opinfos(get_context())
ROW_WISE = OPINFOS.select_structured("mps_ops_modifier")
DTYPES = [torch.float32, torch.int64]


def list_varied(op: OpInfo, dtype: torch.dtype) -> Iterator[tuple[str, SampleInput]]:
    """A few samples of different arguments, with long rows."""
    few = take_spread(tell_apart(OPINFOS.reaching_samples(op, dtype)))
    return chain.from_iterable(list_picked(op, each) for each in few)


def picks_elements(op: OpInfo, dtype: torch.dtype) -> bool:
    """Whether there is a sample to test."""
    return any(True for _ in list_varied(op, dtype))


class TestPicks(Consistency):
    """What is picked of a long row is of that row, in the order that is asked for."""

    opinfos = OPINFOS

    @parametrize_over(ROW_WISE, applies=picks_elements, allowed_dtypes=DTYPES)
    def test_picks(self, device: str, dtype: torch.dtype, op: OpInfo) -> None:
        with self.count_calls(dtype, op):
            self.match_all(op, dtype, OPINFOS.put_after_given(op, dtype, list_varied(op, dtype)), device)


instantiate(TestPicks, globals())
