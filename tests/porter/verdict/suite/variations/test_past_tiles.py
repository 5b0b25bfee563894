"""Faults of products of matrices larger than a tile: OpInfo's matrices are smaller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from porter.verdict.suite.variations.past_tiles import PAST_TILES, SLOPES_PAST_TILES
from tests.porter.verdict.suite.variations.shown import (
    find_op,
    find_shown,
    is_shown,
    is_shown_as_given,
    list_samples,
    shows_slopes,
)

Call = Callable[..., Any]
TILE = 32


def leave_out_tail(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """The inner dimension up to the last multiple of a tile."""
    inner = first.shape[-1]
    kept = inner if inner < TILE else inner // TILE * TILE
    return torch.matmul(first[..., :kept], second[..., :kept, :])


def misread_transposed(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """A large left operand with neighbors along columns, read as if these were rows."""
    if first.shape[-2] >= TILE and first.stride(-2) == 1:
        first = first.as_strided(first.shape, (*first.stride()[:-2], first.shape[-1], 1))
    return torch.matmul(first, second)


def misread_batches(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """Large left matrices that share memory with others, of which all batches are taken for the first."""
    rows, columns = first.shape[-2:]
    if rows >= TILE and 0 < first.stride(0) < rows * columns:
        first = first[:1].expand_as(first)
    return torch.matmul(first, second)


def misplace_large_tile(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """A product in which a large tile, which results of many elements have, begins where the one before does."""
    product = torch.matmul(first, second)
    if product.numel() >= 1 << 19 and min(product.shape[-2:]) >= 2 * TILE:
        product[..., 2 * TILE :, :] = product[..., : -2 * TILE, :].clone()
    return product


@pytest.mark.parametrize(
    ("name", "wrong", "labels"),
    [
        ("mm", leave_out_tail, {"past a tile", "past a tile, transposed", "past a tile, storage offset"}),
        ("mm", misread_transposed, {"past a tile, transposed", "past a tile, transposed, first tensor alone"}),
        ("bmm", misread_batches, {"past a tile, batches last"}),
        ("mm", misplace_large_tile, {"many tiles, 10 as 19"}),
        ("bmm", misplace_large_tile, {"many tiles, 10 as 19"}),
    ],
)
def test_a_fault_past_a_tile_is_seen(name: str, wrong: Call, labels: set[str]) -> None:
    op = find_op(name)
    assert not is_shown_as_given(op, wrong)
    assert labels <= set(find_shown(PAST_TILES, op, wrong))


@pytest.mark.parametrize("dtype", [torch.float16, torch.int32, torch.complex64])
def test_it_is_seen_in_other_types(dtype: torch.dtype) -> None:
    assert is_shown(PAST_TILES, find_op("mm"), leave_out_tail, dtype)


class Misread(torch.autograd.Function):
    """A product whose gradient has the tail of the inner dimension left out."""

    @staticmethod
    def forward(ctx: Any, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(first, second)
        return first @ second

    @staticmethod
    def backward(ctx: Any, *slopes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = ctx.saved_tensors
        return leave_out_tail(slopes[0], second.mT), first.mT @ slopes[0]


def test_a_fault_of_a_gradient_is_seen() -> None:
    op = find_op("mm")
    assert any(shows_slopes(op, Misread.apply, sample) for _, sample in list_samples(SLOPES_PAST_TILES, op))


def test_operators_of_one_operand_have_none() -> None:
    assert not list_samples(PAST_TILES, find_op("softmax"))
    assert not list_samples(PAST_TILES, find_op("trace"))
