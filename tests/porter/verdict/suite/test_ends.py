"""Samples with elements at the ends of a type."""

from __future__ import annotations

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.ends import list_ends, shift_to_ends

ENDS = [f"{each} {at}" for each in ("inf", "-inf", "nan") for at in ("first", "last")]
NOT_FINITE = [*ENDS, "nan first and last", "inf alone", "-inf alone"]


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.uint8])
def test_integers_keep_their_distances_at_the_ends(dtype: torch.dtype) -> None:
    given = torch.tensor([[3, 5], [9, 4]], dtype=dtype)
    found = dict(shift_to_ends(SampleInput(given, args=(1,))))
    greatest, least = found["at the greatest integers"], found["at the least integers"]
    assert greatest.input.max() == torch.iinfo(dtype).max and least.input.min() == torch.iinfo(dtype).min
    for each in (greatest, least):
        assert each.input.dtype == dtype and each.args == (1,)
        assert (each.input - each.input[0, 0]).equal(given - given[0, 0])
    assert given.tolist() == [[3, 5], [9, 4]]


def test_floats_are_not_finite_where_results_keep_rows() -> None:
    sample = SampleInput(torch.ones(2, 3))
    for op in (lambda x: x.sort(1), lambda x: x.cumsum(1), lambda x: x.softmax(1)):
        assert [label for label, _ in list_ends(op, sample)] == NOT_FINITE
    assert not list(list_ends(lambda x: x.sum(), sample))
    assert not list(list_ends(lambda x: x.repeat(2, 2), sample))


def test_what_is_not_finite_by_an_order_of_sums_is_not_compared() -> None:
    def center(x: torch.Tensor) -> torch.Tensor:  # the mean of one pass is infinite or NaN by where an element is
        mean = torch.zeros(())
        for count, each in enumerate(x, 1):
            mean = mean + (each - mean) / count
        return torch.where(x.isnan(), x, mean.expand(len(x)))

    sample = SampleInput(torch.ones(5))
    assert center(torch.tensor([torch.inf, 1, 1]))[0].isnan() and center(torch.tensor([1, 1, torch.inf]))[0].isinf()
    assert [label for label, _ in list_ends(center, sample)] == [
        "nan first",
        "nan last",
        "nan first and last",
        "inf alone",
        "-inf alone",
    ]


def test_elements_that_shapes_follow_from_stay_small() -> None:
    sample = SampleInput(torch.tensor([1, 2, 3]))
    assert not list(list_ends(torch.bincount, sample)) and not list(list_ends(torch.unique, sample))
    assert [label for label, _ in list_ends(torch.sort, sample)] == [
        "at the greatest integers",
        "at the least integers",
    ]
    assert not list(list_ends(torch.sort, SampleInput(torch.tensor([True])))) and not list(
        list_ends(torch.sort, SampleInput([]))
    )
