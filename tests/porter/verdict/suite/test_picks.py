"""Samples with long rows that differ: for which operators they are, and that what is picked wrongly differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.indices import LONG, ROWS, list_picked, picks, put_nan, shuffle, tell_apart

SORT, TOPK, SUM = (next(op for op in op_db if op.name == name) for name in ("sort", "topk", "sum"))
SAMPLE = SampleInput(torch.randn(2, 3, 4), args=(0,))


def make(given: torch.Tensor, *args: Any) -> SampleInput:
    return SampleInput(given, args=args)


@pytest.mark.parametrize("name", ["sort", "topk", "cummax", "median", "kthvalue", "flip", "argmax", "max"])
def test_operators_that_pick_elements(name: str) -> None:
    op = next(op for op in op_db if op.name == name)
    assert any(True for each in op.sample_inputs("cpu", torch.float32) for _ in list_picked(op, each))


@pytest.mark.parametrize("name", ["sum", "cumsum", "softmax", "gather", "outer", "mean"])
def test_operators_that_round_or_have_other_operands_have_no_such_rows(name: str) -> None:
    op = next(op for op in op_db if op.name == name)
    assert not any(True for each in op.sample_inputs("cpu", torch.float32) for _ in list_picked(op, each))


def test_whole_numbers_that_are_added_up_are_exact() -> None:
    assert picks(SUM, shuffle(make(torch.ones(3, 4, dtype=torch.int64)), 0, 5))


def test_rows_are_long_in_every_dimension_and_several() -> None:
    shapes = {dim: tuple(shuffle(SAMPLE, dim).input.shape) for dim in range(3)}
    assert shapes == {0: (LONG, ROWS, 1), 1: (1, LONG, ROWS), 2: (ROWS, 1, LONG)}
    for dim in shapes:
        changed = shuffle(SAMPLE, dim)
        assert changed.input.unique().numel() == LONG * ROWS and changed.args == (0,)
        assert put_nan(changed).input.isnan().sum() == 1


def test_flags_are_turned_over_in_all_rows() -> None:
    labels = [label for label, _ in list_picked(TOPK, make(torch.randn(5, 5), 3))]
    assert labels == [
        f"long rows {what} in dimension {dim}{flag}"
        for dim in (0, 1)
        for flag in ("", ", with largest=False")
        for what in ("that differ", "with a NaN")
    ]


def sort_in_blocks(sample: SampleInput, merge: Callable[[torch.Tensor, bool], torch.Tensor]) -> list[torch.Tensor]:
    """What sorts the last dimension in blocks, which `merge` then joins."""
    descending = bool(sample.kwargs.get("descending", False))
    blocks = [part.sort(-1, descending=descending).values for part in sample.input.split(1024, -1)]
    return [merge(torch.cat(blocks, -1), descending)]


def test_merges_of_another_row_or_in_another_order_differ() -> None:
    found = dict(list_picked(SORT, make(torch.randn(5, 5), 1)))
    wrong = {
        "another row": lambda values, descending: values.sort(-1, descending=descending).values[[0] * len(values)],
        "another order": lambda values, descending: values.sort(-1).values,
    }
    for merge in wrong.values():
        differ = []
        for each in (each for label, each in found.items() if "reverse" not in label):
            want = SORT(each.input, *each.args, **each.kwargs).values
            differ += [not want.allclose(got, equal_nan=True) for got in sort_in_blocks(each, merge)]
        assert any(differ)


def test_samples_are_told_apart_by_rank_and_arguments() -> None:
    few = tell_apart([make(torch.ones(3)), make(torch.zeros(3)), make(torch.ones(3), 1), make(torch.ones(3, 2))])
    assert [(each.input.ndim, each.args) for each in few] == [(1, ()), (1, (1,)), (2, ())]
