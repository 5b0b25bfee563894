"""Coordinates of nonzero elements are found from what calls return."""

from __future__ import annotations

import torch

from porter.core.dtypes import FLOAT
from porter.metal.forms.unique import Nonzero
from porter.recording.calls import OpCall
from porter.recording.forms.order import find_nonzero
from porter.recording.probe_calls import _kind
from porter.recording.runs import RecordedRun

SHAPES = ((5, 4), (3, 6, 4), (2, 3, 4, 5), (7,), (4, 5, 3))


def runs() -> list[RecordedRun]:
    calls = [OpCall(torch.ops.aten.nonzero.default, {"self": torch.randn(shape).relu()}) for shape in SHAPES]
    return [RecordedRun(call, call.tensors(), (), (call.run(),), False) for call in calls]


def test_found() -> None:
    assert find_nonzero(runs()) == Nonzero("self", (FLOAT,))


def test_one_call_that_differs_or_few_calls_tell_nothing() -> None:
    assert find_nonzero(runs()[:2]) is None
    changed = runs()
    changed[-1].results[0][0] += 1
    assert find_nonzero(changed) is None


def test_samples_of_zeros_alone_do_not_stand_for_others() -> None:
    assert _kind(torch.zeros(3)) != _kind(torch.tensor([0.0, 1.0])) == _kind(torch.ones(2))


def test_what_is_printed() -> None:
    [line] = Nonzero("self").describe()
    assert line == "output[k, ...] = the coordinates of the k-th element of self that is not zero"
