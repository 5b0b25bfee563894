// What c10/metal/reduction_utils.h reduces with, one threadgroup a row; every thread writes what it is told.
#include <c10/metal/reduction_utils.h>
#include <metal_stdlib>
using namespace metal;

#define REDUCTION(name, T, shared_type, out_type) \
  kernel void name##_##T( \
      constant T* x [[buffer(0)]], device out_type* out [[buffer(1)]], uint i [[thread_position_in_grid]], \
      uint id [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) { \
    threadgroup shared_type shared[32]; \
    out[i] = c10::metal::threadgroup_##name(shared, x[i], id, size); \
  }
REDUCTION(sum, float, float, float)
REDUCTION(sum, half, float, float)
REDUCTION(sum, int, int, int)
REDUCTION(sum, long, long, long)
REDUCTION(prod, float, float, float)
REDUCTION(max, float, float, float)
REDUCTION(max, int, int, int)
REDUCTION(min, float, float, float)
REDUCTION(min, short, short, short)

#define POSITION(name, T) \
  kernel void name##_##T( \
      constant T* x [[buffer(0)]], device int* out [[buffer(1)]], uint i [[thread_position_in_grid]], \
      uint id [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) { \
    threadgroup T best[32]; \
    threadgroup int place[32]; \
    out[i] = c10::metal::threadgroup_##name(best, place, x[i], int(id), id, size); \
  }
POSITION(argmax, float)
POSITION(argmin, int)

kernel void welford(
    constant float* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]],
    uint id [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
  threadgroup float3 shared[1024];
  shared[id] = float3(x[i], 0, 1);
  for (uint step = 512; step > 0; step /= 2) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (id < step && id + step < size) shared[id] = c10::metal::welford_combine(shared[id], shared[id + step]);
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[0].y / shared[0].z;
}
// A scan of a row: prefix sums of simdgroups, then of their totals.
kernel void scan(
    constant float* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]], uint n [[simdgroups_per_threadgroup]],
    uint size [[threads_per_threadgroup]], uint id [[thread_position_in_threadgroup]]) {
  threadgroup float totals[32];
  const float inclusive = simd_prefix_inclusive_sum(x[i]);
  if (lane == 31 || id == size - 1) totals[simd] = inclusive;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (simd == 0 && lane < n) totals[lane] = simd_prefix_exclusive_sum(totals[lane]);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = inclusive + totals[simd];
}
