// Kernels that some families of Apple's GPUs do not have; a comment marks the line.
#include <metal_stdlib>
using namespace metal;

kernel void largest(device atomic_ulong* out, constant ulong* in, uint i [[thread_position_in_grid]]) {
  atomic_max_explicit(out, in[i], memory_order_relaxed);  // FAULT largest
}
kernel void count(device atomic_ulong* out, constant ulong* in, uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(out, in[i], memory_order_relaxed);  // FAULT count
}
kernel void sum(device long* out, constant long* in, uint i [[thread_position_in_grid]]) {
  const long all = simd_sum(in[i]);  // FAULT sum
  if (i == 0) out[0] = all;
}
kernel void sum_pairs(device long* out, constant long* in, uint i [[thread_position_in_grid]]) {
  long all = in[i];
  for (ushort delta = 16; delta > 0; delta /= 2)
    all += as_type<long>(simd_shuffle_down(as_type<uint2>(all), delta));
  if (i == 0) out[0] = all;
}
kernel void narrow(device atomic_uint* out, constant uint* in, uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(out, simd_sum(in[i]), memory_order_relaxed);
}
