"""Faults in gradients of samples without elements: memory that a backward pass, which returns early, leaves unwritten."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from porter.verdict.suite.variations.asked_gradients import EMPTY_GRADIENTS
from tests.porter.verdict.suite.variations.shown import find_op, list_samples, shows_slopes

Call = Callable[..., Any]


def fill_if_empty(call: Call, place: int | str) -> Call:
    """A function with a gradient of ones, for an operand beside an input without elements."""

    def wrong(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        several: Any = list(args) if isinstance(place, int) else named
        if not x.numel() and isinstance(several[place], torch.Tensor):
            several[place] = several[place] * 1
            several[place].register_hook(torch.ones_like)
        return call(x, *(several if isinstance(place, int) else args), **named)

    return wrong


@pytest.mark.parametrize(
    ("name", "place"),
    [("nn.functional.batch_norm", 2), ("nn.functional.layer_norm", 1), ("nn.functional.linear", 0)],
)
def test_a_gradient_of_no_elements_is_written(name: str, place: int) -> None:
    op = copy.deepcopy(find_op(name))
    wrong = fill_if_empty(op.op, place)
    samples: Sequence[Any] = list_samples(EMPTY_GRADIENTS, op)
    assert any(shows_slopes(op, wrong, sample) for _, sample in samples), [label for label, _ in samples]


def test_samples_whose_gradients_have_no_elements_are_left_out() -> None:
    assert not list_samples(EMPTY_GRADIENTS, find_op("softmax"))
