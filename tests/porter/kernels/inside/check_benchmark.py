"""`benchmark`: what is run, what is remembered, and what the report says. Nothing here is about time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from expecttest import assert_expected_inline

from porter.kernels import MetalKernel, MetalParameter, TorchMetalKernel
from porter.kernels import benchmark as benchmarks
from porter.kernels.benchmark import BenchmarkReport, Measurement, Timing, benchmark

GROUP = "out[thread_position_in_grid.x] = threads_per_threadgroup.x;"
COPY = "uint i = thread_position_in_grid.x; out[i] = x[i];"


def in_turn(*seconds: float) -> Callable[[Callable[[], object]], float]:
    """A measure that runs what it is given once, and takes these seconds one after the other."""
    left = list(seconds)

    def measure(function: Callable[[], object]) -> float:
        function()
        return left.pop(0)

    return measure


def test_groups_are_sorted_and_compared_with_torch() -> None:
    kernel = MetalKernel("copy", ["x"], ["out"], COPY, reference=torch.clone)
    report = benchmark(
        "copy", kernel._run_in_groups, torch.clone, [[torch.ones(4)]], [(2, 1, 1), (4, 1, 1)], in_turn(3, 1, 2)
    )
    (measurement,) = report.measurements
    assert measurement.timings == (Timing((4, 1, 1), 1), Timing((2, 1, 1), 3))
    assert measurement.best.group == (4, 1, 1) and measurement.ratio == 0.5
    assert measurement.inputs == "float32[4]"


def test_a_group_that_changes_the_result_is_left_out() -> None:
    kernel = MetalKernel("group", ["x"], ["out"], GROUP, reference=torch.clone)
    groups = [(4, 1, 1), (2, 1, 1), (8, 1, 1)]
    report = benchmark("group", kernel._run_in_groups, torch.clone, [[torch.ones(4)]], groups, in_turn(1, 2, 3))
    assert [t.group for t in report.measurements[0].timings] == [(4, 1, 1), (8, 1, 1)]  # 8 is cut to the grid


def test_the_best_group_is_remembered_for_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    def record_run(name: str, run: Any, reference: Any, examples: Any, groups: Any) -> BenchmarkReport:
        best = ((64, 1, 1), (32, 1, 1))
        return BenchmarkReport(name, "", tuple(Measurement("", (Timing(group, 1),), 1) for group in best))

    # The package has a function of the module's name.
    monkeypatch.setattr(sys.modules["porter.kernels.metal_kernel"], "benchmark", record_run)
    kernel = MetalKernel("group", ["x"], ["out"], GROUP, reference=torch.clone)
    small, large, other = (torch.ones(n, device="mps") for n in (256, 512, 1024))
    kernel.benchmark([[small], [large]])
    got = [int(torch.as_tensor(kernel.run(x))[0]) for x in (small, large, other)]
    assert got == [64, 32, 256]


def test_a_launch_that_sets_the_group_is_not_swept() -> None:
    kernel = MetalKernel("copy", ["x"], ["out"], COPY, reference=torch.clone,
                         launch=lambda x: {"threadgroup": (4, 1, 1)})  # fmt: skip
    (measurement,) = kernel.benchmark([[torch.ones(4)]]).measurements
    assert [timing.group for timing in measurement.timings] == [None]
    swept = MetalKernel("copy", ["x"], ["out"], COPY, reference=torch.clone).benchmark([[torch.ones(4)]])
    assert {timing.group for timing in swept.measurements[0].timings} == set(benchmarks.GROUPS)


TRIPLE = TorchMetalKernel(
    "triple", ["x"], ["y"], "y[at] = 3 * x[at];", lambda x: 3 * x,
    [MetalParameter("at", "uint", "thread_position_in_grid")],
)  # fmt: skip


def over_all(x: torch.Tensor) -> dict[str, Any]:
    return {"threads_per_grid": (x.numel(), 1, 1), "result_shapes": [x.shape]}


def test_a_torch_metal_kernel_is_swept_unless_its_launch_or_a_list_says_otherwise() -> None:
    def in_twos(x: torch.Tensor) -> dict[str, Any]:
        return {**over_all(x), "threads_per_thread_group": (2, 1, 1)}

    (swept,) = TRIPLE.benchmark([[torch.ones(64)]], over_all).measurements
    assert {timing.group for timing in swept.timings} == set(benchmarks.GROUPS) and swept.inputs == "float32[64]"
    (fixed,) = TRIPLE.benchmark([[torch.ones(64)]], in_twos).measurements
    assert [timing.group for timing in fixed.timings] == [None]
    (listed,) = TRIPLE.benchmark([[torch.ones(64)]], in_twos, groups=[(4, 1, 1)]).measurements
    assert [timing.group for timing in listed.timings] == [(4, 1, 1)]


def test_the_report_is_printed() -> None:
    report = BenchmarkReport(
        "silu",
        "the stand-in",
        (
            Measurement("float32[10]", (Timing((64, 1, 1), 1e-6),), 2e-6),
            Measurement("float32[20], 0.5", (Timing(None, 4e-6),), 2e-6),
        ),
    )
    assert_expected_inline(
        str(report),
        """\
silu on the stand-in: seconds of the kernel / seconds of torch
    ratio         kernel          torch  threadgroup  inputs
     0.50         1.0 us         2.0 us  64x1x1       float32[10]
     2.00         4.0 us         2.0 us  as launched  float32[20], 0.5""",
    )
