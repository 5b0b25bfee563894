"""Numbers in memory of a reduced type, against torch's."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from porter.core.dtypes import BFLOAT, BOOL, FLOAT, HALF, LONG
from porter.loops.host_values import round_number

NUMBERS = st.one_of(st.integers(-(2**20), 2**20), st.floats(width=32, allow_nan=False))


@given(NUMBERS)
def test_as_torch_rounds(value: float) -> None:
    for dtype in (HALF, BFLOAT):
        expected = torch.tensor(value, dtype=torch.float32).to(getattr(torch, dtype.torch)).item()
        assert round_number(value, dtype) == expected


def test_other_types_keep_the_number() -> None:
    assert round_number(1010, FLOAT) == 1010 != round_number(1010, BFLOAT) == 1008


@given(st.floats(-1e6, 1e6))
def test_numbers_are_cut_and_truth_values_are_not(value: float) -> None:
    assert round_number(value, LONG) == torch.tensor(value, dtype=torch.float64).long().item()
    assert round_number(value, BOOL) is bool(value)
    assert round_number(value, FLOAT) == torch.tensor(value, dtype=torch.float32).item()
