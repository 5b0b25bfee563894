"""Calls of which nothing is known."""

from __future__ import annotations

import pytest
import torch

from porter.core.dtypes import FLOAT
from porter.loops.host_values import Arguments, TensorValue
from porter.recording.calls import OpCall
from porter.recording.running import UnexplainedCalls, run_all


def call(reduction: int, size: int = 3) -> Arguments:
    return Arguments({"self": TensorValue((size,), FLOAT)}, {"reduction": reduction})


def test_of_calls_that_differ_in_sizes_one_is_kept() -> None:
    lost = UnexplainedCalls()
    lost.add_all("loss", (call(0), call(0, 4), call(1)), "no program")
    assert [(each.arguments, each.why) for each in lost.list_of("loss")] == [
        (call(0), "no program"), (call(1), "no program"),
    ]  # fmt: skip
    assert lost.list_of("other") == ()


def test_a_call_whose_run_raises_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("porter.recording.running.run_call", OpCall.run)
    lost = UnexplainedCalls()
    wrong = OpCall(torch.ops.aten.mm.default, {"self": torch.rand(2, 3), "mat2": torch.rand(2, 3)})
    assert list(run_all((wrong,), 1 << 62, lost)) == []
    [found] = lost.list_of("mm")
    assert found.why.startswith("RuntimeError: mat1 and mat2 shapes cannot be multiplied")
    assert found.arguments.tensors["self"] == TensorValue((2, 3), FLOAT)
