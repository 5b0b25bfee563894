"""Faults in what sizes mean that a flag allows."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention

from porter.verdict.suite.variations.flagged_sizes import FLAGGED_SIZES
from tests.porter.verdict.suite.variations.shown import find_op, find_shown, list_samples

ATTENTION = find_op("nn.functional.scaled_dot_product_attention")


def pair_heads_in_turn(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **named: Any) -> torch.Tensor:
    """Attention with heads that share keys in turn, instead of neighbors."""
    if named.pop("enable_gqa", False):
        sizes = [1] * (key.ndim - 3) + [query.shape[-3] // key.shape[-3], 1, 1]
        key, value = key.repeat(sizes), value.repeat(sizes)
    return scaled_dot_product_attention(query, key, value, **named)


def test_heads_that_share_others_keys_are_found() -> None:
    """One sample of the CPU's has a dropout, which differs in any case."""
    right, wrong = (find_shown(FLAGGED_SIZES, ATTENTION, call) for call in (ATTENTION, pair_heads_in_turn))
    assert len(right) < len(wrong) and set(wrong) == {"half of dimension -3 with enable_gqa"}


def test_flags_that_allow_no_sizes_have_no_samples() -> None:
    assert not list_samples(FLAGGED_SIZES, find_op("sort")) and not list_samples(FLAGGED_SIZES, find_op("cdist"))
