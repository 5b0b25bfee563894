// Kernels that access memory they may not, and their repairs. The line that is found has the kernel's name in a comment.
#include <metal_stdlib>
using namespace metal;

// The last threadgroup reads what lies behind the tensor (180709).
kernel void next_allocation(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], constant uint& n [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  out[i] = in[i];  // next_allocation
}
kernel void next_allocation_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], constant uint& n [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  if (i < n) out[i] = in[i];
}

// Writes at indices that nobody checked (189968).
kernel void unchecked_index(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], constant uint& n [[buffer(2)]],
    const device int* index [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  if (i < 4) out[index[i]] = in[i];  // unchecked_index
}
kernel void unchecked_index_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], constant uint& n [[buffer(2)]],
    const device int* index [[buffer(3)]], uint i [[thread_position_in_grid]]) {
  if (i < 4 && uint(index[i]) < n) out[index[i]] = in[i];
}

// Four elements at once from where the tensor starts, which need not be a multiple of 16 bytes (183631).
kernel void vectors(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], constant uint& n [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  if (i < n / 4) reinterpret_cast<device float4*>(out)[i] = float4(in[0]);  // vectors
}
kernel void vectors_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], constant uint& n [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  if (i < n / 4) reinterpret_cast<device packed_float4*>(out)[i] = float4(in[0]);
}

// A uint3 takes 16 bytes; its host sets 12 (147325).
kernel void three(device uint* out [[buffer(0)]], constant uint3& shape [[buffer(1)]]) { out[0] = shape.x; }
kernel void three_repaired(device uint* out [[buffer(0)]], constant packed_uint3& shape [[buffer(1)]]) { out[0] = shape.x; }

// Bytes of an argument that is bound for reading (186580).
kernel void input_written(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const_cast<device float*>(in)[i] *= 2;  // input_written
  out[i] = in[i];
}
kernel void input_written_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = in[i] * 2;
}

// A table of the program.
constant float weights[4] = {1, 2, 3, 4};
kernel void table(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = in[i] * weights[i % 5];  // table
}
kernel void table_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = in[i] * weights[i % 4];
}

// From one threadgroup variable into the next.
#define HALO(name, size) \
  kernel void name(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]], \
      uint l [[thread_position_in_threadgroup]]) { \
    threadgroup float tile[size]; \
    threadgroup float other[128]; \
    tile[l + 1] = in[i]; \
    other[l] = in[i]; \
    threadgroup_barrier(mem_flags::mem_threadgroup); \
    out[i] = tile[l + 1] + other[127 - l]; \
  }
HALO(halo, 128)  // halo
HALO(halo_repaired, 129)

// Sums of simdgroups of which the last ones never came.
kernel void no_start(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
  threadgroup float sums[32];
  const float sum = simd_sum(in[i]);
  if (lane == 0) sums[simd] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float all = simd_sum(sums[lane]);  // no_start
  if (lane == 0 && simd == 0) out[group] = all;
}
kernel void no_start_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
  threadgroup float sums[32];
  if (simd == 0) sums[lane] = 0;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float sum = simd_sum(in[i]);
  if (lane == 0) sums[simd] = sum;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float all = simd_sum(sums[lane]);
  if (lane == 0 && simd == 0) out[group] = all;
}

// Adds to a result that nobody set to 0.
kernel void no_zero(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] += in[i];  // no_zero
}
kernel void no_zero_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = in[i];
}

// A sum by compare and exchange, where a NaN is never equal to itself (196203).
kernel void endless(device atomic_float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  float old, seen;
  do {
    old = seen = atomic_load_explicit(out, memory_order_relaxed);  // endless
    atomic_compare_exchange_weak_explicit(out, &old, seen + in[i], memory_order_relaxed, memory_order_relaxed);
  } while (old != seen);
}
// The exchange itself tells whether it was made: Apple's GPUs compare the floats.
kernel void exchanging(device atomic_float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  float old = atomic_load_explicit(out, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(out, &old, old * in[i], memory_order_relaxed, memory_order_relaxed));  // exchanging
}
kernel void exchanging_repaired(device atomic_float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(out, in[i], memory_order_relaxed);
}
kernel void endless_repaired(device atomic_uint* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  uint old = atomic_load_explicit(out, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(
      out, &old, as_type<uint>(in[i] + as_type<float>(old)), memory_order_relaxed, memory_order_relaxed));
}

// Reads through pointers that lie in memory, as fused operators do.
kernel void through_table(device float* out [[buffer(0)]], const device float* const device* table [[buffer(1)]],
    constant uint& reach [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  out[i] = table[i][reach];  // through_table
}

// An array of the thread's own.
kernel void own_array(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  float last[4] = {in[0], in[1], in[2], in[3]};
  last[i & 7] = in[i];  // own_array
  out[i] = last[i & 3];
}
kernel void own_array_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  float last[4] = {in[0], in[1], in[2], in[3]};
  last[i & 3] = in[i];
  out[i] = last[i & 3];
}

// Pointers that are picked when it runs: which argument one comes from is not known, but none goes beyond its tensor.
kernel void picked_pointer(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], constant uint& n [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  const device float* parts[3] = {in, in + 16, in + 32};
  float sum = 0;
  for (uint k = 0; k < n; ++k) sum += parts[(i + k) % 3][i];  // picked_pointer
  out[i] = sum;
}
kernel void picked_pointer_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], constant uint& n [[buffer(2)]],
    uint i [[thread_position_in_grid]]) {
  const device float* parts[3] = {in, in + 16, in + 32};
  float sum = 0;
  for (uint k = 0; k < n; ++k) sum += parts[(i + k) % 3][i % 16];
  out[i] = sum;
}

// A thread that waits for what another would have to write.
kernel void waiting(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  volatile device float* flag = out;
  while (flag[0] == 0);  // waiting
}
kernel void waiting_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  volatile device float* flag = out;
  if (flag[0] != 0) out[i + 1] = 1;
}

// A count in threadgroup memory that one thread starts atomically, while others may already add to it.
template <bool repaired> static void add_one(device float* out, const device float* in, uint i, uint l, threadgroup atomic_uint* count) {
  if (l == 0) atomic_store_explicit(count, 0u, memory_order_relaxed);
  if (repaired) threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = in[i] * atomic_fetch_add_explicit(count, 1u, memory_order_relaxed);  // atomic_start
}
kernel void atomic_start(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]],
    uint l [[thread_position_in_threadgroup]]) {
  threadgroup atomic_uint count;
  add_one<false>(out, in, i, l, &count);
}
kernel void atomic_start_repaired(device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]],
    uint l [[thread_position_in_threadgroup]]) {
  threadgroup atomic_uint count;
  add_one<true>(out, in, i, l, &count);
}
