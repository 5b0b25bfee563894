"""Faults at sizes beside powers of two."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from porter.verdict.suite.context import Context
from porter.verdict.suite.leaves import list_operands
from porter.verdict.suite.opinfos import OpInfos
from porter.verdict.suite.samples import count_results
from porter.verdict.suite.variations.near_powers import (
    GRADIENT_SIZES,
    LARGE,
    MOST,
    NEAR_POWERS,
    SIZES,
    SLOPES_NEAR_POWERS,
)
from tests.porter.verdict.suite.variations.shown import (
    find_op,
    is_shown,
    is_shown_as_given,
    list_samples,
    shows_slopes,
)

Call = Callable[..., Any]


def sort(x: torch.Tensor, dim: int = -1, descending: bool = False, **rest: Any) -> Any:
    """Blocks of 1,024 that are not merged where there are two."""
    if not x.ndim or not 1024 < x.shape[dim] <= 2048:
        return torch.sort(x, dim=dim, descending=descending, **rest)
    parts = [torch.sort(part, dim=dim, descending=descending, **rest) for part in x.split(1024, dim)]
    return torch.cat([part[0] for part in parts], dim), torch.cat([part[1] for part in parts], dim)


def scan(x: torch.Tensor, dim: int, **rest: Any) -> torch.Tensor:
    """A block of 512 without what comes before it, where it has one element."""
    sums = torch.cumsum(x, dim, **rest)
    if x.ndim and x.shape[dim] % 512 == 1 and x.shape[dim] > 1:
        last = sums.narrow(dim, x.shape[dim] - 1, 1)
        last.copy_(x.narrow(dim, x.shape[dim] - 1, 1))
    return sums


def add_full(x: torch.Tensor, *args: Any, **named: Any) -> torch.Tensor:
    """Rows that are as long as a threadgroup, without their last element."""
    if x.ndim and x.shape[-1] == 1024:
        x = torch.cat([x[..., :-1], torch.zeros_like(x[..., -1:])], -1)
    return torch.sum(x, *args, **named)


def choose(x: torch.Tensor, k: int, dim: int = -1, *rest: Any, **named: Any) -> Any:
    return torch.topk(x.narrow(dim, 0, 2048) if x.ndim and x.shape[dim] > 2048 else x, k, dim, *rest, **named)


def middle(x: torch.Tensor, *args: Any, **named: Any) -> Any:
    return torch.median(x[..., :4096] if x.ndim else x, *args, **named)


def choose_all(x: torch.Tensor, k: int, dim: int = -1, *rest: Any, **named: Any) -> Any:
    """Blocks of 1,024 that lose their least element where there are two."""
    chosen = torch.topk(x, k, dim, *rest, **named)
    if x.ndim and 1024 < x.shape[dim] <= 2048 and k == x.shape[dim]:
        chosen.values.select(dim, k - 1).zero_()
    return chosen


def keep_first(x: torch.Tensor, *args: Any, **named: Any) -> torch.Tensor:
    """Rows that are kept in registers up to 32,768 elements, by threads that have room for 16,384."""
    kept = torch.softmax(x, *args, **named)
    is_long = x.ndim and 16384 < x.shape[-1] <= 32768
    return torch.cat([kept[..., :16384], kept[..., 16384:] * 0], -1) if is_long else kept


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("softmax", keep_first),
        ("sort", sort),
        ("cumsum", scan),
        ("sum", add_full),
        ("topk", choose),
        ("median", middle),
        ("topk", choose_all),
    ],
)
def test_a_size_beside_a_power_of_two(name: str, wrong: Call) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, wrong)
    assert is_shown(NEAR_POWERS, op, wrong)


def test_every_size_is_along_the_first_and_the_last_dimension() -> None:
    samples = list_samples(NEAR_POWERS, find_op("softmax"))
    assert {sample.input.shape[-1] for _, sample in samples} >= set(SIZES)
    assert {sample.input.shape[0] for _, sample in samples} >= set(SIZES)
    assert {31, 32, 33, 1023, 1025, 2047, 2049, 4095, 4096, 4097} <= set(SIZES)


@pytest.mark.parametrize(("name", "variant"), [("index_fill", ""), ("nn.functional.pad", "replicate")])
def test_no_work_grows_with_the_square_of_a_long_row(name: str, variant: str) -> None:
    """An index as long as the row that it is looked for in, and a padding as long as the row."""
    samples = list_samples(NEAR_POWERS, find_op(name, variant))
    assert samples and all(count_results(find_op(name, variant), sample) <= MOST for _, sample in samples)
    both = [sample for _, sample in samples if len([t for t in list_operands(sample) if t.numel() >= LARGE[0]]) > 1]
    assert not both


def halve(call: Call, low: int, high: int) -> Call:
    """A function whose gradient is half of what it is for a size between two others."""

    def wrong(x: torch.Tensor, *args: Any, **named: Any) -> Any:
        plain = x * 1
        if any(low < size <= high for size in x.shape):
            plain.register_hook(lambda slope: slope / 2)
        return call(plain, *args, **named)

    return wrong


@pytest.mark.parametrize(
    ("base", "name"), [("_log_softmax_backward_data", "log_softmax"), ("logsumexp_backward", "logsumexp")]
)
def test_a_gradient_at_a_size_beside_a_power_of_two(base: str, name: str) -> None:
    op = find_op(name)
    opinfos = OpInfos(Context(bases=(base,), through_backward=(op.full_name,)))
    varied = list(SLOPES_NEAR_POWERS.list_samples(opinfos, op, torch.float32))
    for low, high in ((16384, 32768), (128, 256), (2048, 4096)):
        assert any(shows_slopes(op, halve(op.op, low, high), sample) for _, sample in varied), (low, len(varied))


def test_no_gradients_grow_with_the_square_of_a_long_row() -> None:
    op = find_op("nn.functional.pad", "replicate")
    opinfos = OpInfos(Context(bases=("replication_pad1d_backward",), through_backward=(op.full_name,)))
    samples = [sample for _, sample in SLOPES_NEAR_POWERS.list_samples(opinfos, op, torch.float32)]
    assert any(size in sample.input.shape for sample in samples for size in LARGE)
    assert all(count_results(op, sample) <= MOST for sample in samples)


def test_gradients_are_asked_for_between_what_other_variations_ask_for() -> None:
    assert {129, 4097, 16385} <= set(GRADIENT_SIZES)
    assert not list_samples(SLOPES_NEAR_POWERS, find_op("softmax"))  # has tests of its own
