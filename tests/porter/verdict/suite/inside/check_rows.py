"""Which operators compute each row alone, and what a child process that goes over all of them comes to."""

from __future__ import annotations

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from aten_overlay.device.apart import limit_memory, run_apart
from porter.verdict.suite.large import find_rows

SAMPLE = torch.linspace(-2, 2, 12).view(3, 4)


def named(name: str) -> OpInfo:
    return next(op for op in op_db if op.name == name)


def test_elementwise_operators_compute_rows_alone() -> None:
    want = find_rows(named("exp"), SampleInput(SAMPLE))
    assert want is not None and torch.equal(want, SAMPLE.exp())


def test_a_reduction_over_rows_does_not() -> None:
    assert find_rows(named("softmax"), SampleInput(SAMPLE, args=(0,))) is None
    assert find_rows(named("softmax"), SampleInput(SAMPLE, args=(1,))) is not None


def test_shapes_without_rows_are_left() -> None:
    assert find_rows(named("exp"), SampleInput(torch.tensor(1.0))) is None
    assert find_rows(named("exp"), SampleInput(torch.empty(0, 2))) is None


def test_what_a_child_says_is_returned() -> None:
    assert run_apart(lambda: "right") == "right"


def test_a_child_that_fails_or_hangs_says_nothing() -> None:
    assert run_apart(lambda: str(1 // 0)) == ""
    assert run_apart(lambda: "x" * endless(), seconds=0.2) == ""


def test_a_child_that_takes_memory_is_ended() -> None:
    def take() -> str:
        limit_memory(1 << 26)
        kept: list[bytes] = []
        while len(kept) < 1 << 10:
            kept.append(bytes(1 << 22) + b"1")
        return "all of it"

    assert run_apart(take) == ""


def endless() -> int:
    while True:
        pass
