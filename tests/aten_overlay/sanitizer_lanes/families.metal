// Kernels that some families of Apple's GPUs do not have; a comment marks the line.
#include <metal_stdlib>
#include <metal_tensor>
#include <MetalPerformancePrimitives/MetalPerformancePrimitives.h>
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

// An overload for bfloat beside one for floats uses no bfloat.
inline bfloat twice(bfloat x) { return x + x; }
inline float twice(float x) { return x + x; }
template <typename T>
kernel void twice_all(device const T* in, device T* out, uint i [[thread_position_in_grid]]) {
  out[i] = twice(in[i]);
}
template [[host_name("double_float")]] kernel void twice_all<float>(device const float*, device float*, uint);
template [[host_name("double_bfloat")]] kernel void twice_all<bfloat>(device const bfloat*, device bfloat*, uint);  // FAULT double_bfloat
kernel void convert(device const float* in, device float* out, uint i [[thread_position_in_grid]]) {
  out[i] = float(bfloat(in[i]));  // FAULT convert
}
kernel void tile(device const float* in, device float* out) {
  simdgroup_float8x8 a, b;  // FAULT tile
  simdgroup_load(a, in);
  simdgroup_multiply(b, a, a);
  simdgroup_store(b, out);
}
kernel void product(device float* a, device float* b, device float* c) {
  auto A = tensor(a, dextents<int, 2>(32, 32));
  auto B = tensor(b, dextents<int, 2>(32, 32));
  auto C = tensor(c, dextents<int, 2>(32, 32));
  constexpr auto shape = mpp::tensor_ops::matmul2d_descriptor(32, 32, 32);  // FAULT product
  mpp::tensor_ops::matmul2d<shape, execution_simdgroups<1>> operation;
  operation.run(A, B, C);
}
