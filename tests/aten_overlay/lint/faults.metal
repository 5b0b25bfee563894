// Faults that compile, each beside its repair; a comment marks the line of what is found.
#include <metal_simdgroup_matrix>
#include <metal_stdlib>
using namespace metal;

// The largest of 128 numbers, of which three simdgroups are dropped.
[[max_total_threads_per_threadgroup(128)]]
kernel void peak(device const float* in, device float* out, uint t [[thread_index_in_threadgroup]],
    uint g [[threadgroup_position_in_grid]]) {
  float top = -INFINITY;
  for (uint k = t; k < 512; k += 128) top = max(top, in[g * 512 + k]);
  const float all = simd_max(top);
  if (t == 0) {
    out[g] = all;  // FAULT PTR291 peak
  }
}
// One simdgroup is all there is.
[[max_total_threads_per_threadgroup(32)]]
kernel void peak_of_simdgroup(device const float* in, device float* out, uint t [[thread_index_in_threadgroup]]) {
  const float all = simd_max(in[t]);
  if (t == 0) out[0] = all;
}
// Each simdgroup has all of it.
[[max_total_threads_per_threadgroup(128)]]
kernel void peak_in_each(device const float* in, device float* out, uint t [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
  const float all = simd_max(in[lane]);
  if (t == 0) out[0] = all;
}
// The first simdgroup alone goes on.
[[max_total_threads_per_threadgroup(128)]]
kernel void peak_of_first(device const float* in, device float* out, uint t [[thread_index_in_threadgroup]]) {
  if (t >= 32) return;
  const float all = simd_max(in[t]);
  if (t == 0) out[0] = all;
}
// Simdgroups meet in threadgroup memory.
[[max_total_threads_per_threadgroup(128)]]
kernel void peak_of_all(device const float* in, device float* out, uint t [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]]) {
  threadgroup float tops[4];
  const float top = simd_max(in[t]);
  if (lane == 0) tops[s] = top;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  const float all = simd_max(tops[lane % 4]);
  if (t == 0) out[0] = all;
}
kernel void peak_of_firsts(device const float* in, device float* out, uint t [[thread_position_in_threadgroup]],
    uint g [[threadgroup_position_in_grid]]) {
  const float top = simd_max(in[g * 64 + t]);
  if (simd_is_first()) out[g] = top;  // FAULT PTR291 peak_of_firsts
}
kernel void peak_of_each(device const float* in, device float* out, uint t [[thread_position_in_threadgroup]],
    uint g [[threadgroup_position_in_grid]]) {
  out[g] = simd_max(in[g * 64 + t]);  // FAULT PTR291 peak_of_each
}
kernel void peak_for_each(device const float* in, device float* out, uint t [[thread_position_in_grid]]) {
  out[t] = in[t] / simd_max(in[t]);
}
// How a launch says it: one column of threads, or rows of 32.
kernel void row_sum(device const float* in, device float* out, uint2 t [[thread_position_in_threadgroup]],
    uint2 g [[thread_position_in_grid]]) {
  float sum = simd_sum(in[g.y * 64 + g.x]);
  sum *= 0.5f;
  if (t.x == 0) out[g.y] = sum;  // FAULT PTR291 row_sum
}

kernel void swapped(device float* data, uint t [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = data[t];
  threadgroup_barrier(mem_flags::mem_none);  // FAULT PTR292 swapped
  data[t] = tile[63 - t];
}
kernel void swapped_in_order(device float* data, uint t [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = data[t];
  threadgroup_barrier(mem_flags::mem_none);
  tile[t] *= 2;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  data[t] = tile[63 - t];
  threadgroup_barrier(mem_flags::mem_none);
}
// The next turn writes what another thread still reads in this one.
kernel void turns(device float* data, uint t [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  float sum = 0;
  for (int k = 0; k < 4; ++k) {
    tile[t] = data[k * 64 + t];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum += tile[63 - t];
    threadgroup_barrier(mem_flags::mem_device);  // FAULT PTR292 turns
  }
  data[t] = sum;
}

kernel void edge(device float* data, constant uint& n, uint t [[thread_position_in_threadgroup]]) {
  threadgroup float tile[64];
  const uint place = t * 2;
  if (place >= n)
    return;  // FAULT PTR293 edge
  tile[t] = data[place];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  data[place] = tile[0];
}
// The row decides, which all threads of a threadgroup share; and after the last barrier each goes its way.
kernel void edge_of_rows(device float* data, constant uint& n, uint t [[thread_position_in_threadgroup]],
    uint row [[threadgroup_position_in_grid]]) {
  threadgroup float tile[64];
  if (row >= n) return;
  tile[t] = data[row * 64 + t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (t > 0) return;
  data[row] = tile[63];
}

[[max_total_threads_per_threadgroup(32)]]
kernel void square(device const float* in, device float* out) {  // FAULT PTR294 square
  simdgroup_float8x8 a, c = make_filled_simdgroup_matrix<float, 8, 8>(0);
  simdgroup_load(a, in, 8);
  simdgroup_multiply_accumulate(c, a, a, c);
  simdgroup_store(c, out, 8);
}
[[max_total_threads_per_threadgroup(64)]]
kernel void square_in_two(device const float* in, device float* out) {
  simdgroup_float8x8 a, c = make_filled_simdgroup_matrix<float, 8, 8>(0);
  simdgroup_load(a, in, 8);
  simdgroup_multiply_accumulate(c, a, a, c);
  simdgroup_store(c, out, 8);
}
kernel void bits(device ushort* out, constant float& one) {
  out[0] = as_type<ushort>((bfloat)(1.5f));  // FAULT PTR294 bits
  out[1] = as_type<ushort>(bfloat(one));
}

[[max_total_threads_per_threadgroup(32)]]
kernel void tail(device float* data, constant uint& n, uint t [[thread_position_in_threadgroup]]) {
  threadgroup float tile[32];
  if (t >= n) return;  // FAULTS PTR293 PTR294 tail
  tile[t] = data[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  data[t] = tile[n - 1 - t];
}
#define TWICE(x) x x
#define EIGHT_TIMES(x) TWICE(TWICE(TWICE(x)))
float pick(float3 v, int k) {
  float3 part = v * 2;
  return part[k];
}
float pick_four(float3 v, int k) { return pick(v, k) + pick(v, k + 1) + pick(v, k + 2) + pick(v, k - 1); }
kernel void picks(device float* out, constant int& k) {  // FAULT PTR294 picks
  EIGHT_TIMES(TWICE(out[0] += pick_four(out[1], k);)) EIGHT_TIMES(out[1] += pick_four(out[0], k);)
}
kernel void few_picks(device float* out, constant int& k) { EIGHT_TIMES(TWICE(out[0] += pick_four(out[1], k);)) }
