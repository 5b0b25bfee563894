"""Faults in what combines slices of rows, and in what extreme values start from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.variations.combines import (
    COMBINES,
    COMBINES_IN_EVERY_TYPE,
    COMBINES_IN_OTHER_TYPES,
    COUNTED_ROW,
    FIRST,
    IDENTITIES,
    ROW,
    SORTED_ROW,
    THREADS,
    make_rows,
    orders_elements,
)
from tests.porter.verdict.suite.variations.shown import find_op, is_shown, is_shown_as_given, list_samples, shows

Call = Callable[..., Any]
SLICES = 65


def drop_elements(call: Call, kept: Call) -> Call:
    """A reduction of rows in slices that takes for other elements than these (by index and count) the first one."""

    def reduce(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        if x.numel() < THREADS * SLICES:
            return call(x, *args, **named)
        counts = kept(torch.arange(x.numel()), x.numel()).view(x.shape)
        return call(torch.where(counts, x, x.flatten()[0]), *args, **named)

    return reduce


def drop_slices(call: Call) -> Call:
    """A reduction that combines one slice for each thread of a simdgroup, where all slices have elements in turn."""
    return drop_elements(call, lambda at, count: at // THREADS % SLICES < 32)


def drop_half(call: Call) -> Call:
    """A reduction that loses the second half of the slices, where each has elements that are side by side."""
    return drop_elements(call, lambda at, count: at < count // 2)


def find_last(x: torch.Tensor, dim: int | None = None, keepdim: bool = False) -> torch.Tensor:
    """The last of the greatest elements, in rows that are cut in slices."""
    if x.numel() < THREADS * SLICES:
        return torch.argmax(x, dim, keepdim)
    last = x.numel() - 1 - torch.argmax(x.flatten().flip(0))
    return last.view(torch.argmax(x, dim, keepdim).shape)


def test_complex_numbers_have_no_order() -> None:
    assert not orders_elements(find_op("sum"), SampleInput(torch.ones(3, 40, dtype=torch.complex64)))


@pytest.mark.parametrize(
    ("name", "orders"),
    [("median", True), ("kthvalue", True), ("sum", False), ("mean", False), ("amax", False), ("argmax", False)],
)
def test_operators_that_put_elements_in_order_have_shorter_rows(name: str, orders: bool) -> None:
    lengths = [sample.input.numel() for _, sample in list_samples(COMBINES, find_op(name))]
    least = SORTED_ROW if orders else ROW
    assert lengths and all(least <= length < 2 * least for length in lengths)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("sum", drop_slices(torch.sum)),
        ("argmax", drop_slices(torch.argmax)),
        ("argmax", find_last),
        ("argmin", drop_half(torch.argmin)),
        ("var", drop_slices(torch.var)),
        ("any", drop_slices(torch.any)),
        ("linalg.vector_norm", drop_half(torch.linalg.vector_norm)),
    ],
)
def test_slices_that_are_not_combined_are_missed(name: str, wrong: Call) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, wrong)
    assert is_shown(COMBINES, op, wrong)


@pytest.mark.parametrize(
    ("name", "dtype", "wrong"),
    [
        ("amax", torch.float32, lambda *a, **k: torch.amax(*a, **k).clamp(min=0)),
        ("amin", torch.float32, lambda *a, **k: torch.amin(*a, **k).clamp(max=0)),
        ("amax", torch.int64, lambda *a, **k: torch.amax(*a, **k).clamp(min=-(2**31))),
        ("cummax", torch.float32, lambda *a, **k: (torch.cummax(*a, **k)[0].clamp(min=0), torch.cummax(*a, **k)[1])),
        ("nn.functional.max_pool2d", torch.float32, lambda *a, **k: pool(*a, **k)),
    ],
)
def test_an_extreme_value_that_starts_from_a_number(name: str, dtype: torch.dtype, wrong: Call) -> None:
    assert is_shown(IDENTITIES, find_op(name), wrong, dtype)


def pool(*args: Any, **named: Any) -> Any:
    results = torch.nn.functional.max_pool2d(*args, **named)
    values = results[0] if isinstance(results, tuple) else results
    return (values.clamp(min=0), *results[1:]) if isinstance(results, tuple) else values.clamp(min=0)


def test_every_slice_has_elements_that_count() -> None:
    rows = make_rows(torch.zeros(1, ROW))
    tied = rows["of ones and equal extremes"].flatten()
    extremes = (tied == 2).nonzero().flatten()
    assert int(extremes[0]) == FIRST > ROW // 2 and FIRST // THREADS % SLICES >= 32
    single = rows["of zeros but for two"]
    assert int(single.count_nonzero()) == 2 and int(single.argmax()) == FIRST
    assert all(row.shape == (1, ROW) for row in rows.values())


def test_what_keeps_its_elements_has_no_row_of_slices() -> None:
    assert not list_samples(COMBINES, find_op("cumsum"))
    assert not list_samples(COMBINES, find_op("softmax"))


def test_integers_are_at_the_ends_of_their_type() -> None:
    samples = list_samples(IDENTITIES, find_op("amax"), torch.int32)
    numbers = {int(number) for _, sample in samples for number in sample.input.unique()}
    assert numbers == {-(2**31), 1, 2**31 - 1} and all(isinstance(sample, SampleInput) for _, sample in samples)


def start_from(number: float) -> Call:
    """A softmax whose largest element is looked for from a number on."""

    def log_softmax(x: torch.Tensor, dim: int, **named: Any) -> torch.Tensor:
        largest = x.amax(dim, keepdim=True).clamp(min=number)
        result: torch.Tensor = (x - largest) - (x - largest).exp().sum(dim, keepdim=True).log()
        return result.to(named.get("dtype") or x.dtype)

    return log_softmax


def test_a_largest_element_that_starts_from_a_small_number_is_seen() -> None:
    op = find_op("log_softmax")
    assert is_shown(IDENTITIES, op, start_from(-100.0)) and not is_shown(IDENTITIES, op, start_from(-1e30))


def test_a_count_in_16_bits_is_seen() -> None:
    op = find_op("bincount")

    def count(*args: Any, **named: Any) -> torch.Tensor:
        return torch.bincount(*args, **named) % (1 << 16)

    assert is_shown(IDENTITIES, op, count, torch.int64)


def drop_later_groups(call: Call) -> Call:
    """A count of elements that adds up the counts of the first 1,024 groups of 1,024."""
    most = THREADS * THREADS
    return lambda x, *args, **named: call(x if x.numel() <= most else x.flatten()[:most], *args, **named)


@pytest.mark.parametrize("name", ["unique_consecutive", "nonzero"])
def test_counts_of_more_groups_than_a_threadgroup_has_threads_are_added_up(name: str) -> None:
    op = find_op(name)
    long = [sample for _, sample in list_samples(COMBINES, op) if sample.input.numel() >= COUNTED_ROW]
    assert any(shows(op, drop_later_groups(op), sample) for sample in long)
    assert not is_shown_as_given(op, drop_later_groups(op))


def test_rows_are_not_counted_where_elements_are_sorted() -> None:
    assert all(sample.input.numel() < COUNTED_ROW for _, sample in list_samples(COMBINES, find_op("unique")))


@pytest.mark.parametrize(
    ("name", "dtype"), [("sum", torch.int64), ("sum", torch.float16), ("amax", torch.int8), ("amin", torch.bool)]
)
def test_what_combines_slices_of_one_type_alone_is_seen(name: str, dtype: torch.dtype) -> None:
    """A kernel that combines is registered for each type, and may be wrong for one of them."""
    right = getattr(torch, name)

    def wrong(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        return (drop_half(right) if x.dtype is dtype else right)(x, *args, **named)

    op = find_op(name)
    assert any(is_shown(each, op, wrong, dtype) for each in (COMBINES_IN_OTHER_TYPES, COMBINES_IN_EVERY_TYPE))
