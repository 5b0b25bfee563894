"""Threadgroups and layouts that no case of a script names: each fault is found, and its repair passes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from porter.kernels import MetalKernel, TorchMetalKernel
from porter.kernels.check import Outcome
from porter.kernels.checking import CaseResult, check
from porter.kernels.script import Kind, Layout, Script, Stage

# The sum of a threadgroup; SOME is how many lanes of its first simdgroup read the other simdgroups' sums.
TOTAL = """
  kernel void total(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]],
      uint lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]],
      uint count [[simdgroups_per_threadgroup]], uint n [[threads_per_threadgroup]]) {
    threadgroup float parts[32];
    const float part = metal::simd_sum(x[t]);
    if (lane == 0) parts[s] = part;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (t == 0) {
      float sum = 0;
      for (uint k = 0; k < SOME; ++k) sum += parts[k];
      out[0] = sum;
    }
  }
"""
# Two numbers from each thread, as if threadgroups had 1,024.
TWICE = """
  kernel void twice(device const float* x, device float* out, uint i [[thread_position_in_grid]],
      uint t [[thread_position_in_threadgroup]], uint g [[threadgroup_position_in_grid]]) {
    out[PLACE] = 2 * x[PLACE];
  }
"""


def script(run: Callable[..., Tensor], reference: Callable[..., Tensor], *sizes: int, **fields: object) -> Script:
    stage = Stage("stage", run, reference, ("x",))
    rest = {"dtypes": (torch.float32,), "layouts": (Layout.DENSE,), **fields}
    return Script(
        "swept", Kind.ROW_WISE, (stage,), lambda case: {"x": case.normal(*case.size)}, tuple((n,) for n in sizes), (),
        **rest,  # type: ignore[arg-type]
    )  # fmt: skip


def failed(swept: Script) -> list[str]:
    return [result.case.removesuffix("-float32-dense") for result in check(swept) if not result.ok]


def results(swept: Script) -> list[CaseResult]:
    return list(check(swept))


@pytest.mark.parametrize(("some", "wrong"), [("n / 32", ["1", "31", "33", "65"]), ("count", [])])
def test_lengths_that_threadgroups_follow_are_swept(some: str, wrong: list[str]) -> None:
    library = torch.mps.compile_shader(TOTAL.replace("SOME", some))

    def total(x: Tensor) -> Tensor:
        out = torch.zeros(1, device="mps")
        library.total(x, out, threads=x.numel(), group_size=x.numel())
        return out

    swept = script(total, lambda x: x.sum().reshape(1), 64, 128)
    assert failed(swept) == wrong
    assert [result.case.partition("-")[0] for result in results(swept)] == [
        "64",
        "128",
        "1",
        "31",
        "32",
        "33",
        "65",
        "1024",
    ]


@pytest.mark.parametrize(("place", "wrong"), [("g * 1024 + t", 5), ("i", 0)])
def test_threadgroups_that_a_launch_leaves_open_are_swept(place: str, wrong: int) -> None:
    library = torch.mps.compile_shader(TWICE.replace("PLACE", place))

    def twice(x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        library.twice(x, out, threads=x.numel())
        return out

    names = failed(script(twice, lambda x: 2 * x, 3072))
    assert names == [f"3072-float32-dense in threadgroups of {n}" for n in (1, 31, 32, 33, 65)[:wrong]]


def test_a_size_that_the_script_says_stays() -> None:
    library = torch.mps.compile_shader(TWICE.replace("PLACE", "g * 1024 + t"))

    def twice(x: Tensor) -> Tensor:
        out = torch.zeros_like(x)
        library.twice(x, out, threads=x.numel(), group_size=1024)
        return out

    assert len(results(script(twice, lambda x: 2 * x, 3072))) == 1


def test_the_sizes_that_a_parameter_takes_are_swept_and_refusals_pass() -> None:
    library = torch.mps.compile_shader(TWICE.replace("PLACE", "g * 64 + t"))

    def twice(x: Tensor, group: int = 64) -> Tensor:
        if group == 1024:
            raise ValueError("group has to be less than 1024")
        out = torch.zeros_like(x)
        library.twice(x, out, threads=x.numel(), group_size=group)
        return out

    names = failed(script(twice, lambda x: 2 * x, 3072))
    assert [int(name.rpartition(" ")[2]) for name in names] == [1, 31, 32, 33, 65]


@pytest.mark.parametrize(("stride", "wrong"), [("x_shape[1] * x_strides[1]", True), ("x_strides[0]", False)])
def test_rows_that_lie_apart_and_rows_that_are_one(stride: str, wrong: bool) -> None:
    body = f"uint2 p = thread_position_in_grid.xy; out[p.y * x_shape[1] + p.x] = x[p.y * {stride} + p.x];"
    rows = MetalKernel(
        "rows", ["x"], ["out"], body, ensure_row_contiguous=False, reference=torch.clone,
        launch=lambda x: {"grid": (x.shape[1], x.shape[0], 1), "threadgroup": (8, 8, 1)},
    )  # fmt: skip
    report = rows.check([torch.randn(6, 9)], dtypes=[], fixed=[6, 9])
    apart = {r.case: r.outcome for r in report.results if r.case in ("column slice", "expanded")}
    assert apart == dict.fromkeys(apart, Outcome.FAIL if wrong else Outcome.PASS) and len(apart) == 2, str(report)


def test_threadgroups_that_a_kernels_launch_leaves_open_are_swept() -> None:
    source = "uint i = threadgroup_position_in_grid.x * 256 + thread_position_in_threadgroup.x; if (i < x_shape[0]) out[i] = x[i];"
    wrong = MetalKernel("counted", ["x"], ["out"], source, reference=torch.clone)
    outcomes = {r.case: r.outcome for r in wrong.check([torch.randn(600)], dtypes=[], fixed=[600]).results}
    assert outcomes["as given"] is Outcome.PASS and outcomes["threadgroups of 33"] is Outcome.FAIL
    right = MetalKernel(
        "copied", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = x[i];", reference=torch.clone
    )
    report = right.check([torch.randn(600)], dtypes=[], fixed=[600])
    assert report.passed and sum(r.case.startswith("threadgroups of") for r in report.results) == 6
    said = TorchMetalKernel("said", ["A"], ["B"], "B[0] = A[0];", lambda a: a.clone())
    fixed = said.check([torch.randn(1)], lambda _a: {"threads_per_thread_group": (1, 1, 1)}, dtypes=[], fixed=[1])
    assert not [r for r in fixed.results if r.case.startswith("threadgroups of")]


# A mean whose last simdgroup, of LANES lanes, adds what all simdgroups left: fewer lanes than simdgroups lose some.
MEAN = """
  kernel void mean(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]],
      uint lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]],
      uint count [[simdgroups_per_threadgroup]], uint n [[threads_per_threadgroup]]) {
    threadgroup float parts[32];
    const float part = metal::simd_sum(x[t]);
    if (lane == 0) parts[s] = part;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    if (s != WHICH) return;
    const float sum = metal::simd_sum(lane < count ? parts[lane] : 0.0f);
    if (lane == 0) out[0] = sum / n;
  }
