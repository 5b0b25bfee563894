"""Faults in what a factor of zero leaves out."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from porter.verdict.suite.variations.many_addends import ZERO_FACTORS
from tests.porter.verdict.suite.variations.shown import Call, find_op, is_shown, is_shown_as_given, list_samples


def multiply_all(product: Call) -> Call:
    """A product to which `beta` times a tensor is added, whatever `beta` is."""

    def add(x: torch.Tensor, *args: Any, beta: Any = 1, alpha: Any = 1, **named: Any) -> torch.Tensor:
        result: torch.Tensor = beta * x + (alpha * product(*args) if alpha != 1 else product(*args))
        return result

    return add


@pytest.mark.parametrize(
    ("name", "product"),
    [("addmm", torch.mm), ("baddbmm", torch.bmm), ("addmv", torch.mv)],
)
def test_nan_times_a_beta_of_zero_is_found(name: str, product: Call) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, multiply_all(product))
    assert is_shown(ZERO_FACTORS, op, multiply_all(product))


def test_what_reads_its_input_in_any_case_has_no_samples() -> None:
    assert not list_samples(ZERO_FACTORS, find_op("index_add")) and not list_samples(ZERO_FACTORS, find_op("matmul"))
