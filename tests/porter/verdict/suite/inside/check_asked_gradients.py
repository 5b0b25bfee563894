"""Gradients of some operands alone: which are asked for, and that a backward pass that returns early is found."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

import aten_overlay
from porter.verdict.suite import counters, results
from porter.verdict.suite.gradients import Gradients
from porter.verdict.suite.variations.asked_gradients import ask_for, list_asked, list_choices

device = aten_overlay.start()
SAMPLE = SampleInput(
    torch.randn(4, 3, requires_grad=True), args=(torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True))
)


class Norm(torch.autograd.Function):
    """Rows times a weight, and a bias: on the device with gradients as a port has them that has a fault."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, fault: str) -> torch.Tensor:
        context.save_for_backward(x, weight)
        context.fault = fault
        return x * weight + bias

    @staticmethod
    def backward(context: Any, *slopes: torch.Tensor) -> Any:
        [slope], (x, weight) = slopes, context.saved_tensors
        mask = context.needs_input_grad[:3]
        found = [slope * weight, (slope * x).sum(0), slope.sum(0)]
        if slope.device.type == "mps":
            if context.fault == "returns for the first" and not mask[0]:
                found = [torch.full_like(each, 7.0) for each in found]
            if context.fault == "leaves the last to the second" and not mask[1]:
                found[2].fill_(7.0)
            if context.fault == "needs all" and not all(mask):
                found[0].zero_()
        return (*(each if asked else None for each, asked in zip(found, mask, strict=True)), None)


class Suite(Gradients):
    """One test, of which only what it notes is asked."""

    opinfos: Any = SimpleNamespace(
        tolerances=lambda *_: {"rtol": 1e-3, "atol": 1e-3},
        context=SimpleNamespace(through=(), through_backward=(), count_ported=lambda _: 0, has_before=False),
        reaching_samples=lambda *_, requires_grad: [SAMPLE],
    )
    elements = answers = 0

    def test_asked(self) -> None: ...


@pytest.fixture(autouse=True)
def counted() -> Any:
    counters.install(dict, device.fallbacks)
    yield
    results.get_record("test_asked").findings.clear()


def normalize_with(fault: str) -> Any:
    return lambda x, weight, bias: Norm.apply(x, weight, bias, fault)  # type: ignore[no-untyped-call]


def list_wrong(fault: str) -> list[str]:
    """The labels of the samples in which a fault shows."""
    suite, normalize = Suite("test_asked"), normalize_with(fault)  # type: ignore[no-untyped-call]
    wrong = []
    for label, sample in list_asked(suite.opinfos, normalize, torch.float32):
        before = len(results.get_record("test_asked").findings)
        suite.match_slopes(normalize, torch.float32, sample, "mps", label)
        wrong += [label] if len(results.get_record("test_asked").findings) > before else []
    return [label.removeprefix("gradients of operands ").removesuffix(" alone") for label in wrong]


@pytest.mark.parametrize(
    ("fault", "wrong"),
    [
        ("", []),
        ("returns for the first", ["1", "2", "1, 2"]),
        ("leaves the last to the second", ["2", "0, 2"]),
        ("needs all", ["0", "0, 2", "0, 1"]),
    ],
)
def test_a_backward_pass_that_takes_one_gradient_for_all_is_found(fault: str, wrong: list[str]) -> None:
    assert list_wrong(fault) == wrong


def test_none_is_found_of_samples_that_ask_for_all() -> None:
    suite = Suite("test_asked")  # type: ignore[no-untyped-call]
    for fault in ("returns for the first", "leaves the last to the second", "needs all"):
        suite.match_slopes(normalize_with(fault), torch.float32, SAMPLE, "mps", fault)
    assert not results.get_record("test_asked").findings


def test_choices_are_not_tried_twice() -> None:
    assert list_choices(2) == [(0,), (1,)]
    assert list_choices(3) == [(0,), (1,), (2,), (1, 2), (0, 2), (0, 1)]
    assert len(list_choices(100)) == 8 and (0,) in list_choices(100)


def test_what_is_not_differentiable_is_not_asked_for() -> None:
    sample = SampleInput(torch.ones(2, requires_grad=True), args=(torch.ones(2), torch.ones(3, requires_grad=True)))
    asked = ask_for(sample, (1,))
    assert [each.requires_grad for each in (asked.input, *asked.args)] == [False, False, True]
