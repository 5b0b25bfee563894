"""One child answers for many calls as a child of each would, and never where an earlier call may have a say."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite import arguments, cpu_memory, kept_outcomes, shared_child
from porter.verdict.suite.arguments import keep_computed, keep_survived
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.gradients import differentiate
from porter.verdict.suite.kept_outcomes import on_cpu

KNOWN: dict[str, OpInfo] = {op.full_name: copy.deepcopy(op) for op in op_db}
CUMSUM = KNOWN["cumsum"]
ROWS = SampleInput(torch.arange(12.0).view(3, 4).t(), args=(0,))


@on_cpu
def end_if_negative(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.sum() < 0:
        os._exit(0)
    return tensor + 1


@on_cpu
def tell_place(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    if tensor.untyped_storage().data_ptr() != other.untyped_storage().data_ptr():
        raise ValueError("two memories")
    return torch.tensor([*tensor.stride(), tensor.storage_offset(), *other.stride(), other.storage_offset()])


@pytest.fixture(autouse=True)
def no_child(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(shared_child, "_child", None)
    yield
    if shared_child._child is not None:
        shared_child._child.end()


def try_calls(call: Callable[..., Any], *samples: SampleInput) -> list[int] | None:
    outcomes = shared_child.try_calls(call, samples, arguments._run)
    return None if outcomes is None else list(outcomes)


@pytest.mark.parametrize(
    "name", ["cumsum", "sum", "gather", "cat", "nn_functional_conv2d", "masked_select", "_unique2"]
)
@pytest.mark.parametrize("wrap", [lambda op: op, stay_inside, lambda op: partial(differentiate, op)])
def test_it_answers_as_a_child_of_the_call_does(name: str, wrap: Callable[[OpInfo], Any]) -> None:
    op = KNOWN.get(name) or KNOWN["unique"]
    samples = list(op.sample_inputs("cpu", torch.float32))[:8]
    refused = [SampleInput(each.input, args=(*each.args, "no argument"), kwargs=each.kwargs) for each in samples[:1]]
    outcomes = try_calls(wrap(op), *samples, *refused)
    assert outcomes == list(arguments._run_in_child(wrap(op), [*samples, *refused], is_shared=False))
    assert outcomes is not None and outcomes[-1] == arguments._REFUSED and arguments._COMPUTED in outcomes


def test_the_same_child_answers_again() -> None:
    try_calls(CUMSUM, ROWS)
    child = shared_child._child
    assert try_calls(CUMSUM, ROWS, SampleInput(ROWS.input, args=(2,))) == [arguments._COMPUTED, arguments._REFUSED]
    assert child is not None and shared_child._child is child


def test_nobody_answers_for_a_call_that_ends_it_and_the_next_child_does() -> None:
    good, bad = SampleInput(torch.ones(2)), SampleInput(-torch.ones(2))
    assert try_calls(end_if_negative, good, bad) is None
    assert try_calls(end_if_negative, good) == [arguments._COMPUTED]
    varied = [(str(at), sample) for at, sample in enumerate((good, bad, good, bad, good))]
    assert [label for label, _ in keep_survived(end_if_negative, varied)] == ["0", "2", "4"]


def test_nobody_answers_where_memory_is_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_memory, "_watch", cpu_memory._Watch())
    cpu_memory.install(lambda filling: None, lambda: True)
    assert try_calls(CUMSUM, ROWS) is None


def test_a_child_from_before_memory_was_watched_is_asked_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_memory, "_watch", cpu_memory._Watch())
    try_calls(CUMSUM, ROWS)
    before = shared_child._child
    cpu_memory.install(lambda filling: None, lambda: False)
    assert try_calls(CUMSUM, ROWS) == [arguments._COMPUTED] and shared_child._child is not before


def test_a_call_of_a_test_or_with_a_function_is_not_sent() -> None:
    other = copy.copy(CUMSUM)
    other.op = lambda tensor, dim: tensor.cumsum(dim)
    assert try_calls(other, ROWS) is None and try_calls(torch.cumsum, ROWS) is None
    assert try_calls(CUMSUM, SampleInput(ROWS.input, args=(lambda: 0,))) is None
    assert shared_child._child is None
    assert len(list(keep_computed(other, [("", ROWS)]))) == 1


def test_tensors_share_memory_there_as_they_do_here() -> None:
    memory = torch.zeros(40)
    sample = SampleInput(memory.as_strided((3, 2), (1, 9), 4), args=(memory[7:9],))
    call, (read,), _ = shared_child._unpack(shared_child._pack(tell_place, [sample]) or b"")
    assert call(read.input, *read.args).tolist() == [1, 9, 4, 1, 7]
    assert call(read.input, *read.args).tolist() == tell_place(sample.input, *sample.args).tolist()


@pytest.mark.parametrize(
    "value",
    [
        torch.randn(3, dtype=torch.complex64).conj(),
        torch.randn(2, dtype=torch.complex64).imag._neg_view(),
        torch.randn(4, 0, 2),
        torch.randn(3, requires_grad=True),
        torch.tensor(float("nan"), dtype=torch.bfloat16),
        torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last),
    ],
)
def test_a_tensor_arrives_as_it_is(value: torch.Tensor) -> None:
    _, (read,), _ = shared_child._unpack(
        shared_child._pack(CUMSUM, [SampleInput(value, kwargs={"other": value})]) or b""
    )
    for got in (read.input, read.kwargs["other"]):
        assert (got.is_conj(), got.is_neg(), got.requires_grad) == (
            value.is_conj(),
            value.is_neg(),
            value.requires_grad,
        )
        assert got.dtype is value.dtype and got.stride() == value.stride() and torch.equal(got.isnan(), value.isnan())
        assert torch.allclose(got, value, equal_nan=True)


@pytest.mark.parametrize("shape", [(0,), (3,)])
def test_memory_can_be_resized_after_it_was_sent_and_where_it_arrived(shape: tuple[int, ...]) -> None:
    """What NumPy is shown cannot: a call that resizes its `out=` was refused then, and its kernel not launched."""
    out = torch.ones(shape)
    _, (read,), _ = shared_child._unpack(shared_child._pack(CUMSUM, [SampleInput(out)]) or b"")
    assert list(kept_outcomes._describe(out)) == list(kept_outcomes._describe(read.input))
    for tensor in (out, read.input):
        assert tensor.resize_(50).numel() == 50


def test_a_call_runs_in_the_state_that_it_is_tried_in() -> None:
    state = kept_outcomes.State(False, True, True, torch.float64)
    before = kept_outcomes.State.get()
    try:
        state.set()
        packed = shared_child._pack(CUMSUM, [ROWS])
    finally:
        before.set()
    assert shared_child._unpack(packed or b"")[2] == state != before


def test_who_is_interrupted_while_it_waits_gets_no_later_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    try_calls(CUMSUM, ROWS)

    def interrupt(*args: Any) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(shared_child, "_read", interrupt)
        try_calls(CUMSUM, ROWS)
    assert shared_child._child is None
    assert try_calls(CUMSUM, SampleInput(ROWS.input, args=(2,))) == [arguments._REFUSED]
