"""Results of kernels are right, wrong, or missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aten_overlay.metal.build import Options
from corpora_results import Result, find_results
from references.case import Case, find_error
from references.products import _pack

SOURCE = """#include <metal_stdlib>
constant float factor [[function_constant(3)]];
kernel void doubled(device float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  y[i] = metal::simd_sum(0.0f) + factor * x[i];
}
kernel void off(device float* x [[buffer(0)]], device float* y [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  y[i] = factor * x[i] + 0.5f;
}
kernel void broken(device float* x [[buffer(0)]], device float* y [[buffer(1)]]) { y[0] = missing; }
"""
X = np.arange(64, dtype=np.float32)


def _case(kernel: str) -> Case:
    out = np.empty(64, np.float32)
    return Case("some.metal", kernel, (X, out), 1, X * 2.0, (64,), (32,), constants=(("factor", 2.0),))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "some.metal").write_text(SOURCE)
    cases = [_case(name) for name in ("doubled", "off", "broken")]
    return {r.case.kernel: r for r in find_results(folder, cases, Options())}


def test_each_kernel_is_judged_alone(results: dict[str, Result]) -> None:
    assert {name: r.right for name, r in results.items()} == {"doubled": True, "off": False, "broken": False}
    assert results["doubled"].lockstep and results["doubled"].default == results["doubled"].shuffled == 0
    assert results["off"].default == pytest.approx(0.5 / 126)
    assert "undeclared identifier 'missing'" in results["broken"].error


def test_a_file_that_is_not_there_has_no_results(tmp_path: Path) -> None:
    assert not list(find_results(tmp_path, [_case("doubled")], Options()))


@pytest.mark.parametrize(
    ("found", "error"), [([2, 4, 9], 0), ([2, 5, 9], 0.25), ([2, np.nan, 9], np.inf), ([2, np.inf, 9], np.inf)]
)
def test_errors_are_relative_to_the_largest_value(found: list[float], error: float) -> None:
    case = Case("", "", (), 0, np.array([2, 4.0]), (), ())
    assert find_error(np.array(found, np.float32), case) == error


def test_the_first_of_packed_values_has_the_lowest_bits() -> None:
    assert _pack(np.array([[1, 2, 3, 0]], np.uint8), 2).tolist() == [0b00111001]
    assert _pack(np.array([[5, 10]], np.uint8), 4).tolist() == [0xA5]
