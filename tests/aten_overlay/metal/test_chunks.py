"""What holds for a simdgroup or a row of a threadgroup, but not for all of it; and a threadgroup's own atomics."""

from __future__ import annotations

import numpy as np
import pytest

from aten_overlay.metal.build import compile_kernels
from aten_overlay.metal.launch import Library
from aten_overlay.metal.passes.updates import write_update

MIXED = """#include <metal_stdlib>
using namespace metal;
kernel void mixed(
    device const float* x, device float* out, constant uint& width, uint2 at [[thread_position_in_grid]],
    uint2 local [[thread_position_in_threadgroup]], uint index [[thread_index_in_threadgroup]],
    uint simd [[simdgroup_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
    uint2 size [[threads_per_threadgroup]]) {
  threadgroup float rows[64], simds[32], all[1024];
  float v = x[at.y * width + at.x];
  if (local.x == 0) rows[local.y] = v;
  if (lane == 0) simds[simd] = v;
  all[index] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float sum = rows[local.y] + 2 * simds[simd] + 4 * all[simd * 32 + lane];
  for (uint i = index; i < 96; i += size.x * size.y) sum += 8 * all[(i / 32) * 2 + i % 32];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  all[index] = sum + simd_sum(v);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[at.y * width + at.x] = all[index ^ 1];
}
"""
UPDATES = """#include <metal_stdlib>
using namespace metal;
kernel void updates(
    device const int* x, device int* out, device int* before, threadgroup atomic_int* given [[threadgroup(0)]],
    uint i [[thread_position_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
  threadgroup atomic_int counts[8];
  threadgroup atomic_uint largest;
  threadgroup atomic_float total;
  if (i < 8) atomic_store_explicit(&counts[i], 0, memory_order_relaxed);
  if (i == 0) {
    atomic_store_explicit(&largest, 0u, memory_order_relaxed);
    atomic_store_explicit(&total, 0.0f, memory_order_relaxed);
    atomic_store_explicit(given, 100, memory_order_relaxed);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  int v = x[group * 64 + i];
  before[group * 64 + i] = atomic_fetch_add_explicit(&counts[v & 7], 1, memory_order_relaxed);
  atomic_fetch_max_explicit(&largest, uint(v), memory_order_relaxed);
  atomic_fetch_add_explicit(&total, float(v), memory_order_relaxed);
  atomic_fetch_min_explicit(given, v, memory_order_relaxed);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (i < 8) out[group * 11 + i] = atomic_load_explicit(&counts[i], memory_order_relaxed);
  if (i == 8) out[group * 11 + i] = int(atomic_load_explicit(&largest, memory_order_relaxed));
  if (i == 9) out[group * 11 + i] = int(atomic_load_explicit(&total, memory_order_relaxed));
  if (i == 10) out[group * 11 + i] = atomic_load_explicit(given, memory_order_relaxed);
}
"""


@pytest.mark.parametrize("group", [(32, 8), (64, 4), (40, 4), (14, 8), (100, 2), (128, 1), (2, 48)])
def test_lanes_that_agree_by_simdgroups_or_rows(group: tuple[int, int]) -> None:
    library = Library(compile_kernels(MIXED, ["mixed"]))
    assert library.runs_in_lockstep("mixed")
    width, height = group[0] * 2, group[1] * 2
    x = np.random.default_rng(1).integers(-9, 9, width * height).astype(np.float32)
    results = []
    for fibers in (False, True):
        out = np.full_like(x, np.nan)
        library.run("mixed", [x, out, np.array([width], np.uint32)], [width, height], group, fibers=fibers)
        results.append(out)
    assert np.array_equal(results[0], results[1])
    assert not np.isnan(results[0]).any()


@pytest.mark.parametrize("fibers", [False, True])
def test_a_threadgroups_own_atomics(fibers: bool) -> None:
    library = Library(compile_kernels(UPDATES, ["updates"]))
    x = np.random.default_rng(2).integers(0, 90, 256).astype(np.int32)
    out, before = np.zeros(44, np.int32), np.full(256, -1, np.int32)
    library.run("updates", [x, out, before], [256], [64], threadgroup_bytes=[16], fibers=fibers)
    for group, values in enumerate(x.reshape(4, 64)):
        counts = np.bincount(values & 7, minlength=8)
        expected = [*counts, values.max(), values.sum(), values.min()]
        assert out[group * 11 : group * 11 + 11].tolist() == expected
        places = before[group * 64 : group * 64 + 64]
        for digit in range(8):
            assert sorted(places[values & 7 == digit]) == list(range(counts[digit]))


def test_an_update_without_a_lock() -> None:
    assert list(write_update("atomicrmw volatile add ptr %p, i32 1 monotonic, align 4", "%old")) == [
        "%old = load i32, ptr %p, align 4",
        "%old.new = add i32 %old, 1",
        "store i32 %old.new, ptr %p, align 4",
    ]
    assert list(write_update("atomicrmw umax ptr %p, i32 %v monotonic, align 4", "%old"))[1:3] == [
        "%old.more = icmp ugt i32 %v, %old",
        "%old.new = select i1 %old.more, i32 %v, i32 %old",
    ]
    assert not list(write_update("atomicrmw fmax ptr %p, float %v monotonic, align 4", "%old"))
