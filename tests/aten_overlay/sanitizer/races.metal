// Kernels with a data race, and their repairs. The line that is found first has the kernel's name in a comment.
#include <metal_stdlib>
using namespace metal;

// The sum of a threadgroup, without the barrier before the last simdgroup adds up.
template <bool repaired>
static void add_up(device float* out, const device float* in, uint i, uint lane, uint simd, uint group, threadgroup float* sums) {
  const float sum = simd_sum(in[i]);
  if (simd == 0 && lane < 4) sums[lane] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (lane == 0) sums[simd] = sum;  // no_barrier
  if (repaired) threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd == 0) {
    const float all = simd_sum(lane < 4 ? sums[lane] : 0.0f);
    if (lane == 0) out[group] = all;
  }
}
#define ADD_UP(name, repaired) \
  kernel void name(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]], \
      uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) { \
    threadgroup float sums[4]; \
    add_up<repaired>(out, in, i, lane, simd, group, sums); \
  }
ADD_UP(no_barrier, false)
ADD_UP(no_barrier_repaired, true)

// A tile that the next step overwrites while others still read it (mlx-lm 1700 and 1714: training went wrong in silence).
template <bool repaired> static void step(device float* out, const device float* in, uint i, uint l, threadgroup float* tile) {
  float sum = 0;
  for (uint k = 0; k < 4; ++k) {
    tile[l] = in[i + k];  // tile_reused
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += tile[(l + 1) % 128];
    if (repaired) threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[i] = sum;
}
#define STEP(name, repaired) \
  kernel void name(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]], \
      uint l [[thread_position_in_threadgroup]]) { \
    threadgroup float tile[128]; \
    step<repaired>(out, in, i, l, tile); \
  }
STEP(tile_reused, false)
STEP(tile_reused_repaired, true)

// Neighbors exchanged through threadgroup memory, with a barrier for other memory, for none, and with none at all.
#define TURN(name, wait, mark) \
  kernel void name(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], threadgroup float* tile [[threadgroup(0)]], \
      uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]]) { \
    tile[l] = in[i]; \
    wait; \
    out[i] = tile[l ^ 1]; \
  }
TURN(other_memory, threadgroup_barrier(mem_flags::mem_device), 1)  // other_memory
TURN(other_memory_repaired, threadgroup_barrier(mem_flags::mem_device | mem_flags::mem_threadgroup), 1)
TURN(no_memory, threadgroup_barrier(mem_flags::mem_none), 1)  // no_memory
TURN(no_memory_repaired, threadgroup_barrier(mem_flags::mem_threadgroup), 1)
TURN(lockstep, simdgroup_barrier(mem_flags::mem_none), 1)  // lockstep
TURN(lockstep_repaired, simdgroup_barrier(mem_flags::mem_threadgroup), 1)

// The same through device memory.
#define RETURNED(name, flag) \
  kernel void name(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], device float* scratch [[buffer(2)]], \
      uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]]) { \
    scratch[i] = in[i]; \
    threadgroup_barrier(mem_flags::flag); \
    out[i] = scratch[i ^ 1]; \
  }
RETURNED(device_memory, mem_threadgroup)  // device_memory
RETURNED(device_memory_repaired, mem_device)

// What another threadgroup wrote in the same launch.
kernel void other_group(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], device float* scratch [[buffer(2)]],
    uint i [[thread_position_in_grid]], uint n [[threads_per_grid]]) {
  scratch[i] = in[i];
  threadgroup_barrier(mem_flags::mem_device);
  out[i] = scratch[n - 1 - i];  // other_group
}
kernel void other_group_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], device float* scratch [[buffer(2)]],
    uint i [[thread_position_in_grid]], uint n [[threads_per_grid]]) {
  scratch[i] = in[i];
  out[i] = in[n - 1 - i];
}

// A count that threads read, add to and write back.
kernel void lost_update(device uint* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  if (in[i] > 0) out[0] += 1;  // lost_update
}
kernel void lost_update_repaired(device atomic_uint* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  if (in[i] > 0) atomic_fetch_add_explicit(out, 1u, memory_order_relaxed);
}

// An atomic and a plain access of one byte.
kernel void half_atomic(device atomic_uint* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(out, 1u, memory_order_relaxed);  // half_atomic
  if (i == 0) *reinterpret_cast<device uint*>(out) = 7;
}
kernel void half_atomic_repaired(device atomic_uint* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(out, 1u, memory_order_relaxed);
  if (i == 0) atomic_store_explicit(out, 7u, memory_order_relaxed);
}

// Threads that write one element of the result. With the same value it does no harm.
kernel void many_writers(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i / 2] = in[i];  // many_writers
}
kernel void many_writers_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i / 2] = in[i & ~1u];
}

// Each byte counts by itself: two threads may write the two halves of a word.
kernel void bytes(device uchar* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i / 2 + 1] = uchar(i);  // bytes
}
kernel void bytes_repaired(device uchar* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = uchar(abs(in[i]));
}

// A count that one thread starts plainly, while others add to it.
kernel void plain_start(device uint* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  if (i == 0) out[0] = 1;
  atomic_fetch_add_explicit(reinterpret_cast<device atomic_uint*>(out), in[i] > 0 ? 1u : 0u, memory_order_relaxed);  // plain_start
}
kernel void plain_start_repaired(device uint* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]],
    uint l [[thread_position_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
  if (l == 0) out[group] = 1;
  threadgroup_barrier(mem_flags::mem_device);
  atomic_fetch_add_explicit(reinterpret_cast<device atomic_uint*>(out) + group, in[i] > 0 ? 1u : 0u, memory_order_relaxed);
}
