"""Faults in rows that are not dense: elements that are not finite, and which of equal ones is the first."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from porter.verdict.suite.variations.strided_ends import STRIDED_ENDS
from tests.porter.verdict.suite.variations.shown import Call, find_op, is_shown, is_shown_as_given


def forget_strided(call: Call) -> Call:
    """An operator that takes no element of a tensor that is not dense for NaN or infinite."""

    def compute(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        return call(x if x.is_contiguous() else x.nan_to_num(0.0, 0.0, 0.0), *args, **named)

    return compute


def forget_vectors(call: Call) -> Call:
    """An operator that takes no element of rows of vectors for NaN."""

    def compute(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        is_vector = x.is_contiguous() and x.ndim > 0 and x.shape[-1] % 4 == 0
        return call(x.nan_to_num(0.0, torch.inf, -torch.inf) if is_vector else x, *args, **named)

    return compute


def take_first_in_memory(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
    """The largest element of all that is the first in memory."""
    if dim is not None or x.ndim != 2 or x.is_contiguous() or not x.t().is_contiguous():
        return torch.argmax(x, dim, keepdim)
    column, row = divmod(int(x.t().argmax()), len(x))
    return torch.tensor(row * x.shape[-1] + column)


@pytest.mark.parametrize("name", ["argmax", "amax", "sum", "median", "var", "nn.functional.max_pool2d", "unique"])
def test_an_element_that_is_not_finite_is_lost_where_rows_are_not_dense(name: str) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, forget_strided(op))
    assert is_shown(STRIDED_ENDS, op, forget_strided(op))


@pytest.mark.parametrize("name", ["linalg.vector_norm", "amin", "mean"])
def test_an_element_that_is_not_finite_is_lost_where_vectors_are_read(name: str) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, forget_vectors(op))
    assert is_shown(STRIDED_ENDS, op, forget_vectors(op))


def test_equal_elements_have_the_order_of_positions_not_of_memory() -> None:
    op = find_op("argmax")
    assert not is_shown_as_given(op, take_first_in_memory)
    assert is_shown(STRIDED_ENDS, op, take_first_in_memory)
