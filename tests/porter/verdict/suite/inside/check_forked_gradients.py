"""Samples are tried in forked processes, after autograd has run with a device."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo, SampleInput

import aten_overlay
from porter.verdict.suite import cpu_memory
from porter.verdict.suite.arguments import keep_computed
from porter.verdict.suite.gradients import differentiate

device = aten_overlay.start()


class Refusing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no gradient")


class Ending(Refusing):
    @staticmethod
    def backward(ctx: Any, slope: torch.Tensor) -> torch.Tensor:
        os._exit(1)


@pytest.fixture(autouse=True)
def used() -> None:
    """Autograd's engine starts its threads, after which it runs in no forked process."""
    torch.ones(2, requires_grad=True).sum().backward()


def find(name: str) -> OpInfo:
    return next(each for each in op_db if each.name == name)


def list_kept(function: Callable[..., Any]) -> list[str]:
    op = copy(find("exp"))
    op.op = function
    sample = SampleInput(torch.ones(2, requires_grad=True))
    return [label for label, _ in keep_computed(partial(differentiate, op), [("first", sample), ("second", sample)])]


@pytest.mark.parametrize("name", ["nn.functional.avg_pool2d", "nn.functional.layer_norm", "outer", "index_add"])
def test_what_the_cpu_differentiates_is_kept(name: str) -> None:
    op = find(name)
    samples = list(op.sample_inputs("cpu", torch.float32, requires_grad=True))
    varied = [(str(i), each) for i, each in enumerate(samples)]
    assert len(list(keep_computed(partial(differentiate, op), varied))) == len(samples) > 0


def test_what_raises_an_error_backward_is_not_kept() -> None:
    assert list_kept(torch.exp) == ["first", "second"]
    assert list_kept(Refusing.apply) == []


def test_what_ends_its_process_backward_is_not_kept() -> None:
    assert list_kept(Ending.apply) == []


@pytest.fixture
def watched() -> Iterator[None]:
    cpu_memory.install(device.watch_cpu_memory, device.has_damaged_cpu_memory)
    yield
    cpu_memory.install(lambda filling: None, lambda: False)


@pytest.mark.usefixtures("watched")
def test_what_writes_beyond_its_result_is_not_kept() -> None:
    image = torch.ones(1, 1, 2, 2)

    def pool_backward(positions: torch.Tensor) -> Any:
        pool = torch.ops.aten.max_pool2d_with_indices_backward
        return pool(image, image, [1, 1], [1, 1], [0, 0], [1, 1], False, positions)

    def put(last: int) -> SampleInput:
        return SampleInput(torch.tensor([0, 1, 2, last]).view(1, 1, 2, 2))

    samples = [("beyond", put(4)), ("inside", put(3)), ("before", put(-2)), ("inside again", put(0))]
    assert [label for label, _ in keep_computed(pool_backward, samples)] == ["inside", "inside again"]


@pytest.mark.usefixtures("watched")
def test_what_leaves_a_part_of_its_result_unwritten_is_not_kept() -> None:
    def pad(image: torch.Tensor, by: tuple[int, ...]) -> torch.Tensor:
        return torch.nn.functional.pad(image, by, mode="circular")

    image = torch.ones(1, 2, 4, 4)
    varied = [(str(by), SampleInput(image, args=(by,))) for by in ((0, 0, 2, -4), (1, 1, 1, 1))]
    assert [label for label, _ in keep_computed(pad, varied)] == ["(1, 1, 1, 1)"]


@pytest.mark.usefixtures("watched")
def test_what_needs_more_memory_than_a_machine_may_have_is_not_kept() -> None:
    varied = [(str(most), SampleInput(torch.tensor([most]))) for most in (5, 1 << 29, 7)]
    assert [label for label, _ in keep_computed(torch.bincount, varied)] == ["5", "7"]
