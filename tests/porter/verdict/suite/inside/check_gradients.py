"""Results of an operator that has several, each compared as one alone is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch.testing._internal.opinfo.core import SampleInput

import aten_overlay
from porter.verdict.suite import counters, results
from porter.verdict.suite.gradients import Gradients

device = aten_overlay.start()


class Suite(Gradients):
    """One test, of which only what it notes is asked."""

    opinfos: Any = SimpleNamespace(
        tolerances=lambda *_: {"rtol": 1e-3, "atol": 1e-3}, context=SimpleNamespace(count_ported=lambda _: 0)
    )
    elements = 0

    def test_results(self) -> None: ...


@pytest.fixture(autouse=True)
def counted() -> Any:
    counters.install(dict, device.fallbacks)


@pytest.mark.parametrize(("cpu", "mps", "is_wrong"), [(0.25, 0.0, False), (0.0, 0.25, True)])
def test_a_result_in_half_is_right_that_matches_float64_where_the_cpu_does_not(
    cpu: float, mps: float, is_wrong: bool
) -> None:
    def two(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        error = (mps if x.device.type == "mps" else cpu) if x.dtype == torch.float16 else 0.0
        return x * 2, x * 3 + error

    suite = Suite("test_results")  # type: ignore[no-untyped-call]
    sample = SampleInput(torch.ones(2, 3, dtype=torch.float16, requires_grad=True))
    suite.match_slopes(two, torch.float16, sample, "mps")  # type: ignore[arg-type]
    found = results.get_record("test_results").findings
    assert ["are not close" in each.what for each in found] == [True] * is_wrong
    found.clear()


class Doubled(torch.autograd.Function):
    """Twice a tensor, with a gradient that is off in half."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, cpu: float, mps: float) -> torch.Tensor:
        ctx.error = (mps if x.device.type == "mps" else cpu) if x.dtype == torch.float16 else 0.0
        return x * 2

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return grads[0] * 2 + ctx.error, None, None


@pytest.mark.parametrize(
    ("label", "cpu", "mps", "is_wrong"),
    [
        ("varied: ", 0.5, 1.0, False),
        ("varied: ", 0.5, 3.0, True),  # more than the CPU's errors allow
        ("varied: ", 0.0, 0.5, True),  # the CPU's are within the tolerance
        ("", 0.5, 1.0, True),
    ],
)
def test_gradients_of_a_varied_sample_may_be_as_far_off_as_the_cpus(
    label: str, cpu: float, mps: float, is_wrong: bool
) -> None:
    suite = Suite("test_results")  # type: ignore[no-untyped-call]
    sample = SampleInput(torch.ones(2, 3, dtype=torch.float16, requires_grad=True), args=(cpu, mps))
    suite.match_slopes(Doubled.apply, torch.float16, sample, "mps", label)  # type: ignore[arg-type]
    found = results.get_record("test_results").findings
    assert len(found) == is_wrong
    found.clear()
