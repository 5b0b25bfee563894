// Accesses beyond what is bound.
#include <metal_stdlib>
using namespace metal;

kernel void shift_left(constant float* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = x[i + 1];
}
kernel void overrun(device float* out [[buffer(0)]], uint i [[thread_position_in_grid]]) { out[i] = i; }
kernel void beyond_shared(
    device float* out [[buffer(0)]], threadgroup float* shared [[threadgroup(0)]], uint i [[thread_index_in_threadgroup]]) {
  shared[i] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[i];
}
kernel void beyond_own(device float* out [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float shared[32];
  shared[i] = i;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[i];
}
kernel void scratch(device float* out [[buffer(0)]], constant float* x [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  float local[8];
  for (int k = 0; k < 8; ++k) local[k] = x[(i + k) % 16];
  out[i] = local[i % 8];
}
