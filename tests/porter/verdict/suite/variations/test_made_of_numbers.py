"""Faults of what makes tensors of numbers alone: counts in 16 bits, fractions of integers, and checks of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from porter.verdict.suite.compare import loses_more_than_fraction
from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.made_of_numbers import COUNTED, pick_samples
from porter.verdict.suite.variations.refused_arguments import list_refused
from tests.porter.verdict.suite.variations.shown import find_op, find_shown, is_shown_as_given


def read_range(numbers: tuple[Any, ...], named: dict[str, Any]) -> tuple[float, float]:
    """The start and the step of a range."""
    names = ("end",) if len(numbers) == 1 and "end" not in named else ("start", "end", "step")
    arguments = {"start": 0, "step": 1, **dict(zip(names, numbers, strict=False)), **named}
    return arguments["start"], arguments["step"]


def count_in_type(*numbers: Any, **named: Any) -> torch.Tensor:
    """A range that counts in the type of its result."""
    result = torch.arange(*numbers, **named)
    start, step = read_range(numbers, named)
    return (torch.arange(result.numel()).to(result).float() * step + start).to(result)


def keep_fraction(*numbers: Any, **named: Any) -> torch.Tensor:
    """A range of integers whose step is a fraction."""
    result = torch.arange(*numbers, **named)
    start, step = read_range(numbers, named)
    return (torch.arange(result.numel()).double() * step + int(start)).to(result)


@pytest.mark.parametrize(
    ("dtype", "wrong"),
    [(torch.float16, count_in_type), (torch.bfloat16, count_in_type), (torch.int64, keep_fraction)],
)
def test_a_range_of_numbers(dtype: torch.dtype, wrong: Callable[..., Any]) -> None:
    op = find_op("arange")
    assert not is_shown_as_given(op, wrong, dtype) and find_shown(COUNTED, op, wrong, dtype)


def test_integers_that_are_rounded_are_not_those_of_truncated_numbers() -> None:
    exact = torch.linspace(-2, 2112, 50, dtype=torch.float64)
    want = torch.linspace(-2, 2112, 50, dtype=torch.int64)
    assert loses_more_than_fraction(exact.round().long(), want, exact)
    assert not loses_more_than_fraction((exact + 1e-4).trunc().long(), want, exact)


def test_an_end_on_the_other_side_of_the_start_is_refused() -> None:
    op = find_op("arange")
    labels = [label for label, _ in list_refused(OpInfos(Context(bases=("arange",))), op, torch.float32)]
    assert any("inconsistent with step sign" in label for label in labels)


def test_what_takes_no_tensor_has_samples_of_numbers_where_others_have_those_of_tensors() -> None:
    """A range is asked for with indices of 64 bits too."""
    for name, kind in (("arange", (int, float)), ("cumsum", torch.Tensor)):
        samples = pick_samples(OpInfos(Context(bases=(name,))), find_op(name), torch.float32)
        assert samples and all(isinstance(sample.input, kind) for sample in samples)
