"""Faults that more indices than 16 bits count show, into few elements: OpInfo's and long inputs do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.variations.more_indices import (
    COUNT,
    MORE_INDICES,
    SHORT,
    SLOPES_BY_MORE_INDICES,
    lengthen_index,
)
from porter.verdict.suite.variations.wide_sizes import WIDE_SIZES
from tests.porter.verdict.suite.variations.shown import find_op, is_shown, is_shown_as_given, list_samples

Call = Callable[..., Any]


def wrap(tensor: torch.Tensor) -> torch.Tensor:
    """A tensor whose positions along its longest dimension are numbers of 16 bits."""
    if not tensor.numel():
        return tensor
    dim = max(range(tensor.ndim), key=lambda at: tensor.shape[at])
    return tensor.index_select(dim, torch.arange(tensor.shape[dim]) % SHORT)


def wrap_index(call: Call, at: int) -> Call:
    """An indexing function that takes the index of another place past 16 bits; `at` is that of its argument."""

    def wrong(*args: Any, **rest: Any) -> Any:
        if not isinstance(args[at], torch.Tensor) or not args[at].ndim:
            return call(*args, **rest)
        return call(*args[:at], wrap(args[at]), *args[at + 1 :], **rest)

    return wrong


def scatter(x: torch.Tensor, dim: int, index: torch.Tensor, *src: Any, **rest: Any) -> torch.Tensor:
    """Only as many indices as 16 bits count."""
    short = index.narrow(dim, 0, min(index.shape[dim], SHORT)) if index.ndim else index
    return torch.scatter(x, dim, short, *src, **rest)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("gather", wrap_index(torch.gather, 2)),
        ("take_along_dim", wrap_index(torch.take_along_dim, 1)),
        ("scatter", scatter),
        ("index_add", wrap_index(torch.index_add, 2)),
    ],
)
def test_the_place_of_an_index_is_no_number_of_16_bits(name: str, wrong: Call) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, wrong)
    assert is_shown(MORE_INDICES, op, wrong)


def test_long_inputs_do_not_show_the_place_of_an_index() -> None:
    assert not is_shown(WIDE_SIZES, find_op("gather"), wrap_index(torch.gather, 2))


def test_gradients_go_over_as_many() -> None:
    samples = list_samples(SLOPES_BY_MORE_INDICES, find_op("nn.functional.embedding"))
    assert samples and all(COUNT in sample.args[0].shape or COUNT in sample.input.shape for _, sample in samples)


@pytest.mark.parametrize(("name", "are_equal"), [("scatter", True), ("scatter_add", False)])
def test_elements_that_go_to_one_place_differ_where_no_order_decides(name: str, are_equal: bool) -> None:
    sample = SampleInput(torch.zeros(3), args=(0, torch.tensor([0, 2]), torch.tensor([0.25, -1.5])))
    varied = lengthen_index(find_op(name), sample, 1)
    assert varied is not None
    index, source = varied[1].args[1:]
    assert len(source) == COUNT and (len(source.unique()) == 1) is are_equal
    assert int(index[:SHORT].max()) == 1 and int(index.max()) == 2
