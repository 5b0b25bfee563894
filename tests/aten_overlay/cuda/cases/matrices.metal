// Simdgroup matrices: products, layouts, transposed and at an origin.
#include <metal_stdlib>
using namespace metal;

template <class T>
kernel void product(device const T* a [[buffer(0)]], device const T* b [[buffer(1)]], device float* out [[buffer(2)]]) {
  simdgroup_matrix<T, 8, 8> x, y;
  simdgroup_float8x8 z = make_filled_simdgroup_matrix<float, 8, 8>(1.0);
  simdgroup_load(x, a, 8);
  simdgroup_load(y, b, 8, ulong2(0), true);
  simdgroup_multiply_accumulate(z, x, y, z);
  simdgroup_store(z, out, 8);
}
template [[host_name("product_float")]] [[kernel]] decltype(product<float>) product<float>;
template [[host_name("product_half")]] [[kernel]] decltype(product<half>) product<half>;
template [[host_name("product_bfloat")]] [[kernel]] decltype(product<bfloat>) product<bfloat>;

// Operands that were changed after they were loaded, and that were never in memory.
kernel void changed(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]], device float* out [[buffer(2)]]) {
  simdgroup_float8x8 x, y, z, w = make_filled_simdgroup_matrix<float, 8, 8>(0.0);
  simdgroup_load(x, a, 8);
  simdgroup_load(y, b, 8);
  x.thread_elements()[0] *= 2;
  x.thread_elements()[1] *= 2;
  simdgroup_multiply(z, x, y);
  simdgroup_multiply_accumulate(w, z, z, w);
  simdgroup_store(w, out, 8);
  simdgroup_store(z, out + 64, 8);
}
// Where each lane's elements are: Apple's layout.
kernel void layout(device const float* a [[buffer(0)]], device float2* out [[buffer(1)]], uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 x;
  simdgroup_load(x, a, 8);
  out[lane] = x.thread_elements();
}
kernel void diagonal(device float* out [[buffer(0)]]) {
  simdgroup_float8x8 x(3.0f);
  simdgroup_store(x, out, 8);
}
// A product of 32x32 through threadgroup memory, with a stride that is no multiple of four.
kernel void tiled(device const float* a [[buffer(0)]], device const float* b [[buffer(1)]], device float* out [[buffer(2)]],
                  uint i [[thread_index_in_threadgroup]], uint simd [[simdgroup_index_in_threadgroup]]) {
  threadgroup float left[32 * 33], right[32 * 36];
  for (uint k = i; k < 1024; k += 128) left[k / 32 * 33 + k % 32] = a[k], right[k / 32 * 36 + k % 32] = b[k];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  simdgroup_float8x8 sum[4];
  for (uint c = 0; c < 4; ++c) sum[c] = make_filled_simdgroup_matrix<float, 8, 8>(0.0);
  for (uint k = 0; k < 32; k += 8) {
    simdgroup_float8x8 x;
    simdgroup_load(x, left, 33, ulong2(k, simd * 8));
    for (uint c = 0; c < 4; ++c) {
      simdgroup_float8x8 y;
      simdgroup_load(y, right, 36, ulong2(c * 8, k));
      simdgroup_multiply_accumulate(sum[c], x, y, sum[c]);
    }
  }
  for (uint c = 0; c < 4; ++c) simdgroup_store(sum[c], out, 32, ulong2(c * 8, simd * 8));
}
