// What benchmarks/kernels.py times: elementwise functions, and two row-wise reductions with barriers, and a product of matrices.
#include <c10/metal/special_math.h>
#include <metal_simdgroup_matrix>
#include <metal_stdlib>
using namespace metal;

#define UNARY(name, function) \
  kernel void name(constant float* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) { \
    out[i] = function(x[i]); \
  }
#define BINARY(name, expression) \
  kernel void name( \
      constant float* x [[buffer(0)]], constant float* y [[buffer(1)]], device float* out [[buffer(2)]], \
      uint i [[thread_position_in_grid]]) { \
    const float a = x[i], b = y[i]; \
    out[i] = expression; \
  }
UNARY(k_exp, precise::exp) UNARY(k_log, precise::log) UNARY(k_sin, precise::sin) UNARY(k_cos, precise::cos)
UNARY(k_tan, precise::tan) UNARY(k_tanh, precise::tanh) UNARY(k_sqrt, precise::sqrt) UNARY(k_erf, c10::metal::erf)
BINARY(k_add, a + b) BINARY(k_mul, a * b) BINARY(k_atan2, precise::atan2(a, b)) BINARY(k_pow, precise::pow(a, b))

// One threadgroup a row: sums (or maxima) of simdgroups meet in threadgroup memory.
inline float group_sum(threadgroup float* shared, float v, uint lane, uint simd, uint simds) {
  v = simd_sum(v);
  if (lane == 0) shared[simd] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  v = simd_sum(lane < simds ? shared[lane] : 0.0);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return v;
}
inline float group_max(threadgroup float* shared, float v, uint lane, uint simd, uint simds) {
  v = simd_max(v);
  if (lane == 0) shared[simd] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  v = simd_max(lane < simds ? shared[lane] : -INFINITY);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return v;
}
kernel void rms_norm(
    constant float* x [[buffer(0)]], device float* out [[buffer(1)]], constant uint& n [[buffer(2)]], constant float& eps [[buffer(3)]],
    uint row [[threadgroup_position_in_grid]], uint lid [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]], uint simds [[simdgroups_per_threadgroup]]) {
  threadgroup float shared[32];
  x += row * n;
  out += row * n;
  float sum = 0;
  for (uint i = lid; i < n; i += size) sum += x[i] * x[i];
  const float scale = precise::rsqrt(group_sum(shared, sum, lane, simd, simds) / n + eps);
  for (uint i = lid; i < n; i += size) out[i] = x[i] * scale;
}
kernel void softmax(
    constant float* x [[buffer(0)]], device float* out [[buffer(1)]], constant uint& n [[buffer(2)]],
    uint row [[threadgroup_position_in_grid]], uint lid [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]], uint simds [[simdgroups_per_threadgroup]]) {
  threadgroup float shared[32];
  x += row * n;
  out += row * n;
  float largest = -INFINITY;
  for (uint i = lid; i < n; i += size) largest = max(largest, x[i]);
  largest = group_max(shared, largest, lane, simd, simds);
  float sum = 0;
  for (uint i = lid; i < n; i += size) sum += precise::exp(x[i] - largest);
  sum = group_sum(shared, sum, lane, simd, simds);
  for (uint i = lid; i < n; i += size) out[i] = precise::exp(x[i] - largest) / sum;
}

// One threadgroup of four simdgroups a tile of 64 x 64; sides are whole tiles. Each simdgroup holds a quarter of it.
kernel void matmul(
    device const float* a [[buffer(0)]], device const float* b [[buffer(1)]], device float* out [[buffer(2)]],
    constant uint& n [[buffer(3)]], uint2 tile [[threadgroup_position_in_grid]], uint thread_index [[thread_index_in_threadgroup]],
    uint simd [[simdgroup_index_in_threadgroup]]) {
  threadgroup float left[64 * 32], right[32 * 64];
  const uint y = simd / 2 * 32, x = simd % 2 * 32;
  simdgroup_float8x8 sums[4][4];
  for (uint i = 0; i < 4; ++i)
    for (uint j = 0; j < 4; ++j) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  for (uint start = 0; start < n; start += 32) {
    for (uint i = thread_index; i < 64 * 32; i += 128) {
      left[i] = a[(tile.y * 64 + i / 32) * n + start + i % 32];
      right[i] = b[(start + i / 64) * n + tile.x * 64 + i % 64];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < 32; k += 8) {
      simdgroup_float8x8 l[4], r[4];
#pragma unroll
      for (uint i = 0; i < 4; ++i) {
        simdgroup_load(l[i], left + (y + 8 * i) * 32 + k, 32);
        simdgroup_load(r[i], right + k * 64 + x + 8 * i, 64);
      }
#pragma unroll
      for (uint i = 0; i < 4; ++i)
#pragma unroll
        for (uint j = 0; j < 4; ++j) simdgroup_multiply_accumulate(sums[i][j], l[i], r[j], sums[i][j]);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  device float* to = out + (tile.y * 64 + y) * n + tile.x * 64 + x;
#pragma unroll
  for (uint i = 0; i < 4; ++i)
#pragma unroll
    for (uint j = 0; j < 4; ++j) simdgroup_store(sums[i][j], to + 8 * i * n + 8 * j, n);
}
