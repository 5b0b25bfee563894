"""Faults of launches whose grid ends at a round number: elements of larger results keep what their memory held."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.lists import LISTS
from porter.verdict.suite.variations.variation import Variation
from porter.verdict.suite.variations.wide_accumulation import RESULTS, SLOPES_OF_WIDE_INPUTS, WIDE_RESULTS
from tests.porter.verdict.suite.variations.shown import find_op, is_shown, is_shown_as_given, shows_slopes

Call = Callable[..., Any]


def end_early(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor whose elements past 2^20 were not written."""
    if not isinstance(tensor, torch.Tensor) or tensor.numel() <= RESULTS:
        return tensor
    flat = tensor.reshape(-1)
    return torch.cat([flat[:RESULTS], torch.full_like(flat[RESULTS:], 77)]).view(tensor.shape)


def end_grid_early(right: Call) -> Call:
    return lambda *args, **named: pytree.tree_map(end_early, right(*args, **named))


def join_early(tensors: Any, *args: Any, **named: Any) -> torch.Tensor:
    return torch.cat([end_early(each) for each in tensors], *args, **named)


@pytest.mark.parametrize(
    ("name", "variation", "wrong"),
    [
        ("cat", LISTS, join_early),
        ("sum", WIDE_RESULTS, end_grid_early(torch.sum)),
        ("gather", WIDE_RESULTS, end_grid_early(torch.gather)),
    ],
)
def test_a_grid_that_ends_early_is_seen(name: str, variation: Variation, wrong: Call) -> None:
    op = find_op(name)
    assert is_shown(variation, op, wrong)
    assert not is_shown_as_given(op, wrong)


class EndedEarly(torch.autograd.Function):
    """What a norm of rows is, with a gradient that a launch has not written whole."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
        return tensor.clone()

    @staticmethod
    def backward(ctx: Any, slopes: torch.Tensor) -> torch.Tensor:
        return end_early(slopes)


def test_a_gradient_that_ends_early_is_seen() -> None:
    op = find_op("nn.functional.batch_norm")

    def wrong(tensor: torch.Tensor, *args: Any, **named: Any) -> torch.Tensor:
        return torch.nn.functional.batch_norm(EndedEarly.apply(tensor), *args, **named)  # type: ignore[no-untyped-call]

    opinfos = OpInfos(Context(bases=("native_batch_norm_backward",), through_backward=(op.full_name,)))
    varied = list(SLOPES_OF_WIDE_INPUTS.list_samples(opinfos, op, torch.float32))
    assert any(shows_slopes(op, wrong, sample) for _, sample in varied)
