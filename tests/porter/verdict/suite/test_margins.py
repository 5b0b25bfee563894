"""Memory around tensors, which kernels must not reach."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from porter.verdict.suite.margins import Margins, has_nan

DTYPES = (torch.float32, torch.float16, torch.int64, torch.int32, torch.bool, torch.complex64)


@given(st.lists(st.integers(0, 4), max_size=3), st.sampled_from(DTYPES))
def test_a_placed_tensor_is_the_tensor(shape: list[int], dtype: torch.dtype) -> None:
    tensor = torch.randint(2, shape).to(dtype)
    margins = Margins()
    placed = margins.place(tensor)
    assert torch.equal(placed, tensor)
    placed.zero_()
    assert margins.are_intact()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("offset", [-1, 3])
def test_what_is_written_beyond_a_tensor_is_found(dtype: torch.dtype, offset: int) -> None:
    margins = Margins()
    margins.place(torch.zeros(2, dtype=dtype))
    placed = margins.place(torch.zeros(3, dtype=dtype))
    placed.as_strided((1,), (1,), placed.storage_offset() + offset).zero_()
    assert not margins.are_intact()


def test_what_is_read_beyond_a_tensor_is_nan() -> None:
    placed = Margins().place(torch.ones(3))
    assert has_nan((placed.as_strided((4,), (1,)), torch.ones(2, dtype=torch.int64)))
    assert not has_nan((placed, 1.0))