"""
# The greatest of each 16 numbers. WHERE says which half of a simdgroup a lane is in.
HALVES = """
  kernel void halves(device const float* x, device float* out, uint i [[thread_position_in_grid]],
      uint lane [[thread_index_in_simdgroup]]) {
    const float low = metal::simd_max(WHERE < 16 ? x[i] : -1e30f), high = metal::simd_max(WHERE < 16 ? -1e30f : x[i]);
    if (lane % 16 == 0) out[i / 16] = WHERE < 16 ? low : high;
  }
"""
PRODUCT = """
  kernel void product(device const float* x, device float* out, constant long& k, uint2 at [[thread_position_in_grid]]) {
    float sum = 0;
    for (int i = 0; i < DEPTH; ++i) sum += x[at.y * k + i] * x[at.x * k + i];
    out[at.y * 8 + at.x] = sum;
  }
"""


@pytest.mark.parametrize(("which", "wrong"), [("count - 1", ["33", "65"]), ("0", [])])
def test_a_last_simdgroup_of_one_lane_is_among_the_lengths(which: str, wrong: list[str]) -> None:
    library = torch.mps.compile_shader(MEAN.replace("WHICH", which))

    def mean(x: Tensor) -> Tensor:
        out = torch.zeros(1, device="mps")
        library.mean(x, out, threads=x.numel(), group_size=x.numel())
        return out

    # Where lanes are as many as simdgroups, or more, both are right.
    assert failed(script(mean, lambda x: x.mean().reshape(1), 64, 128)) == wrong


@pytest.mark.parametrize(("where", "wrong"), [("i", ["64"]), ("lane", [])])
def test_a_position_in_the_grid_for_a_lane_fails_with_the_second_simdgroup(where: str, wrong: list[str]) -> None:
    library = torch.mps.compile_shader(HALVES.replace("WHERE", where))

    def halves(x: Tensor) -> Tensor:
        out = torch.zeros(x.numel() // 16, device="mps")
        library.halves(x, out, threads=x.numel(), group_size=32)
        return out

    assert failed(script(halves, lambda x: x.view(-1, 16).amax(1), 32, 64)) == wrong


@pytest.mark.parametrize(("depth", "wrong"), [("32", ["8x64"]), ("k", [])])
def test_a_loop_of_one_tile_fails_with_the_second(depth: str, wrong: list[str]) -> None:
    library = torch.mps.compile_shader(PRODUCT.replace("DEPTH", depth))

    def product(x: Tensor) -> Tensor:
        out = torch.zeros(8, 8, device="mps")
        library.product(x, out, x.shape[1], threads=(8, 8), group_size=(8, 8))
        return out

    products = Script(
        "swept", Kind.MATRIX, (Stage("stage", product, lambda x: x @ x.T, ("x",)),), lambda case: {"x": case.normal(*case.size)},
        ((8, 32), (8, 64)), (), dtypes=(torch.float32,), layouts=(Layout.DENSE,),
    )  # fmt: skip
    assert failed(products) == wrong
