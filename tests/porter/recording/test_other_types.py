"""Other integers that calls take as they take 64-bit ones."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from porter.core.dtypes import CHAR, INT, SHORT, UCHAR, DType
from porter.recording.calls import OpCall
from porter.recording.conversions import find_other_types
from porter.recording.runs import RecordedRun

aten = torch.ops.aten


def run(overload: Any, **arguments: Any) -> RecordedRun:
    call = OpCall(overload, arguments)
    given = {name: tensor.clone() for name, tensor in call.tensors().items()}
    result = call.run()
    return RecordedRun(call, given, (), result if isinstance(result, tuple) else (result,), False)


def loss(target: list[int]) -> RecordedRun:
    given = {"self": torch.rand(len(target), 300), "target": torch.tensor(target), "weight": None}
    return run(aten.nll_loss_forward.default, **given, reduction=1, ignore_index=-100)


@pytest.mark.parametrize(
    ("ran", "name", "others"),
    [
        (loss([0, 2, 1]), "target", (UCHAR,)),
        (run(aten.index_select.default, self=torch.rand(3, 4), dim=0, index=torch.tensor([2, 0])), "index", (INT,)),
        (run(aten.add.Tensor, self=torch.rand(3), other=torch.tensor([1, 2, 3]), alpha=1), "other",
         (INT, SHORT, UCHAR, CHAR)),
        (run(aten.add.Tensor, self=torch.tensor([True]), other=torch.tensor([1]), alpha=1), "other", ()),
        (run(aten.add_.Tensor, self=torch.rand(3), other=torch.tensor([1, 2, 3]), alpha=1), "other",
         (INT, SHORT, UCHAR, CHAR)),
    ],
    ids=["refused", "two", "any", "results of another type", "in place"],
)  # fmt: skip
def test_types_that_compute_the_same(ran: RecordedRun, name: str, others: tuple[DType, ...]) -> None:
    assert find_other_types(name, [ran]) == others


def test_a_type_that_has_not_the_elements_of_any_call_is_not_taken() -> None:
    assert find_other_types("target", [loss([0, 299])]) == ()
    assert find_other_types("target", [loss([0, 299]), loss([5])]) == (UCHAR,)


def test_tensors_that_calls_lack_have_no_other_types() -> None:
    assert find_other_types("weight", [loss([1])]) == ()
