"""Concatenations are found from what calls return, by results alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from porter.core.dtypes import FLOAT
from porter.metal.forms.concatenation import Concatenation
from porter.recording.calls import OpCall
from porter.recording.forms.order import find_concatenation
from porter.recording.runs import RecordedRun

aten = torch.ops.aten
SHAPES = (
    ((5, 4), (3, 4)),
    ((2, 6), (1, 6), (4, 6)),
    ((7,), (0,), (3,)),
    ((0, 2), (2, 2)),
    ((3, 4, 5),),
    ((0,), (2, 3)),
)
FOUND = Concatenation("tensors", "dim", (FLOAT,))


def run(overload: Any, shapes: Sequence[tuple[int, ...]], dim: int = 0) -> RecordedRun:
    call = OpCall(overload, {"tensors": [torch.randn(each) for each in shapes], "dim": dim})
    return RecordedRun(call, call.tensors(), (), (call.run(),), False)


def calls(overload: Any = aten.cat.default) -> list[RecordedRun]:
    return [run(overload, each) for each in SHAPES]


def test_what_is_found() -> None:
    assert find_concatenation(calls()) == FOUND
    [line] = FOUND.describe()
    assert line == "output = the tensors of tensors, one after the other along dim"


def test_the_last_dimension_and_mixed_types() -> None:
    made = [run(aten.cat.default, [(2, n), (2, 3)], -1) for n in range(1, 7)]
    arguments = {"tensors": [torch.arange(3), torch.randn(2)], "dim": 0}
    call = OpCall(aten.cat.default, arguments)
    mixed = RecordedRun(call, call.tensors(), (), (call.run(),), False)
    assert find_concatenation([*made, mixed]) == FOUND


@pytest.mark.parametrize(
    "change", [lambda t: t + 1, lambda t: t.flip(0), lambda t: torch.cat([t, t[:1]]), lambda t: t[:-1]]
)
def test_one_other_result_is_none(change: Any) -> None:
    first, *others = calls()
    assert find_concatenation([replace(first, results=(change(first.results[0]),)), *others]) is None


def test_other_operators_and_few_calls_are_none() -> None:
    stacked = [run(aten.stack.default, [(n, 3), (n, 3)]) for n in range(2, 9)]
    assert find_concatenation(stacked) is None
    assert find_concatenation(calls()[:2]) is None
