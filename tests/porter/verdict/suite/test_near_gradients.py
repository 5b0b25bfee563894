"""Gradients of varied samples may be as far off as the CPU's own."""

from __future__ import annotations

import pytest
import torch

from porter.verdict.suite.gradients import _is_as_exact, _is_as_near

EXACT = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)


def off(*errors: float) -> torch.Tensor:
    return (EXACT + torch.tensor(errors, dtype=torch.float64)).float()


@pytest.mark.parametrize(
    ("mine", "theirs", "is_near"),
    [
        (off(0.003, 0, 0), off(0, 0.001, 0), True),  # by the largest error of all
        (off(0.005, 0, 0), off(0, 0.001, 0), False),
        (off(0.1, 0, 0), off(0, 0.1, 0), False),  # the CPU's is no measure
        (None, None, True),
        (None, off(0, 0, 0), False),
    ],
)
def test_a_gradient_is_near(mine: torch.Tensor | None, theirs: torch.Tensor | None, is_near: bool) -> None:
    assert _is_as_near(mine, theirs, None if theirs is None else EXACT) is is_near


@pytest.mark.parametrize(
    ("mine", "theirs", "is_exact"),
    [
        (off(0, 0, 0.0005), off(0, 0, 0), True),  # within the tolerance
        (off(0, 0, 0.002), off(0, 0, 0), False),
        (off(0, 0, 0.002), off(0, 0, 0.003), True),  # as the CPU's is not
        (off(0, 0.004, 0), off(0, 0, 0.003), True),  # of a larger gradient more is allowed
        (off(0, 0, 0.004), off(0, 0.004, 0), False),
        (off(0, 0, torch.nan), off(0, 0, 0.003), False),
        (off(0, 0, 0.003), off(0, 0, torch.nan), False),
        (None, None, True),
        (None, off(0, 0, 0), False),
    ],
)
def test_a_gradient_is_as_exact(mine: torch.Tensor | None, theirs: torch.Tensor | None, is_exact: bool) -> None:
    assert _is_as_exact(mine, theirs, None if theirs is None else EXACT, rtol=1e-3, atol=1e-6) is is_exact


def test_no_gradient_is_far_from_one() -> None:
    nothing = torch.zeros(0)
    assert _is_as_near(nothing, nothing, nothing.double())
    assert _is_as_exact(nothing, nothing, nothing.double())
