"""How a grid is shared out over threads of the host: each of its threads runs once, on no more than are allowed."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.launch import Library

COUNTING = """#include <metal_stdlib>
kernel void count(device int* out, uint i [[thread_position_in_grid]]) { out[i] += 1; }
"""


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("count", [65_536, 65_537, 300_001])
def test_every_thread_of_a_grid_runs_once(count: int, threads: int) -> None:
    out = np.zeros(count, np.int32)
    library = Library(compile_kernels(COUNTING, ["count"]))
    for _ in range(3):
        library.run("count", [out], [count], threads=threads)
    assert np.array_equal(out, np.full(count, 3, np.int32))


# In a process of its own: threads that were started once stay.
LIMITED = f"""
import os
import numpy as np
from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.launch import Library, limit_threads
library = Library(compile_kernels({COUNTING!r}, ["count"]))
out = np.zeros(300_000, np.int32)
before = len(os.listdir("/proc/self/task"))
for limit in (1, 3, 1):
    with limit_threads(limit):
        library.run("count", [out], [out.size])
    print(len(os.listdir("/proc/self/task")) - before)
assert (out == 3).all()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_a_limit_holds_for_launches_that_say_nothing_else() -> None:
    done = subprocess.run([sys.executable, "-c", LIMITED], text=True, capture_output=True, check=True)
    assert done.stdout.split() == ["0", "2", "2"]


# Every atomic function that may or may not lock, in the forms in which kernels run: threads one after the other, and
# simdgroups in lockstep.
UPDATING = """#include <metal_stdlib>
using namespace metal;
inline void update_all(device atomic_int* counts, device atomic_uint* bits, device atomic_float* sum, uint i) {
  atomic_fetch_add_explicit(&counts[0], 1, memory_order_relaxed);
  atomic_fetch_sub_explicit(&counts[1], 2, memory_order_relaxed);
  atomic_fetch_max_explicit(&counts[2], int(i), memory_order_relaxed);
  atomic_fetch_min_explicit(&counts[3], -int(i), memory_order_relaxed);
  atomic_fetch_xor_explicit(&bits[0], i, memory_order_relaxed);
  atomic_fetch_or_explicit(&bits[1], i, memory_order_relaxed);
  uint old = atomic_load_explicit(&bits[2], memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&bits[2], &old, old + 3, memory_order_relaxed, memory_order_relaxed));
  atomic_fetch_add_explicit(sum, 0.5f, memory_order_relaxed);
}
kernel void update(
    device atomic_int* counts, device atomic_uint* bits, device atomic_float* sum, uint i [[thread_position_in_grid]]) {
  update_all(counts, bits, sum, i);
}
kernel void update_together(
    device atomic_int* counts, device atomic_uint* bits, device atomic_float* sum, uint i [[thread_position_in_grid]]) {
  update_all(counts, bits, sum, i + (simd_sum(1u) - 32));
}
"""
GRID, LAUNCHES = 70_016, 11  # the grid's bits, without those of a whole power of two, have an exclusive or of their own


@pytest.mark.parametrize("name", ["update", "update_together"])
@pytest.mark.parametrize("threads", [(1,), (2,), (1, 1, 1), (1, 2, 3)], ids=str)
def test_no_update_is_lost_to_another_thread_or_launch(name: str, threads: tuple[int, ...]) -> None:
    counts, bits, total = np.zeros(4, np.int32), np.zeros(3, np.uint32), np.zeros(1, np.float32)
    library = Library(compile_kernels(UPDATING, [name]))

    def launch(limit: int) -> None:
        for _ in range(LAUNCHES):
            library.run(name, [counts, bits, total], [GRID], [64], threads=limit)

    with ThreadPoolExecutor(len(threads)) as pool:
        list(pool.map(launch, threads))
    times, numbers = LAUNCHES * len(threads), np.arange(GRID)
    assert counts.tolist() == [times * GRID, -2 * times * GRID, GRID - 1, 1 - GRID]
    assert bits.tolist() == [np.bitwise_xor.reduce(numbers), np.bitwise_or.reduce(numbers), 3 * times * GRID]
    assert total[0] == times * GRID / 2
