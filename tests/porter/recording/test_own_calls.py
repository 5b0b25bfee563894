"""Which samples of an OpInfo calls are made from."""

from __future__ import annotations

import pytest
from torch.testing._internal.common_methods_invocations import op_db

from porter.core import dtypes
from porter.recording.own_calls import SECONDS, _pick_samples
from porter.recording.size_sets import Template

FLOAT = dtypes.BY_TORCH["float32"]
[LOSS] = [op for op in op_db if op.full_name == "nn.functional.nll_loss"]


@pytest.mark.parametrize(("base", "ranks"), [("nll_loss_backward", {1, 2}), ("nll_loss2d_forward", {4, 5})])
def test_samples_call_the_operator(base: str, ranks: set[int]) -> None:
    picked, seen = _pick_samples(LOSS, base, FLOAT, True, SECONDS)
    assert {Template.of(each).rank for each in picked} <= ranks
    assert any("weight" in each.kwargs for each in picked)
    assert any(name == "ignore_index" for _, name in seen.values)


def test_samples_that_are_not_asked_stay() -> None:
    picked, seen = _pick_samples(LOSS, "nll_loss_backward", FLOAT, True, 0.0)
    assert {Template.of(each).rank for each in picked} >= {4} and not seen.values
