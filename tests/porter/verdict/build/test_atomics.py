"""Kernels that add to floating-point numbers atomically."""

from __future__ import annotations

from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNELS
from porter.verdict.build.kernel_files import find_adding_kernels
from porter.verdict.build.tree import materialise
from porter.verdict.result import VerifyTarget

HELPER = "template <typename T>\nvoid add(device T* x, T y) {{\n  {}\n}}\n"
KERNEL = "template <typename T>\nkernel void scatter(device T* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {{\n  {}\n}}\n"


@pytest.mark.parametrize(
    ("text", "adds"),
    [
        (KERNEL.format("c10::metal::AtomicType<T>::atomic_add(x, i, T(1));"), True),
        (KERNEL.format("AtomicType<float>::atomic_add(x, i, 1.0f);"), True),
        (KERNEL.format("AtomicType<int>::atomic_add(x, i, 1);"), False),
        (KERNEL.format("atomic_fetch_add_explicit((device atomic<float>*)x, 1.0f, memory_order_relaxed);"), True),
        (KERNEL.format("atomic_fetch_add_explicit((device atomic_int*)x, 1, memory_order_relaxed);"), False),
        (KERNEL.format("// AtomicType<T>::atomic_add(x, i, T(1));"), False),
        (HELPER.format("AtomicType<T>::atomic_add(x, 0, y);") + KERNEL.format("add(x + i, T(1));"), True),
        (HELPER.format("AtomicType<T>::atomic_add(x, 0, y);") + KERNEL.format("x[i] = T(1);"), False),
        ("#define ADD(F) kernel void F##_float() { AtomicType<float>::atomic_add(x, 0, 1); }\nADD(scatter)\n", True),
        ("#define ADD(F) kernel void F##_float() { AtomicType<float>::atomic_add(x, 0, 1); }\nADD(other)\n", False),
    ],
)
def test_a_kernel_adds_if_it_or_what_it_calls_does(text: str, adds: bool, tmp_path: Path) -> None:
    tree = materialise(EMBEDDED_FORK, {f"{KERNELS}/Scatter.metal": text}, tmp_path)
    target = VerifyTarget("scatter", kernels=("scatter", "gather"))
    assert find_adding_kernels(tree, target) == (("scatter",) if adds else ())
