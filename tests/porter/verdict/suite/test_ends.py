"""Samples with elements at the ends of a type."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.context import Context
from porter.verdict.suite.long_rows import list_all_ends, list_ends, shift_to_ends
from porter.verdict.suite.opinfos import OpInfos

ENDS = [f"{each} {at}" for each in ("inf", "-inf", "nan") for at in ("first", "last")]
ZEROS = "zeros of either sign"
BEHIND = ["inf last of zeros", "nan last of zeros"]
NOT_FINITE = [ZEROS, *ENDS, "nan first and last", *BEHIND, "inf alone", "-inf alone", "nan alone"]


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
    assert [label for label, _ in list_ends(lambda x: x.sum(), sample)] == [ZEROS]
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
        ZEROS,
        "nan first",
        "nan last",
        "nan first and last",
        "nan last of zeros",
        "inf alone",
        "-inf alone",
        "nan alone",
    ]


@pytest.mark.parametrize("op", [lambda x: x.cumprod(0), lambda x: x.cumprod(0).flip(0), lambda x: x.cumprod(0) * 2])
def test_a_product_that_ends_at_its_first_zero_is_found(op: Any) -> None:
    def stop(x: torch.Tensor) -> Any:
        is_zero = (x == 0).cumsum(0) > 0
        return op(torch.where(is_zero, 0, x))

    sample = SampleInput(torch.arange(1.0, 8))
    shown = [
        label
        for label, varied in list_ends(op, sample)
        if not stop(varied.input).allclose(op(varied.input), equal_nan=True)
    ]
    assert shown == BEHIND


@pytest.mark.parametrize(
    ("op", "wrong"),
    [
        (torch.unique_consecutive, lambda x: torch.unique_consecutive(1 / x)),
        (lambda x: x.argmax(), lambda x: (1 / x).argmax()),
        (lambda x: x.sort(stable=True)[1], lambda x: (1 / x).sort(stable=True)[1]),
        (torch.count_nonzero, lambda x: x.signbit().sum()),
    ],
)
def test_zeros_of_either_sign_are_equal(op: Any, wrong: Any) -> None:
    zeros = dict(list_ends(op, SampleInput(torch.ones(7))))[ZEROS].input
    assert not zeros.any() and zeros.signbit().any() and not zeros.signbit().all()
    assert op(zeros).shape != wrong(zeros).shape or not op(zeros).equal(wrong(zeros))


def test_integers_without_a_sign_are_not_read_with_one() -> None:
    varied = dict(shift_to_ends(SampleInput(torch.tensor([3, 7, 0, 5], dtype=torch.uint8))))
    read = {label: (each.input.argmax(), each.input.view(torch.int8).argmax()) for label, each in varied.items()}
    assert [label for label, (right, wrong) in read.items() if right != wrong] == ["about the middle"]


def join_nan(x: torch.Tensor) -> torch.Tensor:
    """Runs of equal elements, of which NaN beside NaN is one."""
    runs: torch.Tensor = torch.unique_consecutive(x.nan_to_num(nan=-12.0))
    return runs


def test_nan_stands_beside_nan() -> None:
    varied = dict(list_ends(torch.unique_consecutive, SampleInput(torch.tensor([[1.0, 1.0, 2.0], [3.0, 2.0, 2.0]]))))
    runs = {label: (torch.unique_consecutive(each.input), join_nan(each.input)) for label, each in varied.items()}
    assert [label for label, (right, wrong) in runs.items() if right.shape != wrong.shape] == ["nan alone"]


def reverse_nan(x: torch.Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """An ascending sort whose comparison says of two NaN that either comes first: they are in reverse."""
    values, at = x.sort(dim=dim, descending=descending, stable=True)
    if descending:
        return values, at
    ends = x.isnan().sum(dim, keepdim=True)
    place = torch.arange(x.shape[dim]).view([-1 if d == dim % x.ndim else 1 for d in range(x.ndim)])
    last = x.shape[dim] - 1
    reversed_place = torch.where(place > last - ends, 2 * last + 1 - ends - place, place)
    return values, at.gather(dim, reversed_place)


def test_nan_are_in_order_whether_a_sort_descends_or_not() -> None:
    opinfos = OpInfos(Context(bases=("sort",)))
    (op,) = opinfos.select("mps_ops_modifier")
    varied = list(list_all_ends(op, opinfos.pick_samples(op, torch.float32), torch.float32))
    shown = [
        label
        for label, sample in varied
        if not reverse_nan(sample.input, *sample.args, **sample.kwargs)[1].equal(
            op(sample.input, *sample.args, **sample.kwargs)[1]
        )
    ]
    assert shown == ["nan alone, with 1=False"]
    assert not [
        label for label, _ in list_all_ends(op, opinfos.pick_samples(op, torch.int8), torch.int8) if "," in label
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
