"""Faults in the height that are none in the width: OpInfo's lists have one order."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.lists import SLOPES_BY_TURNED_LISTS, TURNED_LISTS
from tests.porter.verdict.suite.variations.shown import Call, find_op, is_shown, is_shown_as_given, shows_slopes


def forget_dilation(call: Call) -> Call:
    """An operator that has no dilation of rows where its windows begin before the first row."""

    def compute(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        dilation, padding = named.get("dilation", 1), named.get("padding", 0)
        if isinstance(dilation, tuple) and padding not in (0, (0, 0)):
            named["dilation"] = (1, *dilation[1:])
        return call(x, *args, **named)

    return compute


def forget_height(call: Call) -> Call:
    """An operator whose windows are as high as wide, unless they are wider."""

    def compute(x: torch.Tensor, size: Any, *args: Any, **named: Any) -> Any:
        is_high = isinstance(size, tuple) and size[0] > size[1]
        return call(x, (size[1], size[1]) if is_high else size, *args, **named)

    return compute


def step_once(call: Call) -> Call:
    """Pooling that goes one step along a row from the first place of a window to be inside, however many are outside."""

    def compute(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        padding, dilation = (named.get(name, least) for name, least in (("padding", 0), ("dilation", 1)))
        last = [value if isinstance(value, int) else value[-1] for value in (padding, dilation)]
        result = call(x, *args, **named)
        return torch.utils._pytree.tree_map(torch.zeros_like, result) if last[0] > last[1] else result

    return compute


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("nn.functional.max_pool2d", step_once),
        ("nn.functional.max_pool2d", forget_dilation),
        ("nn.functional.unfold", forget_height),
    ],
)
def test_lists_are_turned(name: str, change: Any) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, change(op))
    assert is_shown(TURNED_LISTS, op, change(op))


def test_gradients_have_lists_that_are_turned() -> None:
    op = find_op("nn.functional.max_pool2d")
    opinfos = OpInfos(Context(bases=("max_pool2d_with_indices_backward",), through_backward=(op.full_name,)))
    turned = list(SLOPES_BY_TURNED_LISTS.list_samples(opinfos, op, torch.float32))
    assert any(shows_slopes(op, forget_dilation(op), sample) for _, sample in turned)
