"""Samples with one tensor cut: which there are, and what the CPU is believed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

from porter.verdict.suite import results
from porter.verdict.suite.arguments import keep_computed
from porter.verdict.suite.consistency import Consistency, Refused
from porter.verdict.suite.cuts import cut_operands, list_expanded, reaches_beyond, stay_inside

INDEX = torch.tensor([[0, 1, 0], [1, 0, 1]])


def make(*given: Any) -> SampleInput:
    return SampleInput(given[0], args=given[1:])


def test_each_tensor_is_cut_in_each_dimension_that_keeps_several() -> None:
    cut = dict(cut_operands(make(torch.ones(2, 3), 0, torch.ones(1, 4))))
    shapes = {label: (tuple(each.input.shape), tuple(each.args[1].shape)) for label, each in cut.items()}
    assert shapes == {
        "tensor 0 cut in dimension 1": ((2, 2), (1, 4)),
        "tensor 1 cut in dimension 1": ((2, 3), (1, 3)),
    }
    assert not list(cut_operands(make(torch.ones(2, 3), 0)))


def test_what_the_cpu_computes_of_cut_operands() -> None:
    varied = cut_operands(make(torch.zeros(3, 4), 1, INDEX, torch.ones(3, 4)))
    assert [label for label, _ in keep_computed(stay_inside(torch.scatter), varied)] == [
        "tensor 0 cut in dimension 0",
        "tensor 0 cut in dimension 1",
        "tensor 1 cut in dimension 1",
        "tensor 2 cut in dimension 0",
        "tensor 2 cut in dimension 1",
    ]


def test_a_kernel_that_reads_by_the_sizes_of_another_operand_differs() -> None:
    def scatter_by_source(x: torch.Tensor, dim: int, index: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
        return x.scatter(dim, index, source.flatten()[: index.numel()].view(index.shape))

    sample = make(torch.zeros(2, 4), 1, INDEX, torch.rand(2, 3))
    assert scatter_by_source(sample.input, *sample.args).equal(torch.scatter(sample.input, *sample.args))
    cut = [each for _, each in keep_computed(torch.scatter, cut_operands(sample))]
    assert any(not scatter_by_source(e.input, *e.args).equal(torch.scatter(e.input, *e.args)) for e in cut)


def test_what_the_cpu_expands() -> None:
    def names(op: Any, *given: Any) -> list[str]:
        return [label.removeprefix("tensor ") for label, _ in list_expanded(op, make(*given))]

    x, y = torch.rand(2, 3), torch.rand(1, 3)
    assert names(torch.sub, x, x.clone()) == [
        "0 expanded in dimension 0",
        "0 expanded in dimension 1",
        "1 expanded in dimension 0",
        "1 expanded in dimension 1",
    ]
    assert names(torch.sub, x, y) == ["0 expanded in dimension 1", "1 expanded in dimension 1"]
    assert names(torch.cdist, torch.rand(4, 2, 3), torch.rand(4, 5, 3)) == [
        "0 expanded in dimension 0",
        "1 expanded in dimension 0",
    ]
    assert not names(torch.mm, x, torch.rand(3, 2)) and not names(torch.sum, x)


def test_a_kernel_of_the_cpu_that_reaches_beyond_its_operands_is_not_believed() -> None:
    def read_beyond(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return x + other.as_strided(x.shape, x.stride())

    def write_beyond(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        other.as_strided((len(other) + 1,), (1,)).fill_(1)
        return x.clone()

    whole, buffer = torch.ones(3), torch.ones(3)
    assert stay_inside(read_beyond)(whole, whole).eq(2).all()
    with pytest.raises(ValueError, match="beyond its operands"):
        stay_inside(read_beyond)(whole, buffer[:2])
    with pytest.raises(ValueError, match="beyond its operands"):
        stay_inside(write_beyond)(whole, buffer[:2])


def _update_beyond(x: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
    """What a running mean has of NaN is NaN again, and no result depends on it."""
    mean.as_strided((len(x),), (1,)).mul_(0.9).add_(0.1 * x)
    return x * 2


def _compare_beyond(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """No number is equal to NaN, nor is it greater."""
    return x + (other.as_strided((len(x),), (1,)) > 0.5).sum()


def _write_what_is_beyond(x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """An operand gets what a result does not show."""
    x.copy_(other.as_strided((len(x),), (1,)))
    return other * 2


@pytest.mark.parametrize("kernel", [_update_beyond, _compare_beyond, _write_what_is_beyond])
def test_what_nan_beyond_an_operand_does_not_show_is_seen(kernel: Any) -> None:
    whole = torch.zeros(3)
    stay_inside(kernel)(whole, torch.zeros(3))
    with pytest.raises(ValueError, match="beyond its operands"):
        stay_inside(kernel)(whole, torch.zeros(2))
    assert not list(keep_computed(stay_inside(kernel), cut_operands(make(whole, torch.zeros(3)))))[1:]


def test_a_running_mean_that_is_cut_is_no_sample_of_a_normalization() -> None:
    def normalize(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.batch_norm(x, mean, var, training=True)

    sample = make(torch.randn(4, 5, 3), torch.zeros(5), torch.ones(5))
    labels = [label for label, _ in keep_computed(stay_inside(normalize), cut_operands(sample))]
    assert not [label for label in labels if not label.startswith("tensor 0")]


class _Scattered:
    """An operator whose kernel on the CPU goes by the size of its first operand."""

    name = "scattered"

    def __call__(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return x + other.as_strided(x.shape, x.stride())


def test_results_of_what_reaches_beyond_its_operands_are_told_from_random_ones() -> None:
    whole, buffer = torch.ones(3), torch.ones(3)
    assert reaches_beyond(_Scattered(), make(whole, buffer[:2]))
    assert not reaches_beyond(_Scattered(), make(whole, whole))
    assert not reaches_beyond(lambda x: torch.rand_like(x), make(whole))
    assert not reaches_beyond(lambda x: x.sum(dim=7), make(whole))  # the CPU refuses it


def test_a_sample_on_which_the_cpu_reaches_beyond_is_a_finding() -> None:
    operator, name = _Scattered(), "assertTrue"
    test = Consistency(name)  # type: ignore[no-untyped-call]
    results.records.pop(name, None)
    test.require_own_memory(operator, make(torch.ones(3), torch.ones(3)))  # type: ignore[arg-type]
    assert not results.get_record(name).fork_findings
    with pytest.raises(Refused, match="reaches beyond the operands of scattered"):
        test.require_own_memory(operator, make(torch.ones(3), torch.ones(3)[:2]))  # type: ignore[arg-type]
    [finding] = results.get_record(name).fork_findings
    assert finding.what == "the CPU reaches beyond the operands of scattered, so that its results say nothing"
    results.records.pop(name)
