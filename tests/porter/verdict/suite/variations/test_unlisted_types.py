"""Samples in types that OpInfo does not list: weights that are real numbers beside integers."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.result_types import REAL_OTHERS, list_real_others
from tests.porter.verdict.suite.variations.shown import find_op, is_shown, is_shown_as_given, list_samples


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_real_weights_of_integers_are_seen(dtype: torch.dtype) -> None:
    op = find_op("bincount")

    def wrong(x: torch.Tensor, weights: torch.Tensor | None = None, **named: Any) -> torch.Tensor:
        whole = None if weights is None or weights.dtype == x.dtype else weights.long().to(weights.dtype)
        return torch.bincount(x, weights=weights if whole is None else whole + 1, **named)

    assert not is_shown_as_given(op, wrong, dtype)
    assert is_shown(REAL_OTHERS, op, wrong, dtype)


def test_real_weights_are_not_whole() -> None:
    op = find_op("bincount")

    def wrong(x: torch.Tensor, weights: torch.Tensor | None = None, **named: Any) -> torch.Tensor:
        return torch.bincount(
            x, weights=weights if weights is None else weights.float().round().to(weights.dtype), **named
        )

    assert not is_shown_as_given(op, wrong, torch.int64)
    assert is_shown(REAL_OTHERS, op, wrong, torch.int64)


@pytest.mark.parametrize(("name", "dtype"), [("gather", torch.int64), ("sum", torch.int32), ("bincount", torch.bool)])
def test_operators_without_such_weights_have_none(name: str, dtype: torch.dtype) -> None:
    assert not list_samples(REAL_OTHERS, find_op(name), dtype)


def test_one_sample_of_each_argument_has_real_numbers() -> None:
    op = find_op("bincount")
    varied = list(list_real_others(OpInfos(Context(bases=("bincount",))), op, torch.int64))
    assert [label for label, _ in varied] == ["weights in float32"]
    weights = varied[0][1].kwargs["weights"]
    assert bool((weights == weights.round()).any()) and bool((weights != weights.round()).any())
