"""Flags and whole numbers of other calls, tried in a call."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from porter.recording import varied_calls
from porter.recording.calls import OpCall
from porter.recording.varied_calls import ObservedValues

LOSS = torch.ops.aten.nll_loss_forward.default


def call(reduction: int, ignored: int) -> OpCall:
    arguments = {"self": torch.rand(4, 3), "target": torch.tensor([0, 1, 2, 1]), "weight": None}
    return OpCall(LOSS, {**arguments, "reduction": reduction, "ignore_index": ignored})


def test_every_value_of_other_calls_comes_in_turn() -> None:
    first = call(0, -100)
    seen = ObservedValues.of((first, call(1, -100), call(2, 1)))
    assert [seen.change(first) for _ in range(4)] == [
        {"reduction": 1}, {"reduction": 2}, {"ignore_index": 1}, {"reduction": 1},
    ]  # fmt: skip
    assert first.with_arguments({"ignore_index": 1}).arguments["ignore_index"] == 1


def test_a_flag_and_a_number_that_callers_may_leave_out_take_values_that_no_call_has() -> None:
    isin = torch.ops.aten.isin.Tensor_Tensor
    given = {"elements": torch.arange(4), "test_elements": torch.arange(2)}
    plain = OpCall(isin, {**given, "assume_unique": False, "invert": False})
    seen = ObservedValues.of((plain,))
    assert [seen.change(plain) for _ in range(2)] == [{"assume_unique": True}, {"invert": True}]
    upper = OpCall(torch.ops.aten.triu.default, {"self": torch.rand(3, 3), "diagonal": 0})
    assert ObservedValues.of((upper,)).values == {("triu", "diagonal"): (0, 1, 2, -1)}


def test_every_value_is_listed_of_each_argument_alone() -> None:
    isin = torch.ops.aten.isin.Tensor_Tensor
    given = {"elements": torch.arange(4), "test_elements": torch.arange(2)}
    plain = OpCall(isin, {**given, "assume_unique": False, "invert": False})
    assert list(ObservedValues.of(()).list_changes(plain)) == [{"assume_unique": True}, {"invert": True}]
    assert list(ObservedValues.of(()).list_changes(plain, flags_alone=True)) == [
        {"assume_unique": True},
        {"invert": True},
    ]
    sizes = [call(0, each) for each in range(9)]
    assert list(ObservedValues.of(sizes).list_changes(sizes[0])) == [{"reduction": 1}, {"reduction": 2}]
    assert list(ObservedValues.of(sizes).list_changes(sizes[0], flags_alone=True)) == []


def test_a_flag_that_ends_the_process_is_not_tried() -> None:
    normalize = torch.ops.aten._native_batch_norm_legit.no_stats
    given = {"input": torch.rand(2, 3, 4), "weight": torch.rand(3), "bias": torch.rand(3)}
    call = OpCall(normalize, {**given, "training": True, "momentum": 0.1, "eps": 1e-5})
    assert ObservedValues.of((call,)).change(call) == {}


def test_another_value_comes_where_the_cpu_refuses_one() -> None:
    softmax = torch.ops.aten._softmax.default
    square = OpCall(softmax, {"self": torch.rand(3, 3), "dim": 1, "half_to_float": False})
    other = OpCall(softmax, {**square.arguments, "dim": 0})
    seen = ObservedValues.of((square, other))
    assert [seen.change(square) for _ in range(3)] == [{"dim": 0}] * 3


def test_a_whole_number_of_one_value_has_others_besides() -> None:
    backward = torch.ops.aten.embedding_dense_backward.default
    given = {"grad_output": torch.rand(4, 2), "indices": torch.tensor([0, 3, 1, 1]), "scale_grad_by_freq": False}
    calls = [OpCall(backward, {**given, "num_weights": each, "padding_idx": -1}) for each in (4, 5, 6, 7, 8)]
    seen = ObservedValues.of(calls)
    assert ("embedding_dense_backward", "num_weights") not in seen.values  # sizes
    assert [seen.change(calls[0]) for _ in range(3)] == [
        {"padding_idx": 0}, {"padding_idx": 1}, {"padding_idx": 2},
    ]  # fmt: skip


def test_an_argument_of_many_values_is_no_choice() -> None:
    assert ObservedValues.of([call(0, each) for each in range(9)]).values == {
        ("nll_loss_forward", "reduction"): (0, 1, 2)
    }


def test_what_the_cpu_refuses_is_not_tried() -> None:
    softmax = torch.ops.aten._softmax.default
    flat = OpCall(softmax, {"self": torch.rand(3), "dim": 0, "half_to_float": False})
    square = OpCall(softmax, {"self": torch.rand(3, 3), "dim": 1, "half_to_float": False})
    seen = ObservedValues.of((flat, square))
    assert seen.change(flat) == {} and seen.change(square) == {"dim": 0}


def test_a_scalar_of_one_value_has_others_besides() -> None:
    fill = torch.ops.aten.fill.Scalar
    given = OpCall(fill, {"self": torch.rand(3), "value": True})
    seen = ObservedValues.of((given,))
    assert [seen.change(given) for _ in range(3)] == [{"value": 2}, {"value": 3}, {"value": 5}]
    two = ObservedValues.of((given, given.with_arguments({"value": 0.5})))
    assert two.values == {("fill.Scalar", "value"): (True, 0.5)}


def test_numbers_are_tried_anew_for_other_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What memory the CPU corrupts depends on sizes: `_fft_c2r` has a result for each number."""
    asked: list[int] = []

    def survive(runs: Sequence[object]) -> list[bool]:
        asked.append(len(runs))
        return [True for _ in runs]

    monkeypatch.setattr(varied_calls, "survives_each", survive)
    fixed = {"dim": [0], "forward": True}
    calls = [
        OpCall(torch.ops.aten._fft_c2c.default, {**fixed, "self": torch.zeros(*shape), "normalization": number})
        for shape, number in (((2, 3), 0), ((2, 3), 1), ((4, 3), 0))
    ]
    seen = ObservedValues.of(calls)
    for made_of_zeros in calls:
        list(seen.list_changes(made_of_zeros))
    assert asked == [2, 1, 1]  # the number of another call, and the flag; of other sizes, the number alone
