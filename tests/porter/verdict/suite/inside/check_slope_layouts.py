"""Gradients by layout: which the CPU takes, and that a kernel that reads them as dense memory is found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

import aten_overlay
from porter.verdict.suite import counters, results
from porter.verdict.suite.gradients import Gradients
from porter.verdict.suite.slope_layouts import SEEDS, make_dense_leaves, vary_operands, vary_seeds

device = aten_overlay.start()
SAMPLE = SampleInput(torch.randn(4, 3, requires_grad=True), args=(torch.randn(4, 3),))

IMAGE = SampleInput(torch.randn(2, 3, 4, 5, requires_grad=True), args=(torch.randn(2, 3, 4, 5),))


def read_dense(tensor: torch.Tensor) -> torch.Tensor:
    """What a kernel of the device reads that takes a tensor for dense."""
    if tensor.device.type == "cpu":
        return tensor
    flat = tensor.as_strided((tensor.untyped_storage().nbytes() // 4,), (1,), 0)
    return flat.repeat(tensor.numel())[: tensor.numel()].view(tensor.shape)


class Wrong(torch.autograd.Function):
    """A product whose gradient reads what comes in, or an operand, as dense memory."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, y: torch.Tensor, wrong: str) -> torch.Tensor:
        context.save_for_backward(y)
        context.wrong = wrong
        return x * y

    @staticmethod
    def backward(context: Any, *slopes: torch.Tensor) -> Any:
        [y] = context.saved_tensors
        [slope] = slopes
        return (read_dense(slope) * y if context.wrong == "slope" else slope * read_dense(y)), None, None


class Suite(Gradients):
    """One test, of which only what it notes is asked."""

    opinfos: Any = SimpleNamespace(
        tolerances=lambda *_: {"rtol": 1e-3, "atol": 1e-3},
        context=SimpleNamespace(through=(), through_backward=(), count_ported=lambda _: 0, has_before=False),
    )
    elements = answers = 0

    def test_layouts(self) -> None: ...


@pytest.fixture
def suite() -> Any:
    counters.install(dict, device.fallbacks)
    yield Suite("test_layouts")  # type: ignore[no-untyped-call]
    results.get_record("test_layouts").findings.clear()


def multiply(wrong: str) -> Any:
    return lambda x, y: Wrong.apply(x, y, wrong)  # type: ignore[no-untyped-call]


def test_gradients_that_come_in_have_every_layout(suite: Any) -> None:
    found = dict(vary_seeds(multiply("slope"), IMAGE))
    assert list(found) == list(SEEDS)
    for label, seeds in found.items():
        suite.match_slopes(multiply("slope"), torch.float32, IMAGE, "mps", label, seeds)
    assert len(results.get_record("test_layouts").findings) == len(SEEDS)


def test_gradients_of_fewer_dimensions_have_no_channels() -> None:
    assert SEEDS.keys() - dict(vary_seeds(multiply("slope"), SAMPLE)) == {"channels last"}


def test_operands_have_every_layout(suite: Any) -> None:
    found = dict(vary_operands(multiply("operand"), IMAGE))
    assert list(found) == ["transposed", "every second element", "storage offset", "channels last"]
    for label, each in found.items():
        dense = make_dense_leaves(each)
        suite.match_slopes(multiply("operand"), torch.float32, each, "mps", label, dense=dense)
    assert len(results.get_record("test_layouts").findings) == len(found)


def test_a_gradient_that_reads_strides_is_right(suite: Any) -> None:
    for label, seeds in vary_seeds(torch.mul, SAMPLE):  # type: ignore[arg-type]
        suite.match_slopes(torch.mul, torch.float32, SAMPLE, "mps", label, seeds)
    for label, each in vary_operands(torch.mul, SAMPLE):  # type: ignore[arg-type]
        suite.match_slopes(torch.mul, torch.float32, each, "mps", label, dense=make_dense_leaves(each))
    assert not results.get_record("test_layouts").findings


def test_layouts_that_the_cpu_refuses_are_left_out() -> None:
    class Dense(torch.autograd.Function):
        """Refuses gradients that are not dense."""

        @staticmethod
        def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
            return x.clone()

        @staticmethod
        def backward(context: Any, *slopes: torch.Tensor) -> Any:
            return slopes[0].view(-1).view(slopes[0].shape)

    sample = SampleInput(torch.randn(4, 3, requires_grad=True))
    assert [label for label, _ in vary_seeds(Dense.apply, sample)] == [  # type: ignore[arg-type]
        "every second element",
        "storage offset",
        "expanded from one element",
    ]


def test_a_layout_that_changes_nothing_is_not_tried_again() -> None:
    sample = SampleInput(torch.randn((), requires_grad=True))
    assert [label for label, _ in vary_seeds(torch.sin, sample)] == ["storage offset"]  # type: ignore[arg-type]
