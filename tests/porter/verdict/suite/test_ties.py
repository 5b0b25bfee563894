"""Positions of equal elements are compared exactly where the CPU keeps their order, else by what they name."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
import torch

from porter.verdict.suite.compare import place_nans, take_positions

NAN = math.nan
ROW = torch.tensor([[5.0, 7.0, 5.0, NAN, 5.0, NAN]])


def at(*positions: int, source: torch.Tensor = ROW) -> tuple[torch.Tensor, torch.Tensor]:
    """The elements of a row at these positions, and the positions."""
    places = torch.tensor([positions])
    return source.take_along_dim(places, 1), places


UNORDERED = at(5, 3, 1, 4)  # of two equal elements the second comes first


@pytest.mark.parametrize("positions", [(3, 5, 1, 0), (5, 3, 1, 2), (5, 3, 1, 4)])
def test_any_of_equal_elements_is_right(positions: tuple[int, ...]) -> None:
    assert take_positions(ROW, at(*positions), UNORDERED)


@pytest.mark.parametrize(
    "positions",
    [(3, 3, 1, 0), (3, 5, 0, 1), (3, 5, 1, 1), (3, 5, 1, 6), (3, 5, 1, -1)],
    ids=["one twice", "other elements", "another element", "too large", "negative"],
)
def test_other_positions_are_not(positions: tuple[int, ...]) -> None:
    assert not take_positions(ROW, (UNORDERED[0], torch.tensor([positions])), UNORDERED)


@pytest.mark.parametrize(
    ("ordered", "other"), [((3, 5, 1, 0), (5, 3, 1, 0)), ((0, 2), (0, 4)), ((0, 2), (2, 0)), ((3,), (5,))]
)
def test_where_the_cpu_keeps_order_positions_are_compared(ordered: tuple[int, ...], other: tuple[int, ...]) -> None:
    assert not take_positions(ROW, at(*other), at(*ordered))
    assert take_positions(ROW, at(*ordered), at(*other))


def test_the_order_along_each_dimension() -> None:
    """Columns of equal elements: topk of ATen's CPU takes them in an order of its own."""
    column = torch.ones(5, 3)
    want = torch.topk(column, 3, 0)
    assert want.indices[:, 0].tolist() != [0, 1, 2]
    first = torch.arange(3)[:, None].expand(3, 3)
    assert take_positions(column, (want.values, first), want)
    assert not take_positions(column, (want.values, first.T.clone()), want)  # one position thrice in each column


def test_what_a_stable_sort_max_and_min_give_is_in_order() -> None:
    source = torch.randint(0, 4, (7, 33), generator=torch.Generator().manual_seed(0))
    found_by: tuple[Any, ...] = (
        partial(torch.sort, stable=True),
        partial(torch.max, keepdim=True),
        partial(torch.min, keepdim=True),
    )
    for find in found_by:
        found, mirrored = find(source, dim=-1), find(source.flip(-1), dim=-1)
        last = 32 - mirrored.indices  # the last of equal elements first
        assert torch.equal(source.take_along_dim(last, -1), found.values) and not torch.equal(last, found.indices)
        assert not take_positions(source, (found.values, last), found)


def test_results_of_other_kinds_are_not_positions() -> None:
    values, positions = UNORDERED
    assert not take_positions(ROW, (values, positions.int()), UNORDERED)
    assert not take_positions(ROW, (values[:, :2], positions[:, :2]), UNORDERED)
    assert not take_positions(ROW, (values,), (values,))
    assert not take_positions(ROW, (values, positions[0]), (values, positions[0]))
    assert not take_positions(ROW[:, :0], (values[:, :0], positions[:, :0]), (values[:, :0], positions[:, :0]))


def test_long_rows_of_equal_elements_are_ranked() -> None:
    """The square of such a row has no memory."""
    source = torch.arange(100_003) % 7
    values, positions = source.float().sort(stable=True)
    turned = positions.clone()
    turned[:2] = positions[:2].flip(0)
    assert take_positions(source.float(), (values, positions), (values, turned))
    assert not take_positions(source.float(), (values, turned), (values, positions))


SOURCE = torch.tensor([[NAN, 2.0, NAN], [1.0, NAN, 2.0]])
RESULTS = torch.tensor([1.0, 2.0, NAN, NAN, NAN])


def placed(*positions: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The results, and which of them each element of the source is."""
    return RESULTS, torch.tensor(positions).view(2, 3)


def test_nans_are_results_of_their_own_in_any_order_where_the_cpu_keeps_none() -> None:
    kept, turned = placed(2, 1, 3, 0, 4, 1), placed(4, 1, 2, 0, 3, 1)
    assert place_nans(SOURCE, kept, turned) and place_nans(SOURCE, placed(3, 1, 4, 0, 2, 1), turned)
    assert not place_nans(SOURCE, turned, kept)  # this one keeps the order
    assert not place_nans(SOURCE, placed(2, 1, 2, 0, 4, 1), turned)  # one result of two
    assert not place_nans(SOURCE, placed(2, 0, 3, 1, 4, 1), turned)  # another element's
    assert not place_nans(SOURCE, placed(2, 1, 3, 0, 5, 1), turned)
    assert not place_nans(SOURCE, (RESULTS,), (RESULTS,))
    assert not place_nans(SOURCE, kept, (RESULTS, turned[1].int()))
    assert not place_nans(SOURCE, kept, (RESULTS, turned[1].flatten()))
