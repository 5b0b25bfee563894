"""`check` passes what is right and fails what is planted."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch
from expecttest import assert_expected_inline

from porter.core.errors import PorterError
from porter.kernels import MetalKernel, MetalParameter, TorchMetalKernel, differentiate
from porter.kernels.check import CheckReport, Outcome


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


COPY = "uint i = thread_position_in_grid.x; out[i] = x[i];"
ROWS = """
  uint row = threadgroup_position_in_grid.x, lane = thread_index_in_threadgroup, n = x_shape[1];
  threadgroup float sums[64];
  float sum = 0;
  for (uint i = lane; i < n; i += 64) sum += float(x[row * n + i]);
  sums[lane] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) {
    float total = 0;
    for (uint k = 0; k < 64; ++k) total += sums[k];
    out[row] = T(total);
  }
"""


def copy(body: str = COPY, **rest: Any) -> MetalKernel:
    return MetalKernel("copy", ["x"], ["out"], body, reference=torch.clone, **rest)


def row_sums(body: str) -> MetalKernel:
    return MetalKernel(
        "row_sums", ["x"], ["out"], body, reference=lambda x: x.sum(1),
        launch=lambda x: {"grid": (64 * x.shape[0], 1, 1), "threadgroup": (64, 1, 1), "template": {"T": x.dtype}},
    )  # fmt: skip


def outcomes(report: CheckReport) -> dict[str, Outcome]:
    return {result.case: result.outcome for result in report.results}


def test_a_right_kernel_passes_every_case() -> None:
    report = copy().check([torch.randn(4, 6)])
    assert report.passed and report.checked
    assert set(outcomes(report).values()) == {Outcome.PASS}
    assert_expected_inline(
        " ".join(outcomes(report)),
        """as given float32 float16 bfloat16 transposed every second element storage offset column slice expanded 4 -> 0 4 -> 1 4 -> 5 4 -> 43 6 -> 0 6 -> 1 6 -> 7 6 -> 47 large float32 large float16 large bfloat16 threadgroups of 1 threadgroups of 31 threadgroups of 32 threadgroups of 33 threadgroups of 65 threadgroups of 1024""",
    )


def test_a_reduction_with_barriers() -> None:
    report = row_sums(ROWS).check([torch.randn(3, 70)])
    assert report.passed, str(report)


def test_sums_that_cancel() -> None:
    x = torch.randn(3, 35)
    report = row_sums(ROWS).check([torch.cat([x, -x.roll(7, 1)], 1)])
    assert report.passed, str(report)


@pytest.mark.parametrize(
    ("body", "case", "message"),
    [
        (
            "uint i = thread_position_in_grid.x; out[i] = x[i + 1];",
            "storage offset",
            "PTR264 kernel `copy` reads 4 bytes out of bounds of argument `x`",
        ),
        ("uint i = thread_position_in_grid.x; if (i % 5) out[i] = x[i];", "as given", r"out\[0, 0\]"),
        (
            "uint i = thread_position_in_grid.x; if (i < 24) out[i] = x[i];",
            "4 -> 5",
            r"PTR263 .*out\[4, 0\], nor 5 more",
        ),
        ("uint i = thread_position_in_grid.x; out[i] = half(x[i]);", "as given", "is .*, not"),
        ("uint i = thread_position_in_grid.x; out[i] = min(float(x[i]), 500.0f);", "large float32", "is 500.0, not"),
    ],
)
def test_a_planted_fault_fails(body: str, case: str, message: str) -> None:
    report = copy(body).check([torch.randn(4, 6)], dtypes=[torch.float32])
    found = next(r for r in report.results if r.case == case)
    assert not report.passed and found.outcome is Outcome.FAIL
    assert re.search(message, found.message), found.message


def test_a_missing_barrier_fails() -> None:
    report = row_sums(ROWS.replace("threadgroup_barrier(mem_flags::mem_threadgroup);", "")).check([torch.randn(3, 70)])
    assert not report.passed


def test_a_wrong_gradient_fails() -> None:
    right = copy(vjp=differentiate(torch.clone)).check([torch.randn(4, 6)])
    wrong = copy(vjp=lambda p, c, o: 2 * c).check([torch.randn(4, 6)])
    assert right.passed and outcomes(right)["gradients"] is Outcome.PASS
    assert [case for case, outcome in outcomes(wrong).items() if outcome is Outcome.FAIL] == ["gradients"]


def test_fixed_lengths_stay() -> None:
    assert not any(case.startswith("6 ->") for case in outcomes(copy().check([torch.randn(4, 6)], fixed=[6])))


def test_cases_that_the_reference_or_the_kernel_declines_are_not_counted() -> None:
    def only_six(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 6).reshape(x.shape).clone()

    kernel = MetalKernel("copy", ["x"], ["out"], COPY, reference=only_six, ensure_row_contiguous=False)
    report = kernel.check([torch.randn(4, 6)])
    assert report.passed
    assert outcomes(report)["6 -> 1"] is Outcome.REFUSED
    assert outcomes(report)["transposed"] is Outcome.REFUSED


def test_without_a_reference_there_is_nothing_to_check() -> None:
    with pytest.raises(PorterError, match="PTR221"):
        MetalKernel("copy", ["x"], ["out"], COPY).check([torch.randn(4)])


@pytest.mark.parametrize(("last", "passed"), [("N", True), ("N - 1", False)])
def test_a_kernel_of_core_ai(last: str, passed: bool) -> None:
    kernel = TorchMetalKernel(
        "transpose", ["A"], ["B"],
        f"const uint N = A.get_extent(0); if (g.x < {last} && g.y < A.get_extent(1)) B[g.y, g.x] = A[g.x, g.y];",
        lambda a: a.t().clone(), metal_params=[MetalParameter("g", "uint2", "thread_position_in_grid")],
    )  # fmt: skip
    report = kernel.check([torch.randn(4, 6)], lambda a: {
        "threads_per_grid": (a.shape[1], a.shape[0], 1), "threads_per_thread_group": (8, 8, 1),
        "result_shapes": [a.t().shape],
    })  # fmt: skip
    assert report.passed is passed


def test_a_kernel_of_core_ai_is_told_by_its_own_names() -> None:
    kernel = TorchMetalKernel(
        "shift", ["A"], ["B"], "B[g.x, g.y] = A[g.x, g.y + 1];", lambda a: a * 1,
        metal_params=[MetalParameter("g", "uint2", "thread_position_in_grid")],
    )  # fmt: skip
    report = kernel.check([torch.randn(4, 6)], lambda a: {
        "threads_per_grid": (a.shape[1], a.shape[0], 1), "threads_per_thread_group": (8, 8, 1),
        "result_shapes": [a.shape],
    }, dtypes=[torch.float32])  # fmt: skip
    found = next(r.message for r in report.results if r.case == "storage offset")
    assert found.startswith("PTR264 kernel `shift` reads 4 bytes out of bounds of argument `A` (buffer 0)")


def test_a_reference_that_needs_data() -> None:
    kernel = MetalKernel(
        "copy", ["x"], ["out"], COPY, reference=lambda x: torch.from_numpy(x.numpy().copy()),
        launch=lambda x: {"grid": (x.numel(), 1, 1), "output_shapes": [x.shape], "output_dtypes": [x.dtype]},
    )  # fmt: skip
    report = kernel.check([torch.randn(4)], dtypes=[torch.float32])
    assert report.passed, str(report)


def test_the_report_is_printed() -> None:
    report = copy().check([torch.randn(2)], dtypes=[], fixed=[2])
    assert_expected_inline(
        str(report),
        """\
PASS copy: 12 of 12 cases (bounds checked, lanes shuffled)
pass  as given   0.00 of the tolerance
pass  transposed   0.00 of the tolerance
pass  every second element   0.00 of the tolerance
pass  storage offset   0.00 of the tolerance
pass  column slice   0.00 of the tolerance
pass  expanded   0.00 of the tolerance
pass  threadgroups of 1   0.00 of the tolerance
pass  threadgroups of 31   0.00 of the tolerance
pass  threadgroups of 32   0.00 of the tolerance
pass  threadgroups of 33   0.00 of the tolerance
pass  threadgroups of 65   0.00 of the tolerance
pass  threadgroups of 1024   0.00 of the tolerance""",
    )
