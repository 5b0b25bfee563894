"""Faults of whole numbers that 32 bits, or a float, take for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.sized_arguments import FAR_NUMBERS, FAR_SCALARS, SHIFTS, list_present
from tests.porter.verdict.suite.variations.planted import list_different
from tests.porter.verdict.suite.variations.shown import find_op, is_shown, is_shown_as_given, list_samples

Call = Callable[..., Any]


def ignore(*args: Any, ignore_index: int = -100, **named: Any) -> torch.Tensor:
    named["ignore_index"] = (ignore_index + 2**31) % 2**32 - 2**31
    return torch.nn.functional.nll_loss(*args, **named)


def is_in(elements: Any, test_elements: Any, **named: Any) -> torch.Tensor:
    return torch.isin(*(to_float(each) for each in (elements, test_elements)), **named)


def to_float(value: Any) -> Any:
    return value.to(torch.float32) if isinstance(value, torch.Tensor) else float(torch.tensor(value).float())


def sort(x: torch.Tensor, *args: Any, **named: Any) -> Any:
    order = torch.sort(x.float(), *args, **named)[1]
    return (x.gather(args[0] if args else named.get("dim", -1), order), order) if x.ndim else torch.sort(x, *args)


def fill(x: torch.Tensor, mask: torch.Tensor, value: Any) -> torch.Tensor:
    return torch.masked_fill(x, mask, int(float(value)))


def search(boundaries: torch.Tensor, values: Any, **named: Any) -> torch.Tensor:
    return torch.searchsorted(boundaries.double(), values.double(), **named)


def count(*numbers: Any, **named: Any) -> torch.Tensor:
    counted = torch.arange(*numbers, **named)
    if len(numbers) < 2 or any(type(number) is not int for number in numbers):
        return counted
    far: torch.Tensor = counted - numbers[0] + float(numbers[0])
    return far.to(counted.dtype)


def step_in_floats(*numbers: Any, **named: Any) -> torch.Tensor:
    counted = torch.arange(*numbers, **named)
    if len(numbers) < 3 or any(type(number) is not int for number in numbers):
        return counted
    steps: torch.Tensor = torch.arange(len(counted)).float() * float(torch.tensor(float(numbers[2])))
    far: torch.Tensor = steps.to(counted.dtype) + numbers[0]
    return far


def fill_index(x: torch.Tensor, dim: int, index: torch.Tensor, value: Any) -> torch.Tensor:
    return torch.index_fill(x, dim, index, int(float(value)))


@pytest.mark.parametrize(
    ("name", "dtype", "wrong"),
    [
        ("nn.functional.nll_loss", torch.float32, ignore),
        ("isin", torch.int64, is_in),
        ("sort", torch.int64, sort),
        ("masked_fill", torch.int64, fill),
        ("searchsorted", torch.int64, search),
        ("index_fill", torch.int64, fill_index),
        ("arange", torch.int64, count),
        ("arange", torch.int64, step_in_floats),
    ],
)
def test_a_whole_number_that_is_another_in_32_bits_or_as_a_float(name: str, dtype: torch.dtype, wrong: Call) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, wrong, dtype)
    assert is_shown(FAR_NUMBERS, op, wrong, dtype)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_each_reduction_of_a_loss_ignores_an_index_that_is_another_in_32_bits(reduction: str) -> None:
    op = find_op("nn.functional.nll_loss")
    opinfos = OpInfos(Context(bases=("nll_loss2d_forward",), through=(op.full_name,)))

    def ignore_in_one(*args: Any, **named: Any) -> torch.Tensor:
        return (ignore if named.get("reduction", "mean") == reduction else op.op)(*args, **named)

    assert list_different(ignore_in_one, op.op, FAR_NUMBERS.list_samples(opinfos, op, torch.float32))


def to_int(value: torch.Tensor) -> torch.Tensor:
    return value.to(torch.int32).to(value.dtype) if value.dtype is torch.int64 else value


def choose(x: torch.Tensor, *args: Any, **named: Any) -> Any:
    places = torch.topk(to_int(x), *args, **named)[1]
    return (x.gather(args[1] if len(args) > 1 else -1, places), places) if x.ndim else torch.topk(x, *args, **named)


def tell_apart(x: torch.Tensor, *args: Any, **named: Any) -> Any:
    return torch.unique_consecutive(to_int(x), *args, **named)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("topk", choose),
        ("unique_consecutive", tell_apart),
        ("nonzero", lambda x, **named: torch.nonzero(to_int(x), **named)),
        ("count_nonzero", lambda x, *args, **named: torch.count_nonzero(to_int(x), *args, **named)),
        ("any", lambda x, *args, **named: torch.any(to_int(x), *args, **named)),
        ("argmin", lambda x, *args, **named: torch.argmin(to_int(x), *args, **named)),
        ("isin", lambda *args, **named: torch.isin(*map(to_int, args), **named)),
    ],
)
def test_elements_of_which_32_bits_leave_nothing(name: str, wrong: Call) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, wrong, torch.int64)
    assert is_shown(FAR_NUMBERS, op, wrong, torch.int64)


def test_what_has_more_results_for_larger_elements_has_none_that_are_far() -> None:
    assert not list_samples(FAR_NUMBERS, find_op("bincount"), torch.int64)


def clamp(x: torch.Tensor, low: Any = None, high: Any = None) -> torch.Tensor:
    return torch.clamp(x, *(int(float(each)) if isinstance(each, int) else each for each in (low, high)))


def is_equal(x: torch.Tensor, other: Any) -> torch.Tensor:
    return torch.eq(x.float(), to_float(other)) if isinstance(other, int) else torch.eq(x, other)


def multiply(x: torch.Tensor, *others: torch.Tensor, value: Any = 1) -> torch.Tensor:
    return torch.addcmul(x, *others, value=int(torch.tensor(value).float()))


def subtract(x: torch.Tensor, other: Any, alpha: Any = 1) -> torch.Tensor:
    return torch.sub(x, other, alpha=(alpha + 2**31) % 2**32 - 2**31)


@pytest.mark.parametrize(
    ("name", "wrong"), [("clamp", clamp), ("eq", is_equal), ("addcmul", multiply), ("sub", subtract)]
)
def test_a_number_of_an_elementwise_operator_that_is_another_as_a_float(name: str, wrong: Call) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, wrong, torch.int64)
    assert is_shown(FAR_SCALARS, op, wrong, torch.int64)


def test_what_the_cpu_counts_in_floats_is_called_with_no_far_numbers() -> None:
    assert not list_samples(FAR_NUMBERS, find_op("linspace"), torch.int64)
    labels = [label for label, _ in list_samples(FAR_NUMBERS, find_op("arange"), torch.int64)]
    assert f"numbers 0, 1 larger by {SHIFTS[-1]}" in labels


def test_numbers_are_far_from_those_that_are_there() -> None:
    sample = SampleInput(torch.ones(3, 4), args=(torch.tensor([1, 1, 2]),), kwargs={"ignore_index": 0})
    assert list_present(sample) == [1, 2]
    assert list_present(SampleInput(torch.ones(3), args=(torch.ones(3),))) == []
