"""Faults in what combines slices of a row, for arguments and types that other long rows do not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from porter.verdict.suite.context import Context
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.variations.combined_arguments import (
    COMBINED_ARGUMENTS,
    FEWEST_SLICES,
    FIRST,
    MANY_SLICES,
    ROW,
    Long,
)
from porter.verdict.suite.variations.combines import COMBINES
from tests.porter.verdict.suite.variations.shown import find_op, is_shown, list_samples, shows

Call = Callable[..., Any]


def drop_second(call: Call, is_wrong: Callable[..., bool]) -> Call:
    """A reduction that takes the first of two slices alone, in some calls: of every second 1,024 elements each."""

    def reduce(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        if x.numel() < ROW or not is_wrong(x, *args, **named):
            return call(x, *args, **named)
        along = max(range(x.ndim), key=lambda dim: x.shape[dim])
        return call(x.index_select(along, find_first(x.shape[along])), *args, **named)

    return reduce


def find_first(length: int) -> torch.Tensor:
    """The places of every second 1,024 elements of a row."""
    return (torch.arange(length) // 1024 % 2 == 0).nonzero().flatten()


def reduce_first_row(x: torch.Tensor, *args: Any, **named: Any) -> torch.Tensor:
    """A norm that combines the slices of the first of all rows for each of them."""
    result: torch.Tensor = torch.linalg.vector_norm(x, *args, **named)
    return result if x.numel() < ROW or result.ndim == 0 else result.flatten()[0].expand(result.shape).clone()


def test_rows_differ() -> None:
    assert is_shown(COMBINED_ARGUMENTS, find_op("linalg.vector_norm"), reduce_first_row)


def test_a_sum_of_losses_is_combined_as_a_mean_is() -> None:
    labels = [label for label, _ in list_samples(COMBINED_ARGUMENTS, find_op("nn.functional.nll_loss"))]
    assert all(f"reduction=sum: rows of {long.row}, of 16s" in labels for long in (MANY_SLICES, FEWEST_SLICES)), labels


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_losses_in_16_bits_have_rows_of_two_slices(reduction: str, dtype: torch.dtype) -> None:
    op = find_op("nn.functional.nll_loss")
    varied = [
        sample for label, sample in list_samples(COMBINED_ARGUMENTS, op, dtype) if f"reduction={reduction}" in label
    ]

    def lose_second(x: torch.Tensor, target: torch.Tensor, **named: Any) -> torch.Tensor:
        at = torch.arange(target.numel()).view(target.shape)
        return op.op(x * (at // 256 % 2 == 0).unsqueeze(1), target, **named)  # type: ignore[no-any-return]

    assert varied and all(shows(op, lose_second, sample) for sample in varied)


@pytest.mark.parametrize(("power", "is_new"), [(0, True), (1, True), (3, False), (-1, True)])
def test_each_power_of_a_norm_has_a_row_of_slices(power: float, is_new: bool) -> None:
    wrong = drop_second(torch.norm, lambda x, p=2, *rest, **named: p == power)
    op = find_op("norm")
    assert is_shown(COMBINED_ARGUMENTS, op, wrong)
    assert is_shown(COMBINES, op, wrong) is not is_new


@pytest.mark.parametrize("power", [torch.inf, -torch.inf])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_extremes_are_in_the_second_slice(power: float, dtype: torch.dtype) -> None:
    wrong = drop_second(torch.norm, lambda x, p=2, *rest, **named: p == power)
    assert is_shown(COMBINED_ARGUMENTS, find_op("norm", "inf"), wrong, dtype)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("sum", torch.float16),
        ("argmax", torch.bfloat16),
        ("argmin", torch.int32),
        ("var", torch.float16),
        ("amax", torch.uint8),
        ("amin", torch.int64),
        ("any", torch.bool),
        ("all", torch.bool),
        ("count_nonzero", torch.float16),
    ],
)
def test_each_type_has_a_row_of_slices(name: str, dtype: torch.dtype) -> None:
    op = find_op(name)
    assert is_shown(COMBINED_ARGUMENTS, op, drop_second(op.op, lambda x, *rest, **named: x.dtype is dtype), dtype)


def test_a_power_of_zero_counts_fewer_than_16_bits_have() -> None:
    samples = list_samples(COMBINED_ARGUMENTS, find_op("norm"), torch.float16)
    [sample] = [sample for label, sample in samples if "0=0: rows" in label]
    assert ROW // 3 < int(sample.input.count_nonzero()) < torch.finfo(torch.float16).max and sample.input.numel() >= ROW


def test_rows_of_what_keeps_its_elements_or_puts_them_in_order_stay_short() -> None:
    assert not list_samples(COMBINED_ARGUMENTS, find_op("softmax"))
    assert not list_samples(COMBINED_ARGUMENTS, find_op("median"))
    assert FIRST // 1024 % 2 == 1 and FIRST > ROW // 2


def drop_last(call: Call) -> Call:
    """A reduction that combines 32 slices and no more: of 34, each of which has every 34th 256 elements."""

    def reduce(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        if x.numel() < ROW:
            return call(x, *args, **named)
        along = max(range(x.ndim), key=lambda dim: x.shape[dim])
        at = torch.arange(x.shape[along])
        slices = x.shape[along] // (32 * 256)
        return call(x.index_select(along, (at // 256 % slices < 32).nonzero().flatten()), *args, **named)

    return reduce


@pytest.mark.parametrize(("name", "variant"), [("norm", "inf"), ("amin", ""), ("aminmax", "")])
def test_more_slices_than_a_simdgroup_has_lanes_are_combined(name: str, variant: str) -> None:
    op = find_op(name, variant)
    varied = [sample for label, sample in list_samples(COMBINED_ARGUMENTS, op) if f"rows of {MANY_SLICES.row}" in label]
    assert varied and all(shows(op, drop_last(op.op), sample) for sample in varied), name


def test_more_slices_than_lanes_are_combined_where_a_target_names_classes() -> None:
    op = find_op("nn.functional.nll_loss")
    opinfos = OpInfos(Context(bases=("nll_loss2d_forward",), through=(op.full_name,)))
    varied = list(COMBINED_ARGUMENTS.list_samples(opinfos, op, torch.float32))
    rows = [sample for label, sample in varied if f"reduction=sum: rows of {MANY_SLICES.row}" in label]
    assert rows and all(sample.args[0].numel() > MANY_SLICES.row and sample.input.ndim == 4 for sample in rows)

    def lose_last(x: torch.Tensor, target: torch.Tensor, **named: Any) -> torch.Tensor:
        slices = target.numel() // (32 * 256)
        at = torch.arange(target.numel()).view(target.shape)
        return op.op(x * (at // 256 % slices < 32).unsqueeze(1), target, **named)  # type: ignore[no-any-return]

    assert all(shows(op, lose_last, sample) for sample in rows)


def drop_one_of_two(call: Call) -> Call:
    """A reduction whose host code takes two slices for one: what they write one over the other is of the first."""

    def reduce(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        along = max(range(x.ndim), key=lambda dim: x.shape[dim], default=0)
        if not x.ndim or x.shape[along] // (32 * 256) != 2:
            return call(x, *args, **named)
        at = (torch.arange(x.shape[along]) // 256 % 2 == 0).nonzero().flatten()
        return call(x.index_select(along, at), *args, **named)

    return reduce


@pytest.mark.parametrize(("name", "variant"), [("norm", "inf"), ("amin", ""), ("linalg.vector_norm", "")])
def test_two_slices_are_no_more_than_one_to_some(name: str, variant: str) -> None:
    op = find_op(name, variant)
    wrong = drop_one_of_two(op.op)
    assert is_shown(COMBINED_ARGUMENTS, op, wrong) and not is_shown(COMBINES, op, wrong)


def count_numbers(x: torch.Tensor, p: Any = 2, *args: Any, **named: Any) -> torch.Tensor:
    """A norm of zero that counts no NaN."""
    norm: torch.Tensor = torch.norm(x.nan_to_num(0.0) if p == 0 else x, p, *args, **named)
    return norm


def test_each_power_of_a_norm_has_a_nan() -> None:
    assert is_shown(COMBINED_ARGUMENTS, find_op("norm"), count_numbers)


@pytest.mark.parametrize(("long", "before"), [(MANY_SLICES, 32), (FEWEST_SLICES, 1)])
def test_extremes_are_in_the_last_slices(long: Long, before: int) -> None:
    slices = long.row // (32 * 256)
    for place in (long.first, long.first + 7, long.first + long.step):
        assert place < long.row and place // 256 % slices >= before and place // (long.row // slices + 1) >= before


def test_a_run_that_checks_memory_has_rows_of_the_fewest_slices_alone() -> None:
    opinfos = OpInfos(Context(bases=("norm",), checks_memory=True))
    labels = [label for label, _ in COMBINED_ARGUMENTS.list_samples(opinfos, find_op("norm"), torch.float32)]
    assert 1 < len(labels) <= 4 and all(f"rows of {FEWEST_SLICES.row}" in label for label in labels), labels
