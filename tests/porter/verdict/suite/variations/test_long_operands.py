"""Faults in slices of a tensor beside the input, and of the flag that has kernels of its own."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from porter.verdict.suite.variations.past_tiles import LONG, LONG_OPERANDS
from tests.porter.verdict.suite.variations.shown import find_op, is_shown, is_shown_as_given


def forget_invert(x: torch.Tensor, tested: Any, *args: Any, invert: bool = False, **named: Any) -> torch.Tensor:
    """isin that does not invert what slices of many elements combine to."""
    return torch.isin(x, tested, *args, invert=invert and tested.numel() < LONG, **named)


def test_a_flag_of_many_elements_to_look_for() -> None:
    op = find_op("isin")
    assert not is_shown_as_given(op, forget_invert)
    assert is_shown(LONG_OPERANDS, op, forget_invert)


@pytest.mark.parametrize("name", ["bucketize"])
def test_elements_past_16_bits(name: str) -> None:
    op = find_op(name)

    def forget(x: torch.Tensor, other: Any, *args: Any, **named: Any) -> Any:
        return op.op(x, other[: 1 << 16], *args, **named)

    assert not is_shown_as_given(op, forget)
    assert is_shown(LONG_OPERANDS, op, forget)


def combine_32_slices(x: torch.Tensor, tested: Any, *args: Any, **named: Any) -> torch.Tensor:
    return torch.isin(x, tested[: 32 * 8192] if isinstance(tested, torch.Tensor) else tested, *args, **named)


def combine_256_rows(x: torch.Tensor, tested: Any, *args: Any, **named: Any) -> torch.Tensor:
    is_in = torch.isin(x, tested, *args, **named)
    return is_in.view(-1)[torch.arange(is_in.numel()) % 256].view(is_in.shape)


@pytest.mark.parametrize("wrong", [combine_32_slices, combine_256_rows])
def test_more_slices_and_rows_than_threads(wrong: Any) -> None:
    op = find_op("isin")
    assert not is_shown_as_given(op, wrong)
    assert is_shown(LONG_OPERANDS, op, wrong)
