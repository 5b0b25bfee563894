"""Orders of rows are found from what calls return, by results alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from porter.core.dtypes import FLOAT
from porter.metal.forms.sort import Kept, Sort
from porter.recording.calls import OpCall
from porter.recording.forms.order import compute_sort, find_sort
from porter.recording.runs import RecordedRun

SHAPES = ((5, 4), (3, 6, 4), (2, 3, 4, 5), (7,), (4, 5, 3))
aten = torch.ops.aten
SORTED = Sort("self", Kept.ALL, "dim", "descending", dtypes=(FLOAT,))


def run(overload: Any, arguments: dict[str, Any]) -> RecordedRun:
    call = OpCall(overload, arguments)
    result = call.run()
    return RecordedRun(call, call.tensors(), (), result if isinstance(result, tuple) else (result,), False)


def calls(**others: Any) -> Iterator[dict[str, Any]]:
    for shape in SHAPES:
        yield {"self": torch.randn(shape), "dim": len(shape) // 2, **others}


def sorts() -> list[dict[str, Any]]:
    return [each for flag in (False, True) for each in calls(descending=flag)]


def topks() -> list[dict[str, Any]]:
    return [each for flag in (False, True) for each in calls(k=2, largest=flag, sorted=True)]


@pytest.mark.parametrize(
    ("overload", "arguments", "wanted"),
    [
        (aten.sort.default, sorts(), SORTED),
        (aten.sort.stable, [{"stable": True, **each} for each in sorts()], SORTED),
        (aten.topk.default, topks(), Sort("self", Kept.FIRST, "dim", "largest", "k", dtypes=(FLOAT,))),
        (aten.median.dim, list(calls(keepdim=False)), Sort("self", Kept.MEDIAN, "dim", dtypes=(FLOAT,))),
        (aten.median.default, [{"self": each["self"]} for each in calls()],
         Sort("self", Kept.MEDIAN, places=False, dtypes=(FLOAT,))),
    ],
    ids=["sort", "sort.stable", "topk", "median.dim", "median"],
)  # fmt: skip
def test_found(overload: Any, arguments: list[dict[str, Any]], wanted: Sort) -> None:
    assert find_sort([run(overload, each) for each in arguments]) == wanted


def test_one_result_that_differs_is_another_order() -> None:
    runs = [run(aten.sort.default, each) for each in sorts()]
    runs[-1].results[1][0] += 1
    assert find_sort(runs) is None


def test_few_calls_tell_nothing() -> None:
    assert find_sort([run(aten.sort.default, each) for each in sorts()[:2]]) is None


def test_other_results_have_no_order() -> None:
    assert find_sort([run(aten.cummax.default, each) for each in calls()]) is None
    assert find_sort([run(aten.aminmax.default, {**each, "keepdim": True}) for each in calls()]) is None


def test_the_median_is_the_first_nan() -> None:
    source = torch.tensor([[3.0, float("nan"), 1.0, float("nan")], [4.0, 1.0, 3.0, 2.0]])
    values, places = compute_sort(Sort("self", Kept.MEDIAN, "dim"), source, {"dim": 1})
    wanted = source.median(1, keepdim=True)
    assert torch.equal(values.nan_to_num(9), wanted.values.nan_to_num(9)) and torch.equal(places, wanted.indices)


def test_what_is_printed() -> None:
    found = Sort("self", Kept.FIRST, "dim", "largest", "k")
    assert list(found.describe()) == [
        "output = the first k elements of self sorted along dim, descending by largest",
        "indices = where these were in their rows",
    ]
    plain = Sort("self", Kept.MEDIAN, places=False)
    assert list(plain.describe()) == [
        "output = the lower median, or the first NaN of self sorted as one row, ascending"
    ]
