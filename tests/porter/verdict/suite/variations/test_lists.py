"""Faults in what goes over a list of tensors: OpInfo's lists are short, of small tensors of one type."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from porter.verdict.suite.variations.lists import LISTS, LONG
from tests.porter.verdict.suite.variations.shown import find_op, is_shown, is_shown_as_given, list_samples

SHORT = 1 << 16
Tensors = Sequence[torch.Tensor]


def wrap(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor whose positions along each dimension are numbers of 16 bits."""
    for dim, size in enumerate(tensor.shape):
        tensor = tensor.index_select(dim, torch.arange(size) % SHORT) if size > SHORT else tensor
    return tensor


def join_first(tensors: Tensors, *args: Any, **named: Any) -> torch.Tensor:
    """As many as an encoder has buffers for; of the others the first."""
    return torch.cat([each if at < 31 else tensors[0] for at, each in enumerate(tensors)], *args, **named)


def join_bytes(tensors: Tensors, *args: Any, **named: Any) -> torch.Tensor:
    """As many as a byte counts, from the first again."""
    return torch.cat([tensors[at % 256] for at in range(len(tensors))], *args, **named)


def join_as_first(tensors: Tensors, *args: Any, **named: Any) -> torch.Tensor:
    """The type of the first tensor is that of the result."""
    return torch.cat([each.to(tensors[0].dtype) for each in tensors], *args, **named)


def join_by_first(tensors: Tensors, *args: Any, **named: Any) -> torch.Tensor:
    """Reads each tensor as far as the first one has elements along its longest dimension."""
    most = max(tensors[0].shape, default=0)
    return torch.cat([wrap(each) if max(each.shape, default=0) > most >= SHORT else each for each in tensors],
                     *args, **named)  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        lambda tensors, *a, **k: torch.cat([*map(wrap, tensors)], *a, **k),
        join_first,
        join_bytes,
        join_as_first,
        join_by_first,
    ],
)
def test_what_goes_over_a_list_is_seen(wrong: Callable[..., Any]) -> None:
    op = find_op("cat")
    assert is_shown(LISTS, op, wrong)


def test_a_place_in_a_list_of_indices_is_no_number_of_16_bits() -> None:
    op = find_op("index_put")

    def wrong(x: torch.Tensor, indices: Tensors, *rest: Any, **named: Any) -> torch.Tensor:
        return torch.index_put(x, [*map(wrap, indices)], *rest, **named)

    assert not is_shown_as_given(op, wrong)
    assert is_shown(LISTS, op, wrong)


def test_an_operator_of_tensors_alone_has_no_lists() -> None:
    assert not list_samples(LISTS, find_op("cumsum"))
    assert any(f"{LONG} along" in label for label, _ in list_samples(LISTS, find_op("stack")))
