"""Loops, tables and overloads of CPU kernels, by the values that their Metal text computes."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aten_overlay.metal import build
from aten_overlay.metal.launch import Library
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import CPU_KERNELS, NATIVE_FUNCTIONS
from porter.cpu.kernels import read_cpu_kernel

HELPERS = """
template <typename T>
inline T polynomial(const T x, const T A[], size_t len) {
  T result = 0;
  for (size_t i = 0; i <= len; i++) {
    result = result * x + A[i];
  }
  return result;
}
template <typename T>
inline T recurrence(T x, int64_t n) {
  if (n < 0) {
    return T(0.0);
  }
  T p = T(1.0);
  T q = x + x;
  for (int64_t k = 2; k <= n; ++k) {
    T r = (x + x) * q - p;
    p = q;
    q = r;
  }
  return n == 0 ? p : q;
}
template <typename T>
inline T recurrence(T x, T n) {
  return recurrence(x, static_cast<int64_t>(n));
}
template <typename T>
inline T table_impl(T x) {
  static const T A[] = {
      COEFFICIENTS
  };
  return polynomial(x, A, LAST);
}
template <typename T>
inline T chebyshev_impl(T x, T n) {
  return recurrence(x, n);
}
"""
KERNEL = """
void NAME_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "NAME", [&]() {
    cpu_kernel(iter, [](PARAMETERS) -> scalar_t { return CALL; });
  });
}
REGISTER_DISPATCH(NAME_stub, &NAME_kernel)
"""
FORM = """#include <metal_stdlib>
using namespace metal;
typedef float T_;
HELPERS
kernel void form(device float* out [[buffer(0)]], constant float* x [[buffer(1)]], constant float* n [[buffer(2)]],
                 uint i [[thread_position_in_grid]]) { out[i] = CALL; }
"""


def write_kernel(coefficients: tuple[float, ...], parameters: str, call: str) -> str:
    listed = ", ".join(map(repr, coefficients))
    text = HELPERS.replace("COEFFICIENTS", listed).replace("LAST", str(len(coefficients) - 1))
    return text + KERNEL.replace("NAME", "made").replace("PARAMETERS", parameters).replace("CALL", call)


@lru_cache(maxsize=64)
def compile_kernel(text: str) -> Library:
    """The Metal text of a CPU kernel, as a kernel of its own."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for path, content in ((f"{CPU_KERNELS}/Made.cpp", text), (NATIVE_FUNCTIONS, "")):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(content)
        cpu = read_cpu_kernel(Checkout(root, "test"), "made_stub")
        [found] = cpu.lambdas
    call = found.body
    for ours, given_ in zip(found.params, ("x[i]", "n[i]"), strict=False):
        call = re.sub(rf"\b{ours}\b", given_, call)
    source = FORM.replace("HELPERS", "\n".join(found.helpers)).replace("CALL", re.sub(r"\bT\b", "float", call))
    return Library(
        build.compile_kernels(source, ["form"], build.Options(include=(EMBEDDED_FORK,), optimization=build.QUICK))
    )


def run(text: str, x: np.ndarray, n: np.ndarray) -> np.ndarray:
    out = np.zeros(x.size, np.float32)
    compile_kernel(text).run("form", [out, x.astype(np.float32), n.astype(np.float32)], [out.size])
    return out


def test_a_recurrence_has_the_values_of_float64() -> None:
    text = write_kernel((1.0,), "scalar_t x, scalar_t n", "chebyshev_impl(x, n)")
    x, n = (each.ravel() for each in np.meshgrid(np.linspace(-1.2, 1.2, 25), np.arange(-1.0, 9.0)))
    expected = np.zeros(x.size)
    for at, (value, degree) in enumerate(zip(x.astype(np.float32).astype(float), n, strict=True)):
        before, last = 1.0, 2 * value
        for _ in range(2, int(degree) + 1):
            before, last = last, 2 * value * last - before
        expected[at] = 0.0 if degree < 0 else 1.0 if degree == 0 else last
    np.testing.assert_allclose(run(text, x, n), expected, rtol=2e-5, atol=2e-5)


@settings(max_examples=4, deadline=None)
@given(st.lists(st.floats(-4, 4, width=32), min_size=1, max_size=9))
def test_a_table_of_coefficients_has_the_values_of_float64(coefficients: list[float]) -> None:
    text = write_kernel(tuple(coefficients), "scalar_t x", "table_impl(x)")
    x = np.linspace(-1, 1, 33).astype(np.float32)
    expected = np.polyval(np.array(coefficients), x.astype(float))
    np.testing.assert_allclose(run(text, x, x), expected, rtol=1e-5, atol=1e-5)


def test_a_loop_over_a_range_is_refused_with_its_place(tmp_path: Path) -> None:
    text = write_kernel((1.0,), "scalar_t x", "table_impl(x)").replace(
        "for (size_t i = 0; i <= len; i++)", "for (const auto i : c10::irange(len))"
    )
    for path, content in ((f"{CPU_KERNELS}/Made.cpp", text), (NATIVE_FUNCTIONS, "")):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    [untranslated] = read_cpu_kernel(Checkout(tmp_path, "test"), "made_stub").untranslated[:1]
    error = untranslated.error
    assert isinstance(error, PorterError)
    assert (error.code, error.place and error.place.line) == ("PTR079", 5)
    assert "for (const auto i" in error.what


@pytest.mark.parametrize("step", ["i++", "++i", "i += 1"])
def test_a_counter_may_step_in_any_way(step: str) -> None:
    text = write_kernel((2.0, -1.0, 0.5), "scalar_t x", "table_impl(x)").replace("i++", step)
    x = np.linspace(-1, 1, 9).astype(np.float32)
    np.testing.assert_allclose(run(text, x, x), np.polyval([2.0, -1.0, 0.5], x.astype(float)), rtol=1e-5, atol=1e-6)


def test_a_kernel_keeps_the_functions_of_the_cpu_as_a_second_source(tmp_path: Path) -> None:
    header = (
        "namespace c10 {\nnamespace metal {\ntemplate <typename T>\nfloat table_impl(T x) {\n  return 0;\n}\n}\n}\n"
    )
    text = write_kernel((2.0, -1.0), "scalar_t x", "table_impl(x)")
    for path, content in (
        (f"{CPU_KERNELS}/Made.cpp", text),
        (NATIVE_FUNCTIONS, ""),
        ("c10/metal/special_math.h", header),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    cpu = read_cpu_kernel(Checkout(tmp_path, "test"), "made_stub")
    assert [found.body for found in cpu.lambdas] == ["static_cast<T>(c10::metal::table_impl(x))"]
    assert cpu.own
    assert [found.body for found in cpu.own.lambdas] == ["aten_table_impl(x)"]
    assert "inline T polynomial(" in "".join(cpu.own.lambdas[0].helpers)
