"""What a GPU may do with arithmetic that the source does not say, and the portable way to switch stacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest

from aten_overlay.errors import OverlayError
from aten_overlay.metal.build import Options, compile_kernels
from aten_overlay.metal.launch import Library

Doubles: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

SOURCE = """#include <metal_stdlib>
using namespace metal;
kernel void in_one(constant float* x [[buffer(0)]], device float* out [[buffer(1)]]) { out[0] = x[0] * x[1] + x[2]; }
kernel void in_two(constant float* x [[buffer(0)]], device float* out [[buffer(1)]]) {
  float product = x[0] * x[1];
  out[0] = product + x[2];
}
kernel void halved(constant float* x [[buffer(0)]], device float* out [[buffer(1)]]) { out[0] = x[0] * 0.5; }
kernel void masked(constant float* x [[buffer(0)]], device float* out [[buffer(1)]]) {
  out[0] = x[0] * x[1] + (-1e10f) * (1.0f - x[1]);
}
kernel void finite(constant float* x [[buffer(0)]], device float* out [[buffer(1)]]) { out[0] = isnan(x[0]) ? 0.0f : 1.0f; }
#define FUNCTIONS(name) kernel void plain_##name(constant float* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = name(x[i]); } kernel void precise_##name(constant float* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = precise::name(x[i]); }
FUNCTIONS(exp) FUNCTIONS(sin) FUNCTIONS(cos) FUNCTIONS(tanh) FUNCTIONS(rsqrt)
kernel void sum(constant float* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = simd_sum(x[i]);
}
"""


def _run(name: str, arithmetic: str, x: np.ndarray, threads: int = 1, pragma: str = "") -> float:
    out = np.zeros(32, np.float32)
    source = f"#pragma METAL fp {pragma}\n{SOURCE}" if pragma else SOURCE
    Library(compile_kernels(source, [name], Options(arithmetic=arithmetic))).run(name, [x, out], [threads], [threads])
    return float(out[0])


@pytest.mark.parametrize(
    ("arithmetic", "in_one", "in_two"), [("strict", False, False), ("default", True, False), ("fused", True, True)]
)
def test_contraction(arithmetic: str, in_one: bool, in_two: bool) -> None:
    x = np.array([1 + 2**-12, 1 + 2**-12, -1 - 2**-11], np.float32)
    exact = 2.0**-24
    assert (_run("in_one", arithmetic, x) == exact) is in_one
    assert (_run("in_two", arithmetic, x) == exact) is in_two


def test_denormals_are_flushed_on_request() -> None:
    x = np.array([1.2e-38], np.float32)
    assert _run("halved", "default", x) > 0
    assert _run("halved", "flush", x) == 0
    assert float(np.float32(1.2e-38) * np.float32(0.5)) > 0, "the caller's own mode is untouched"


def test_reductions_are_reordered_on_request() -> None:
    x = np.ones(32, np.float32)
    x[0], x[31] = 2.0**24, -(2.0**24)
    assert {_run("sum", mode, x, 32) for mode in ("default", "reorder")} != {30.0}
    assert _run("sum", "default", x, 32) != _run("sum", "reorder", x, 32)


MASKED, NAN = np.array([1, 1], np.float32), np.array([np.nan], np.float32)


@pytest.mark.parametrize(
    ("arithmetic", "pragma", "masked", "finite"),
    [
        ("default", "", 1, 0), ("fast", "", 0, 1), ("relaxed", "", 0, 0), ("default", "math_mode(fast)", 0, 1), ("finite", "", 0, 1),
        ("fast", "math_mode(safe)", 1, 0), ("fast", "math_mode(relaxed)", 0, 0), ("flush", "math_mode(fast)", 1, 0),
    ],
)  # fmt: skip
def test_fast_math_regroups_and_knows_no_nan(arithmetic: str, pragma: str, masked: float, finite: float) -> None:
    assert _run("masked", arithmetic, MASKED, pragma=pragma) == masked
    assert _run("finite", arithmetic, NAN, pragma=pragma) == finite


# The function, and the most that fast math may err in it: absolute, and in ulps that may depend on the argument.
ALLOWED: dict[str, tuple[Callable[[Doubles], Doubles], float, Callable[[Doubles], Doubles | float]]] = {
    "exp": (np.exp, 0.0, lambda x: 3 + np.floor(np.abs(2 * x))), "rsqrt": (lambda x: 1 / np.sqrt(x), 0.0, lambda x: 2.0),
    "sin": (np.sin, 2.0**-13, lambda x: 0.5), "cos": (np.cos, 2.0**-13, lambda x: 0.5), "tanh": (np.tanh, 1e-6, lambda x: 8.0),
}  # fmt: skip


@pytest.mark.parametrize("name", ALLOWED)
def test_fast_functions_err_as_much_as_metal_allows_and_precise_ones_do_not(name: str) -> None:
    x = np.linspace(0.01, 3.1, 4096, dtype=np.float32)
    function, absolute, ulps = ALLOWED[name]
    exact = function(x.astype(np.float64))
    spacing = np.spacing(np.abs(exact).astype(np.float32))
    allowed = absolute + ulps(x.astype(np.float64)) * spacing + np.spacing(np.float32(1)) / 4
    errors = {}
    for kernel, arithmetic in ((f"plain_{name}", "fast"), (f"precise_{name}", "fast"), (f"plain_{name}", "finite")):
        out = np.zeros_like(x)
        Library(compile_kernels(SOURCE, [kernel], Options(arithmetic=arithmetic))).run(kernel, [x, out], [x.size])
        errors[kernel, arithmetic] = np.abs(out - exact)
    erring, precise, usual = errors.values()
    assert (erring <= allowed).all() and erring.max() > 1.4 * max(precise.max(), usual.max())


def test_a_fast_tanh_of_large_numbers_is_no_number() -> None:
    x = np.array([50], np.float32)
    assert _run("plain_tanh", "finite", x) == _run("precise_tanh", "fast", x) == 1 != _run("plain_tanh", "fast", x)


def test_a_source_may_forbid_contraction() -> None:
    x = np.array([1 + 2**-12, 1 + 2**-12, -1 - 2**-11], np.float32)
    assert _run("in_one", "default", x, pragma="contract(off)") == 0


@pytest.mark.parametrize(("name", "value"), [("PORTER_ARITHMETIC", "fast"), ("PYTORCH_MPS_FAST_MATH", "1")])
def test_the_environment_asks_for_fast_math(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert _run("masked", "default", MASKED) == 0


def test_an_unexpected_barrier_fails_the_launch() -> None:
    hidden = 'extern "C" void hidden() __asm__("pm_threadgroup_barrier");'
    source = (
        f"#include <metal_stdlib>\n{hidden}\nkernel void f(device float* x [[buffer(0)]]) {{ hidden(); x[0] = 1; }}"
    )
    library = Library(compile_kernels(source, ["f"]))
    with pytest.raises(OverlayError, match="synchronizes, which the front end did not detect"):
        library.run("f", [np.zeros(1, np.float32)], [1], [1])
