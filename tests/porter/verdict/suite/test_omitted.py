"""Arguments that samples omit, alone and in pairs, and strings at each value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

from porter.verdict.suite.omitted import MOST, list_omitted, list_strings, vary_omitted, vary_strings, vary_tensors
from porter.verdict.suite.variations.flagged_sizes import NUMBERED
from tests.porter.verdict.suite.variations.shown import find_op, is_shown, is_shown_as_given

X = torch.ones(2, 3)


def _find(name: str) -> OpInfo:
    return next(op for op in op_db if op.name == name)


def test_numbers_that_are_none_by_default_are_given_alone_and_in_pairs() -> None:
    labels = [label for label, _ in vary_omitted(_find("nan_to_num"), SampleInput(X))]
    assert labels[:2] == ["with nan=1.25", "with nan=-2.5"]
    assert labels[6:9] == [
        "with nan=1.25, posinf=2.25",
        "with nan=1.25, neginf=3.25",
        "with posinf=2.25, neginf=3.25",
    ]
    assert len(labels) == 12 <= MOST


def test_what_a_sample_gives_is_not_omitted() -> None:
    omitted = list_omitted(_find("nan_to_num"), SampleInput(X, args=(0.5,), kwargs={"neginf": 1.0}))
    assert [argument.name for argument in omitted] == ["posinf"]


def test_arguments_of_another_overload_are_not_mixed_in() -> None:
    omitted = list_omitted(_find("std"), SampleInput(X, kwargs={"dim": (0,), "correction": 1}))
    assert [argument.name for argument in omitted] == ["keepdim"]


def test_an_operator_without_such_arguments_has_none() -> None:
    assert list(vary_omitted(_find("exp"), SampleInput(X))) == []


def test_strings_are_those_of_the_schema_and_of_the_documentation() -> None:
    assert list_strings(_find("nn.functional.gelu"))[:2] == ("none", "tanh")
    assert {"trunc", "floor"} <= set(list_strings(_find("div")))
    assert {"left", "right"} <= set(list_strings(_find("searchsorted")))
    assert list_strings(_find("exp")) == ()


def test_a_string_has_every_other_value() -> None:
    sample = SampleInput(X, kwargs={"approximate": "tanh"})
    assert "with approximate='none'" in [label for label, _ in vary_strings(_find("nn.functional.gelu"), sample)]


def lower_bound_wins(x: torch.Tensor, low: Any = None, high: Any = None) -> torch.Tensor:
    """Bounds in the other order, where both are numbers."""
    if isinstance(low, torch.Tensor) or isinstance(high, torch.Tensor):
        return torch.clamp(x, low, high)
    return x.clamp(max=high).clamp(min=low)


def compares_in_float(x: torch.Tensor, low: Any = None, high: Any = None) -> torch.Tensor:
    """Whole numbers that are compared with others as floats."""
    if isinstance(low, torch.Tensor) or low is None:
        return torch.clamp(x, low, high)
    return torch.where(x.float() < float(low), torch.full_like(x, low), x).clamp(max=high)


def adds_to_numbers_in_float(x: torch.Tensor, other: Any) -> torch.Tensor:
    """The larger one of a tensor and of a number that has passed a float."""
    return torch.fmod(x, other if isinstance(other, torch.Tensor) else int(torch.tensor(other).float()))


@pytest.mark.parametrize(
    ("name", "wrong", "dtype"),
    [
        ("clamp", lower_bound_wins, torch.float32),
        ("clamp", lower_bound_wins, torch.uint8),
        ("clamp", compares_in_float, torch.int64),
        ("fmod", adds_to_numbers_in_float, torch.int64),
    ],
)
def test_a_fault_of_numbers_in_place_of_tensors_is_seen(
    name: str, wrong: Callable[..., torch.Tensor], dtype: torch.dtype
) -> None:
    op = find_op(name)
    assert NUMBERED.dtypes and dtype in NUMBERED.dtypes
    assert not is_shown_as_given(op, wrong, dtype)
    assert is_shown(NUMBERED, op, wrong, dtype)
    assert not is_shown(NUMBERED, op, op.op, dtype)


def test_numbers_take_the_place_of_tensors_of_the_input_s_type_alone() -> None:
    sample = SampleInput(X, args=(X, X > 0), kwargs={"weight": X})
    assert [label for label, _ in vary_tensors(sample)] == [
        "with 0=-0.75, weight=2.5", "with 0=2.5, weight=-0.75", "with 0=-0.75", "with 0=2.5", "with weight=-0.75",
        "with weight=2.5",
    ]  # fmt: skip
    assert list(vary_tensors(SampleInput(X > 0, args=(X > 0,)))) == []
