"""Conditions are decided by the arguments of a call, or said to be unclear."""

from __future__ import annotations

import pytest

from porter.mpsgraph.conditions import Undecided, holds

ARGUMENTS = {"alpha": 1.0, "eps": None, "mode": "floor", "training": True, "self.dim()": 2, "other": 3}


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("alpha == 1.0", True),
        ("alpha == 0.0", False),
        ("alpha > 0.0", True),
        ("alpha < 1.0", False),
        ("eps.has_value()", False),
        ("other.has_value()", True),
        ('mode == "floor"', True),
        ('mode == "trunc"', False),
        ("training", True),
        ("self.dim() == 2", True),
    ],
)
def test_decided(text: str, answer: bool) -> None:
    assert holds(text, ARGUMENTS) is answer


@pytest.mark.parametrize("text", ["beta == 1.0", "alpha == beta", "is_macos_at_least(X)", "alpha + 1"])
def test_unclear(text: str) -> None:
    with pytest.raises(Undecided):
        holds(text, ARGUMENTS)
