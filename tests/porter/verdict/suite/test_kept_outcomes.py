"""What came of calls on the CPU is kept by content, and of nothing that a fork or a test has a say in."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite import arguments, cpu_memory, kept_outcomes
from porter.verdict.suite.arguments import keep_computed
from porter.verdict.suite.cuts import stay_inside
from porter.verdict.suite.gradients import differentiate

CUMSUM: OpInfo = copy.deepcopy(next(op for op in op_db if op.full_name == "cumsum"))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """How many calls each child process was asked about, in a process whose memory something watches."""
    counts: list[int] = []
    run = arguments._run_in_child

    def count(op: Callable[..., Any], varied: Sequence[SampleInput], *, is_shared: bool) -> bytes:
        counts.append(len(varied))
        return run(op, varied, is_shared=is_shared)

    monkeypatch.setattr(arguments, "_run_in_child", count)
    monkeypatch.setattr(kept_outcomes, "cpu_memory", cpu_memory)
    monkeypatch.setattr(cpu_memory, "_watch", cpu_memory._Watch())
    monkeypatch.setattr(kept_outcomes, "_find_file", lambda name: tmp_path / f"{name}.json")
    monkeypatch.setattr(kept_outcomes, "_kept", {})
    monkeypatch.setattr(kept_outcomes, "_new", set())
    cpu_memory.install(lambda filling: None, lambda: False)
    return counts


def _ask(op: Callable[..., Any], *dims: int, value: float = 1.0) -> list[str]:
    sample = torch.full((2, 3), value)
    return [label for label, _ in keep_computed(op, [(str(dim), SampleInput(sample, args=(dim,))) for dim in dims])]


def _forget() -> None:
    kept_outcomes.store()
    kept_outcomes._kept.clear()


@pytest.mark.parametrize(
    "op", [CUMSUM, stay_inside(CUMSUM), partial(differentiate, CUMSUM)], ids=("plain", "inside", "slopes")
)
def test_another_process_asks_no_child_about_the_same_calls(op: Callable[..., Any], asked: list[int]) -> None:
    assert _ask(op, 0, 5, 1) == ["0", "1"]
    _forget()
    assert _ask(op, 0, 5, 1) == ["0", "1"]
    assert asked == [3]


def test_another_element_another_argument_or_another_call_is_asked_about(asked: list[int]) -> None:
    _ask(CUMSUM, 0)
    _ask(CUMSUM, 0, value=2.0)
    _ask(CUMSUM, 1)
    _ask(stay_inside(CUMSUM), 0)
    with torch.no_grad():
        _ask(CUMSUM, 0)
    assert asked == [1] * 5


def test_what_a_test_computes_is_asked_about_each_time(asked: list[int]) -> None:
    other = copy.copy(CUMSUM)
    other.op = lambda tensor, dim: tensor.cumsum(dim)
    for call in (other, stay_inside(other), torch.cumsum, partial(CUMSUM, dtype=torch.int64)):
        _ask(call, 0)
        _ask(call, 0)
    assert asked == [1] * 8


def test_tensors_of_a_device_are_asked_about_each_time(asked: list[int]) -> None:
    for _ in range(2):
        list(keep_computed(CUMSUM, [("", SampleInput(torch.ones(2, device="meta"), args=(0,)))]))
    assert asked == [1, 1]


def test_a_process_that_ended_early_is_asked_again(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(arguments, "_run", lambda op, sample: os._exit(1))
        assert _ask(CUMSUM, 0) == []
    _forget()
    assert _ask(CUMSUM, 0) == ["0"]
    assert asked == [1, 1]


def test_without_a_watch_over_memory_nothing_is_kept(asked: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_memory, "_watch", cpu_memory._Watch())
    _ask(CUMSUM, 0)
    _ask(CUMSUM, 0)
    assert asked == [1, 1]
