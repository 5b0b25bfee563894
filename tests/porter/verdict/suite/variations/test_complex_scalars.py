"""Faults of complex numbers among a call's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from porter.verdict.suite.variations.sized_arguments import COMPLEX_SCALARS
from tests.porter.verdict.suite.variations.shown import find_op, is_shown, is_shown_as_given, list_samples

Call = Callable[..., Any]


def subtract(x: torch.Tensor, y: Any, alpha: Any = 1) -> torch.Tensor:
    """The imaginary part of the number is subtracted where it should be added."""
    return torch.sub(x, y, alpha=complex(alpha).conjugate())


def add(x: torch.Tensor, y: Any, alpha: Any = 1) -> torch.Tensor:
    return torch.add(x, y, alpha=complex(alpha).real)


def multiply(x: torch.Tensor, *factors: torch.Tensor, value: Any = 1) -> torch.Tensor:
    return torch.addcmul(x, *factors, value=complex(value).real)


@pytest.mark.parametrize(("name", "wrong"), [("sub", subtract), ("add", add), ("addcmul", multiply)])
def test_a_fault_of_an_imaginary_part_is_seen(name: str, wrong: Call) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, wrong, torch.complex64)
    assert is_shown(COMPLEX_SCALARS, op, wrong, torch.complex64)


def test_calls_without_numbers_have_none() -> None:
    assert not list_samples(COMPLEX_SCALARS, find_op("atan2"), torch.complex64)
    assert not list_samples(COMPLEX_SCALARS, find_op("softmax"), torch.complex64)
