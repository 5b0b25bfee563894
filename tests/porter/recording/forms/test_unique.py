"""Distinct values are found from what calls return."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from porter.core.dtypes import FLOAT, LONG
from porter.metal.forms.unique import Unique
from porter.recording.calls import OpCall
from porter.recording.forms.order import compute_unique, find_unique
from porter.recording.runs import RecordedRun

SHAPES = ((5, 4), (3, 6, 4), (2, 3, 4, 5), (7,), (4, 0, 3), (1,))
aten = torch.ops.aten
FLAT = Unique("self", True, "return_inverse", "return_counts", dtypes=(LONG,))
SLICES = Unique("self", False, "return_inverse", "return_counts", "dim", (LONG,))
NAN = float("nan")


def run(overload: Any, arguments: dict[str, Any]) -> RecordedRun:
    call = OpCall(overload, arguments)
    return RecordedRun(call, call.tensors(), (), call.run(), False)


def calls(**others: Any) -> Iterator[dict[str, Any]]:
    for i, shape in enumerate(SHAPES):
        flags = {"return_inverse": bool(i & 1), "return_counts": bool(i & 2)}
        yield {"self": torch.randint(3, shape), **flags, **others}


def consecutive() -> list[dict[str, Any]]:
    along = [{**each, "dim": 1 if 0 in each["self"].shape else 0} for each in calls()]
    return [*along, *calls(dim=None)]


@pytest.mark.parametrize(
    ("overload", "arguments", "wanted"),
    [(aten._unique2.default, list(calls(sorted=True)), FLAT), (aten.unique_consecutive.default, consecutive(), SLICES)],
)
def test_found(overload: Any, arguments: list[dict[str, Any]], wanted: Unique) -> None:
    runs = [run(overload, each) for each in arguments]
    assert find_unique(runs) == wanted
    assert find_unique(runs[:2]) is None
    runs[0].results[0][0] += 1
    assert find_unique(runs) is None


def test_the_types_are_those_of_calls() -> None:
    arguments = [*calls(sorted=False), *({**each, "self": each["self"].float()} for each in calls(sorted=False))]
    found = find_unique([run(aten._unique2.default, each) for each in arguments])
    assert found is not None and set(found.dtypes) == {LONG, FLOAT}


def test_elements_that_all_differ_and_flags_that_are_never_set_tell_nothing() -> None:
    differ = [{**each, "self": torch.arange(each["self"].numel())} for each in calls(dim=None)]
    assert find_unique([run(aten.unique_consecutive.default, each) for each in differ]) is None
    unset = [{**each, "return_counts": False} for each in calls(sorted=True)]
    assert find_unique([run(aten._unique2.default, each) for each in unset]) is None


def test_other_results_are_none() -> None:
    slices = [{"self": torch.rand(3, 4), "dim": 0, "keepdim": True} for _ in range(6)]
    assert find_unique([run(aten.median.dim, each) for each in slices]) is None


@pytest.mark.parametrize("elements", [[NAN, NAN, 1.0, 1.0, -0.0, 0.0, NAN], [2.0], []])
@pytest.mark.parametrize("is_sorted", [True, False])
def test_as_torch_tells_values_apart(elements: list[float], is_sorted: bool) -> None:
    source = torch.tensor(elements)
    found = Unique("self", is_sorted, "inverse", "counts")
    made = compute_unique(found, source, {})
    unique = torch.unique if is_sorted else torch.unique_consecutive
    wanted = unique(source, return_inverse=True, return_counts=True)
    for each, want in zip(made, wanted, strict=True):
        torch.testing.assert_close(each, want, rtol=0, atol=0, equal_nan=True)


def test_what_is_printed() -> None:
    assert list(FLAT.describe()) == [
        "output = the elements of self, sorted, that differ from the one before",
        "inverse = where each is among the distinct ones, if return_inverse",
        "counts = how many there are of each, if return_counts",
    ]
    assert next(SLICES.describe()) == "output = the slices along dim of self that differ from the one before"
