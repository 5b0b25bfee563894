"""Faults in numbers that are as large as a size: OpInfo's are smaller."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from porter.verdict.suite.variations.sized_arguments import SIZED_ARGUMENTS
from tests.porter.verdict.suite.variations.shown import find_op, is_shown, is_shown_as_given

Call = Callable[..., Any]


def keep_in_row(x: torch.Tensor, diagonal: int = 0) -> torch.Tensor:
    return torch.triu(x, min(diagonal, x.shape[-1] - 1))


def roll_once(x: torch.Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] = ()) -> torch.Tensor:
    """A shift past the end of a row stops there."""
    several, along = ([each] if isinstance(each, int) else list(each) for each in (shifts, dims))
    most = [x.shape[dim] for dim in along] or [x.numel()]
    kept = [max(-size, min(shift, size)) for shift, size in zip(several, most, strict=True)]
    return torch.roll(x, kept, along)


def compute_var(x: torch.Tensor, *args: Any, **named: Any) -> torch.Tensor:
    """The variance of what nothing is left of is zero."""
    result = torch.var(x, *args, **named)
    return torch.where(result.isinf(), 0.0, result)


def list_places(rows: int, columns: int, offset: int = 0, **named: Any) -> torch.Tensor:
    return torch.tril_indices(rows, columns, max(1 - rows, min(offset, columns - 1)), **named)


@pytest.mark.filterwarnings("ignore:var")
@pytest.mark.parametrize(
    ("name", "wrong", "dtype"),
    [
        ("triu", keep_in_row, torch.float32),
        ("roll", roll_once, torch.float32),
        ("var", compute_var, torch.float32),
        ("tril_indices", list_places, torch.int64),
    ],
)
def test_a_number_as_large_as_a_size_is_seen(name: str, wrong: Call, dtype: torch.dtype) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, wrong, dtype)
    assert is_shown(SIZED_ARGUMENTS, op, wrong, dtype)
