"""Functions for many lanes at once: how modules name them, and that lanes get what one thread alone gets."""

from __future__ import annotations

import numpy as np
import pytest

from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.launch import Library
from aten_overlay.metal.passes.wide import offer_wide_functions

MODULE = """define void @f() {
  %x = call float @pm_exp(float 0.0) #2
  ret void
}
declare noundef float @pm_exp(float noundef) local_unnamed_addr #1
declare float @pm_other(float)
"""
KERNELS = """#include <metal_stdlib>
using namespace metal;
kernel void plain(constant float* x, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = FUNCTION(x[i]);
}
kernel void choice(constant float* x, device float* out, uint i [[thread_position_in_grid]]) {
  float v = x[i];
  if (v > 0.5f) v = 1.0f - FUNCTION(-v);
  out[i] = v;
}
kernel void longs(constant long* x, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = FUNCTION(float(x[i]) * 0.01f);
}
kernel void group(constant float* x, device float* out, uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
  threadgroup float all[64];
  all[l] = FUNCTION(x[i]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = all[l];
}
"""


def test_a_module_names_the_forms_of_what_it_declares() -> None:
    offered = offer_wide_functions(MODULE)
    attribute = '"vector-function-abi-variant"="_ZGV_LLVM_N16v_pm_exp(pm_exp_16),_ZGV_LLVM_N8v_pm_exp(pm_exp_8)"'
    assert f"declare noundef float @pm_exp(float noundef) local_unnamed_addr #1 {attribute}\n" in offered
    assert "declare <16 x float> @pm_exp_16(<16 x float>)\n" in offered
    assert "declare <8 x float> @pm_exp_8(<8 x float>)\n" in offered
    assert "@pm_wide = hidden constant [2 x ptr] [ptr @pm_exp_16, ptr @pm_exp_8]\n" in offered
    assert "declare float @pm_other(float)\n" in offered


def test_a_module_without_them_stays() -> None:
    module = "define void @f() {\n  ret void\n}\n"
    assert offer_wide_functions(module) == module


@pytest.mark.parametrize("function", ["exp", "tanh"])
@pytest.mark.parametrize("name", ["plain", "choice", "longs", "group"])
def test_many_lanes_get_what_one_alone_gets(name: str, function: str) -> None:
    library = Library(compile_kernels(KERNELS.replace("FUNCTION", f"precise::{function}"), [name]))
    random = np.random.default_rng(0)
    special = np.array(
        [0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-40, 69, -69, 71, -71, 89, -90, -104, 9.6], np.float32
    )
    x = np.concatenate([special, random.normal(size=1009).astype(np.float32) * 4])
    x = (np.nan_to_num(x, nan=3, posinf=9e3, neginf=-9e3) * 100).astype(np.int64) if name == "longs" else x
    together, alone = np.full(x.size, -1, np.float32), np.full(x.size, -1, np.float32)
    library.run(name, [x, together], [x.size], [64])
    for i in range(x.size):
        library.run(name, [x[i : i + 1], alone[i : i + 1]], [1], [1])
    assert np.array_equal(together, alone, equal_nan=True)
