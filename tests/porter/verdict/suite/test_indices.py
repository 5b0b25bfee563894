"""Samples with an index tensor varied: which there are, and that a wrong kernel differs in one of them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.arguments import keep_computed, keep_refused, keep_survived
from porter.verdict.suite.indices import (
    FAR,
    fill_with_numbers,
    keep_written_once,
    list_indices,
    list_sizes,
    put_at_ends,
    put_beyond,
    put_outside,
    vary_indices,
)
from tests.porter.verdict.suite.variations.shown import find_op, shows

SELECT = SampleInput(torch.randn(3, 5), args=(1, torch.tensor([4, 0, 2])))
ADD = SampleInput(torch.randn(3, 5), args=(1, torch.tensor([4, 0]), torch.randn(3, 2)), kwargs={"alpha": 2})


def _list_labels(op: Callable[..., Any], sample: SampleInput) -> list[str]:
    [place] = list_indices(sample)
    return [label for label, _ in keep_computed(op, vary_indices(sample, place))]


def test_index_tensors_are_integers_beside_an_input_of_another_type() -> None:
    assert list_indices(ADD) == [1]
    assert list_indices(SampleInput(torch.ones(2), kwargs={"index": torch.tensor([0])})) == ["index"]
    assert list_indices(SampleInput(torch.tensor([1, 2]), args=(torch.tensor([0]),))) == []
    assert list_indices(SampleInput(torch.ones(2), args=(torch.tensor([], dtype=torch.int64),))) == []


def test_what_the_cpu_computes_of_varied_indices() -> None:
    assert _list_labels(torch.index_select, SELECT) == [
        "1 empty, others in dimension 0",
        "300 equal of 1, others in dimension 0",
    ]
    assert _list_labels(torch.index_add, ADD) == [
        "1 empty, others in dimension 1",
        "300 equal of 1, others in dimension 1",
    ]
    labels = _list_labels(torch.index_fill, SampleInput(torch.randn(3, 5), args=(0, torch.tensor([2, 0]), 1.5)))
    assert labels[0] == "1 counted from the end of 3"


def test_an_index_far_outside_is_asked_for_where_the_cpu_ignores_it() -> None:
    sample = SampleInput(torch.randn(3, 2), args=(torch.tensor([1, 0, 1]), 4, -1, False))
    backward = torch.ops.aten.embedding_dense_backward
    assert "0 far outside" in _list_labels(backward, sample)
    assert "1 far outside" not in _list_labels(torch.index_select, SELECT)


def test_elements_that_go_to_one_place_are_all_one() -> None:
    many = dict(vary_indices(ADD, 1))["300 equal of 1, others in dimension 1"]
    assert many.args[1].unique().tolist() == [4] and many.args[2].eq(1).all()
    assert torch.index_add(torch.zeros(3, 5), *many.args)[:, 4].tolist() == [300.0] * 3


def test_every_second_index_is_counted_from_the_end() -> None:
    counted = dict(vary_indices(SELECT, 1))["1 counted from the end of 5"]
    assert counted.args[1].tolist() == [-1, 0, -3] and counted.args[0] == 1


def test_tensors_whose_values_the_cpu_does_not_check_are_left_out() -> None:
    def read_unchecked(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        if int(index[0]) > FAR:
            os.kill(os.getpid(), signal.SIGKILL)
        return x[index]

    sample = SampleInput(torch.ones(3), args=(torch.tensor([1]),))
    assert not list(keep_survived(read_unchecked, [("", put_outside(sample, 0))]))
    select = SampleInput(torch.ones(3), args=(0, torch.tensor([1])))
    assert list(keep_survived(torch.index_select, [("", put_outside(select, 1))]))


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_a_kernel_that_reads_some_bits_of_an_index_differs(bits: int) -> None:
    def add_rows(sample: SampleInput, bits: int) -> torch.Tensor:
        kept = sample.args[0] % 2**bits if bits < 64 else sample.args[0]
        inside = (kept >= 0) & (kept < 4)
        return torch.zeros(4, 2).index_add(0, kept[inside], sample.input[inside])

    sample = SampleInput(torch.randn(3, 2), args=(torch.tensor([1, 0, 1]),))
    found = [each for _, each in vary_indices(sample, 0) if each.args[0].shape == (3,)]
    assert any(not add_rows(each, bits).equal(add_rows(each, 64)) for each in found)


def test_an_index_just_beyond_is_one_that_the_cpu_refuses() -> None:
    assert list_sizes(ADD) == [3, 5] and not list_sizes(SampleInput(torch.tensor(1.0)))
    assert [label for label, _ in keep_refused(torch.index_add, put_beyond(ADD, 1, 5))] == [
        "1 with 5 of 5",
        "1 with -6 of 5",
    ]
    assert [label for label, _ in keep_refused(torch.index_add, put_beyond(ADD, 1, 3))] == ["1 with -4 of 3"]
    beyond = dict(put_beyond(ADD, 1, 5))["1 with 5 of 5"]
    assert beyond.args[1].tolist() == [5, 0] and ADD.args[1].tolist() == [4, 0]


def test_a_count_that_goes_with_a_size_is_no_index() -> None:
    torch.randn(1 << 20).exp()  # starts threads, which a forked process has not
    repeats = SampleInput(torch.randn(4), args=(torch.tensor([0, 1, 2, 3]),), kwargs={"output_size": 6})
    assert len(list(keep_computed(torch.repeat_interleave, put_at_ends(repeats, 0, 4)))) == 1
    assert len(list(keep_computed(torch.index_add, put_at_ends(ADD, 1, 5)))) == 2


def drop_ignored(logits: torch.Tensor, target: torch.Tensor, **named: Any) -> torch.Tensor:
    """A mean of losses that is zero where all are ignored."""
    loss = F.nll_loss(logits, target, **named)
    result: torch.Tensor = loss.nan_to_num() if named.get("reduction", "mean") == "mean" else loss
    return result


@pytest.mark.parametrize("number", [-100, 1, 2])
def test_every_target_is_one_that_is_ignored(number: int) -> None:
    op = find_op("nn.functional.nll_loss")
    sample = SampleInput(torch.rand(2, 3).log(), args=(torch.tensor([0, 2]),), kwargs={"ignore_index": number})
    varied = [each for _, each in keep_computed(op, fill_with_numbers(op, sample, 0))]
    assert any(shows(op, drop_ignored, each) for each in varied) and not shows(op, drop_ignored, sample)


def test_every_index_is_a_number_of_the_call() -> None:
    op = find_op("index_select")
    labels = [label for label, _ in fill_with_numbers(op, SELECT, 1)]
    assert labels == ["all of 1 1", "all of 1 1, infinite"]


def test_what_is_ignored_is_not_multiplied_by_zero() -> None:
    def multiply(logits: torch.Tensor, target: torch.Tensor, **named: Any) -> Any:
        kept = target != named["ignore_index"]
        losses = -logits.gather(1, torch.where(kept, target, 0)[:, None])[:, 0] * kept
        return losses.sum()

    op = find_op("nn.functional.nll_loss")
    named = {"ignore_index": 1, "reduction": "sum"}
    sample = SampleInput(torch.rand(2, 3).log(), args=(torch.tensor([0, 1]),), kwargs=named)
    varied = [each for _, each in keep_computed(op, fill_with_numbers(op, sample, 0))]
    assert any(shows(op, multiply, each) for each in varied) and not shows(op, multiply, sample)


X, INDEX, SOURCE = torch.randn(5, 5), torch.tensor([[0, 3, 1], [2, 4, 0]]), torch.randn(2, 3)
EXPANDED = INDEX[:, :1].expand(2, 3)


@pytest.mark.parametrize(
    ("op", "args", "is_kept"),
    [
        (torch.scatter, (1, INDEX, SOURCE), True),
        (torch.scatter, (1, EXPANDED, SOURCE), False),
        (torch.scatter, (0, INDEX[:, :1].repeat(1, 3) * 0 + 1, SOURCE), False),
        (torch.scatter, (1, EXPANDED, SOURCE[:, :1].expand(2, 3)), True),
        (torch.scatter, (0, EXPANDED, SOURCE), True),
        (torch.scatter, (0, EXPANDED * 0, SOURCE[:, :1].expand(2, 3)), False),
        (torch.scatter_add, (1, EXPANDED, SOURCE), True),
        (torch.gather, (1, EXPANDED), True),
        (torch.index_copy, (1, torch.tensor([2]).expand(5), X.flip(0)), False),
        (torch.index_add, (1, torch.tensor([2]).expand(5), X.flip(0)), True),
        (torch.index_select, (0, torch.tensor([2]).expand(5)), True),
        (F.cross_entropy, (torch.tensor([1]).expand(5), torch.rand(5)), True),
    ],
)  # fmt: skip
def test_no_layout_lets_elements_race_for_one_place(
    op: Callable[..., Any], args: tuple[Any, ...], is_kept: bool
) -> None:
    """A right port of scatter failed for a race in a sample whose result nobody defines."""
    varied = [("expanded", SampleInput(X, args=args))]
    assert bool(list(keep_written_once(op, varied))) == is_kept
