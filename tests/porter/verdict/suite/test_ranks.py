"""Samples with another dimension: their shapes, and that a wrong stride of the third differs."""

from __future__ import annotations

from typing import Any

import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite.arguments import keep_computed
from porter.verdict.suite.ranks import add_dimensions

GATHER = SampleInput(torch.randn(3, 4), args=(1, torch.tensor([[0, 2], [2, 1], [1, 0]])))


def test_tensors_of_as_many_dimensions_get_another_with_the_input() -> None:
    sample = SampleInput(torch.randn(3, 4), args=(0, torch.tensor([2, 0]), torch.ones(2, 4)))
    found = dict(add_dimensions(sample))
    shapes = {label: [tuple(t.shape) for t in (each.input, *each.args[1:])] for label, each in found.items()}
    assert shapes == {
        "another first dimension": [(2, 3, 4), (2,), (2, 2, 4)],
        "another last dimension": [(3, 4, 2), (2,), (2, 4, 2)],
    }
    last = found["another last dimension"].input
    assert last[..., 0].equal(sample.input) and last[..., 1].equal(sample.input.flip(0, 1))


def test_samples_of_three_dimensions_or_none_or_no_elements_get_no_other() -> None:
    assert not list(add_dimensions(SampleInput(torch.ones(2, 0))))
    assert not list(add_dimensions(SampleInput(torch.ones(2, 3, 4))))
    assert not list(add_dimensions(SampleInput(torch.tensor(1.0))))


def test_a_wrong_stride_of_the_third_dimension_differs() -> None:
    def gather(x: torch.Tensor, dim: int, index: torch.Tensor) -> torch.Tensor:
        strides = [index.stride(min(each, 1)) for each in range(index.ndim)]
        flat = index.flatten()
        read = sum(
            torch.arange(size).view([-1 if each == d else 1 for each in range(index.ndim)]) * strides[d]
            for d, size in enumerate(index.shape)
        )
        assert isinstance(read, torch.Tensor)
        return torch.gather(x, dim, flat[read.clamp(max=len(flat) - 1)])

    def is_right(sample: SampleInput) -> bool:
        given: tuple[Any, ...] = (sample.input, *sample.args)
        return gather(*given).equal(torch.gather(*given))

    found = [each for _, each in keep_computed(torch.gather, add_dimensions(GATHER))]
    assert len(found) == 2 and is_right(GATHER) and not all(map(is_right, found))
