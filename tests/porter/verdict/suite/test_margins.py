"""Memory around tensors, which kernels must not reach."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from porter.verdict.suite.cuts import Margins, has_nan

DTYPES = (torch.float32, torch.float16, torch.int64, torch.int32, torch.bool, torch.complex64)


@given(st.lists(st.integers(0, 4), max_size=3), st.sampled_from(DTYPES), st.booleans())
def test_a_placed_tensor_is_the_tensor(shape: list[int], dtype: torch.dtype, plain: bool) -> None:
    tensor = torch.randint(2, shape).to(dtype)
    margins = Margins(plain)
    placed = margins.place(tensor)
    assert torch.equal(placed, tensor)
    placed.zero_()
    assert margins.are_intact()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("offset", [-1, 3])
@pytest.mark.parametrize("plain", [False, True])
def test_what_is_written_beyond_a_tensor_is_found(dtype: torch.dtype, offset: int, plain: bool) -> None:
    margins = Margins(plain)
    margins.place(torch.zeros(2, dtype=dtype))
    placed = margins.place(torch.zeros(3, dtype=dtype))
    written = placed.as_strided((1,), (1,), placed.storage_offset() + offset)
    written.fill_(dtype is torch.bool) if plain and dtype is torch.bool else written.zero_()
    assert not margins.are_intact()


def test_what_is_made_of_nan_beyond_a_tensor_is_found_of_plain_margins_alone() -> None:
    for plain in (False, True):
        margins = Margins(plain)
        beyond = margins.place(torch.zeros(3)).as_strided((4,), (1,))
        beyond.mul_(0.5)
        assert margins.are_intact() is not plain


def test_what_is_read_beyond_a_tensor_is_nan() -> None:
    placed = Margins().place(torch.ones(3))
    assert has_nan((placed.as_strided((4,), (1,)), torch.ones(2, dtype=torch.int64)))
    assert not has_nan((placed, 1.0))
