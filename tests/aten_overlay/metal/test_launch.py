"""A thread of the host that runs a kernel for the first time gets what any other gets."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest

from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.launch import Library

# Two vector registers are in use while the address of a thread's own variable is taken, in the way that compiled
# threadgroup variables take it.
SOURCE = """#include <metal_stdlib>
__attribute__((visibility("hidden"))) thread_local float probe[4096] asm("porter_test_probe");
__attribute__((used)) inline float* keep() { return probe; }
kernel void doubled(device float* in [[buffer(0)]], device float* out [[buffer(1)]]) {
  float found;
  asm volatile(
      "vmovss (%1), %%xmm0\\n"
      "vmovaps %%xmm0, %%xmm16\\n"
      "leaq porter_test_probe@TLSDESC(%%rip), %%rax\\n"
      "call *porter_test_probe@TLSCALL(%%rax)\\n"
      "vaddss %%xmm0, %%xmm16, %%xmm0\\n"
      "vmovss %%xmm0, %0"
      : "=m"(found) : "r"(in) : "rax", "xmm0", "xmm16", "memory", "cc");
  out[0] = found;
}
"""
_CPU = Path("/proc/cpuinfo")


@pytest.mark.skipif(not _CPU.exists() or "avx512vl" not in _CPU.read_text(), reason="the kernel is for AVX-512")
def test_vector_registers_outlive_a_threads_first_use_of_threadgroup_memory() -> None:
    library = Library(compile_kernels(SOURCE, ["doubled"]))
    out = np.zeros(1, np.float32)
    given = [np.array([3], np.float32), out]
    thread = threading.Thread(target=lambda: library.run("doubled", given, [1], [1], threads=1))
    thread.start()
    thread.join()
    assert out[0] == 6
