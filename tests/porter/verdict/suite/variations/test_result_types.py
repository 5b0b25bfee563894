"""Faults in what operators compute where a result type is named: in which type, and when elements are converted."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from porter.verdict.suite.variations.result_types import RESULT_TYPES
from tests.porter.verdict.suite.variations.shown import Call, find_op, is_shown, is_shown_as_given, list_samples


def convert_late(call: Call) -> Call:
    """An operator that computes in the type of its elements, and converts what it made of them."""

    def compute(x: torch.Tensor, *args: Any, dtype: torch.dtype | None = None, **named: Any) -> Any:
        if dtype is None:
            return call(x, *args, **named)
        computed = torch.int64 if x.dtype is torch.bool else x.dtype
        return call(x, *args, dtype=computed, **named).to(dtype)

    return compute


def count_in_8_bits(x: torch.Tensor, *args: Any, dtype: torch.dtype | None = None, **named: Any) -> torch.Tensor:
    """A sum whose elements that are true are counted in 8 bits."""
    if dtype is torch.bool:
        return torch.sum((x != 0).to(torch.uint8), *args, dtype=torch.uint8, **named) != 0
    return torch.sum(x, *args, dtype=dtype, **named)


@pytest.mark.parametrize(
    ("name", "call"), [("cumprod", torch.cumprod), ("sum", torch.sum), ("cumsum", torch.cumsum), ("prod", torch.prod)]
)
@pytest.mark.parametrize("dtype", [torch.int32, torch.float16])
def test_results_that_are_converted_late_are_found(name: str, call: Call, dtype: torch.dtype) -> None:
    assert is_shown(RESULT_TYPES, find_op(name), convert_late(call), dtype)


def test_elements_that_a_half_does_not_hold() -> None:
    op = find_op("sum")
    assert is_shown(RESULT_TYPES, op, lambda x, *args, **named: torch.sum(x.clamp(-6e4, 6e4), *args, **named))


def test_a_count_in_8_bits_is_found() -> None:
    op = find_op("sum")
    assert not is_shown_as_given(op, count_in_8_bits, torch.bool)
    assert is_shown(RESULT_TYPES, op, count_in_8_bits, torch.bool)


def test_what_names_no_result_type_has_no_samples() -> None:
    assert not list_samples(RESULT_TYPES, find_op("var")) and not list_samples(RESULT_TYPES, find_op("amax"))
