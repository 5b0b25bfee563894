"""Samples without elements in a dimension: which there are, and which of them results have elements of."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.empty_rows import empty_dimensions, has_other_bools, list_empty_rows


def test_each_dimension_is_emptied_of_all_tensors_of_the_inputs_shape() -> None:
    sample = SampleInput(torch.ones(2, 3), args=(torch.ones(2, 3), torch.ones(3), 1))
    found = dict(empty_dimensions(sample))
    shapes = {
        label: [tuple(each.input.shape), *(tuple(x.shape) for x in each.args[:2])] for label, each in found.items()
    }
    assert shapes == {
        "no elements in dimension 0": [(0, 3), (0, 3), (3,)],
        "no elements in dimension 1": [(2, 0), (2, 0), (3,)],
        "no elements in dimension 1, counted from the last": [(2, 0), (2, 0), (0,)],
    }
    assert sample.input.shape == (2, 3) and all(each.args[2] == 1 for each in found.values())
    for none in (SampleInput(torch.ones(())), SampleInput(torch.ones(2, 0)), SampleInput([torch.ones(2)])):
        assert not list(empty_dimensions(none))


def test_results_have_elements_of_rows_alone() -> None:
    def names(op: object, **arguments: object) -> list[str]:
        found = list_empty_rows(op, SampleInput(torch.ones(2, 3), kwargs=arguments))  # type: ignore[arg-type]
        return [label[-1] for label, _ in found]

    assert names(torch.any, dim=1) == ["1"]
    assert names(torch.sum) == ["0", "1"]
    assert names(torch.max, dim=1) == []  # the CPU refuses it
    assert names(torch.cumsum, dim=1) == []  # no element


def test_bools_that_nobody_wrote() -> None:
    unwritten = torch.full((2, 3), 0xCB, dtype=torch.uint8).view(torch.bool)
    assert has_other_bools((torch.ones(2), [unwritten])) and has_other_bools(unwritten.t())
    assert unwritten.equal(torch.ones(2, 3, dtype=torch.bool)) or bool(unwritten.all())  # values do not tell
    assert not has_other_bools((torch.tensor([True, False]), torch.full((2,), 7, dtype=torch.uint8), None))


def zero_mean(logits: torch.Tensor, target: torch.Tensor, **named: object) -> torch.Tensor:
    """A mean of losses that is zero where there are none."""
    return F.nll_loss(logits, target, **named) if target.numel() else torch.zeros(())  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 5), (2, 3, 5, 7)])
def test_targets_are_empty_with_what_they_name(shape: tuple[int, ...]) -> None:
    target = torch.zeros(shape[:1] + shape[2:], dtype=torch.int64)
    sample = SampleInput(torch.rand(shape).log(), args=(target,))
    varied = [each for _, each in list_empty_rows(F.nll_loss, sample)]
    assert varied and all(F.nll_loss(each.input, *each.args).isnan() for each in varied)
    assert not any(zero_mean(each.input, *each.args).isnan() for each in varied)
