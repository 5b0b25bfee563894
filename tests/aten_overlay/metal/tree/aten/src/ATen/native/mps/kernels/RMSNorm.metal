#include <metal_stdlib>
using namespace metal;

// One threadgroup normalizes a row. What each simdgroup adds up meets in threadgroup memory.
template <typename T>
inline float scale_of_row(float sum, uint size, float eps, threadgroup float* sums, uint lane, uint group, uint groups) {
  sum = simd_sum(sum);
  if (lane == 0) {
    sums[group] = sum;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  float total = simd_sum(lane < groups ? sums[lane] : 0.0f);
  return metal::precise::rsqrt(total / size + eps);
}

template <typename T>
kernel void rms_norm(
    device const T* x [[buffer(0)]],
    device const T* weight [[buffer(1)]],
    device T* out [[buffer(2)]],
    constant float& eps [[buffer(3)]],
    constant uint& size [[buffer(4)]],
    constant uint& weight_stride [[buffer(5)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint group [[simdgroup_index_in_threadgroup]],
    uint groups [[simdgroups_per_threadgroup]]) {
  constexpr uint each = 4;
  threadgroup float sums[32];
  device const T* from = x + row * size;
  float sum = 0;
  for (uint i = thread_id * each; i < min(size, (thread_id + 1) * each); ++i) {
    sum += float(from[i]) * float(from[i]);
  }
  float scale = scale_of_row<T>(sum, size, eps, sums, lane, group, groups);
  for (uint i = thread_id * each; i < min(size, (thread_id + 1) * each); ++i) {
    out[row * size + i] = T(float(from[i]) * scale * float(weight[i * weight_stride]));
  }
}

template <typename T>
kernel void rms_norm_looped(
    device const T* x [[buffer(0)]],
    device const T* weight [[buffer(1)]],
    device T* out [[buffer(2)]],
    constant float& eps [[buffer(3)]],
    constant uint& size [[buffer(4)]],
    constant uint& weight_stride [[buffer(5)]],
    uint row [[threadgroup_position_in_grid]],
    uint thread_id [[thread_position_in_threadgroup]],
    uint threads [[threads_per_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint group [[simdgroup_index_in_threadgroup]],
    uint groups [[simdgroups_per_threadgroup]]) {
  threadgroup float sums[32];
  device const T* from = x + row * size;
  float sum = 0;
  for (uint i = thread_id; i < size; i += threads) {
    sum += float(from[i]) * float(from[i]);
  }
  float scale = scale_of_row<T>(sum, size, eps, sums, lane, group, groups);
  for (uint i = thread_id; i < size; i += threads) {
    out[row * size + i] = T(float(from[i]) * scale * float(weight[i * weight_stride]));
  }
}

#define REGISTER_RMS_NORM(NAME, T)                              \
  template [[host_name(#NAME "_" #T)]] kernel void NAME<T>(     \
      device const T*, device const T*, device T*, constant float&, constant uint&, constant uint&, uint, uint, \
      MORE_OF_##NAME uint, uint, uint)
#define MORE_OF_rms_norm
#define MORE_OF_rms_norm_looped uint,
REGISTER_RMS_NORM(rms_norm, float);
REGISTER_RMS_NORM(rms_norm, half);
REGISTER_RMS_NORM(rms_norm_looped, float);
REGISTER_RMS_NORM(rms_norm_looped, half);
