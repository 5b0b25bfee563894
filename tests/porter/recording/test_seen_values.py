"""Flags and whole numbers of other calls, tried in a call."""

from __future__ import annotations

import torch

from porter.recording.calls import OpCall
from porter.recording.seen_values import SeenValues, with_arguments

LOSS = torch.ops.aten.nll_loss_forward.default


def call(reduction: int, ignored: int) -> OpCall:
    arguments = {"self": torch.rand(4, 3), "target": torch.tensor([0, 1, 2, 1]), "weight": None}
    return OpCall(LOSS, {**arguments, "reduction": reduction, "ignore_index": ignored})


def test_every_value_of_other_calls_comes_in_turn() -> None:
    first = call(0, -100)
    seen = SeenValues.of((first, call(1, -100), call(2, 1)))
    assert [seen.change(first) for _ in range(4)] == [
        {"reduction": 1}, {"reduction": 2}, {"ignore_index": 1}, {"reduction": 1},
    ]  # fmt: skip
    assert with_arguments(first, {"ignore_index": 1}).arguments["ignore_index"] == 1


def test_an_argument_of_one_value_or_of_many_is_no_choice() -> None:
    assert SeenValues.of((call(0, 1), call(0, 1))).values == {}
    assert SeenValues.of([call(0, each) for each in range(9)]).values == {}


def test_what_the_cpu_refuses_is_not_tried() -> None:
    softmax = torch.ops.aten._softmax.default
    flat = OpCall(softmax, {"self": torch.rand(3), "dim": 0, "half_to_float": False})
    square = OpCall(softmax, {"self": torch.rand(3, 3), "dim": 1, "half_to_float": False})
    seen = SeenValues.of((flat, square))
    assert seen.change(flat) == {} and seen.change(square) == {"dim": 0}
