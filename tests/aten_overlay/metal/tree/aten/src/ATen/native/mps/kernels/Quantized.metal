#include <metal_stdlib>
using namespace metal;

// `sizes` are rows, inner and columns. A simdgroup adds up four columns of a row; weights are four bits, less 8.
kernel void int4pack_mm_32_float(
    constant float* a [[buffer(0)]],
    constant uchar* b [[buffer(1)]],
    constant float2* scalesAndZeros [[buffer(2)]],
    device float* out [[buffer(3)]],
    constant uint3& sizes [[buffer(4)]],
    uint3 at [[thread_position_in_grid]],
    uint lane [[thread_index_in_simdgroup]]) {
  uint row = at.z, first = at.x / 32 * 4;
  float sums[4] = {};
  for (uint i = lane; i < sizes.y; i += 32) {
    for (uint j = 0; j < 4; ++j) {
      uchar both = b[(first + j) * (sizes.y / 2) + i / 2];
      float2 scale = scalesAndZeros[i / 32 * sizes.z + first + j];
      float code = float(i % 2 ? both >> 4 : both & 15) - 8;
      sums[j] += a[row * sizes.y + i] * (code * scale.x + scale.y);
    }
  }
  for (uint j = 0; j < 4; ++j) {
    float sum = simd_sum(sums[j]);
    if (lane == 0) {
      out[row * sizes.z + first + j] = sum;
    }
  }
}

// Two simdgroups share eight columns of a row; their sums meet in memory that the host gives.
kernel void int8pack_mv_float(
    constant float* a [[buffer(0)]],
    constant char* b [[buffer(1)]],
    constant float* scalesAndZeros [[buffer(2)]],
    device float* out [[buffer(3)]],
    constant uint3& sizes [[buffer(4)]],
    threadgroup float* sums [[threadgroup(0)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_id [[thread_index_in_threadgroup]],
    uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
  for (uint j = 0; j < 4; ++j) {
    uint column = group.x * 8 + simdgroup * 4 + j;
    float sum = 0;
    for (uint i = lane; i < sizes.y; i += 32) {
      sum += a[group.y * sizes.y + i] * float(b[column * sizes.y + i]);
    }
    sum = simd_sum(sum);
    if (lane == 0) {
      sums[simdgroup * 4 + j] = sum;
    }
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (thread_id < 8) {
    uint column = group.x * 8 + thread_id;
    out[group.y * sizes.z + column] = sums[thread_id] * scalesAndZeros[column];
  }
}

// Tiles of 32 rows and 64 columns, with two planted defects: no barrier keeps the scales from being written where other
// simdgroups still read weights, and 64 scales are read where there may be 32.
kernel void large_m_int8pack_mm_float(
    constant float* a [[buffer(0)]],
    constant char* b [[buffer(1)]],
    constant float* scalesAndZeros [[buffer(2)]],
    device float* out [[buffer(3)]],
    constant uint3& sizes [[buffer(4)]],
    threadgroup char* shared [[threadgroup(0)]],
    uint2 group [[threadgroup_position_in_grid]],
    uint thread_id [[thread_index_in_threadgroup]]) {
  threadgroup float* left = reinterpret_cast<threadgroup float*>(shared);
  threadgroup float* right = left + 32 * 32;
  uint column = thread_id % 64, half_of_rows = thread_id / 64 * 16;
  float sums[16] = {};
  for (uint start = 0; start < sizes.y; start += 32) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_id; i < 32 * 32; i += 128) {
      uint row = group.x * 32 + i / 32;
      left[i] = row < sizes.x ? a[row * sizes.y + start + i % 32] : 0;
    }
    for (uint i = thread_id; i < 64 * 32; i += 128) {
      uint from = group.y * 64 + i / 32;
      right[i] = from < sizes.z ? float(b[from * sizes.y + start + i % 32]) : 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint j = 0; j < 16; ++j) {
      for (uint i = 0; i < 32; ++i) {
        sums[j] += left[(half_of_rows + j) * 32 + i] * right[column * 32 + i];
      }
    }
  }
  if (thread_id >= 64) {
    right[thread_id - 64] = scalesAndZeros[group.y * 64 + thread_id - 64];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint j = 0; j < 16; ++j) {
    uint row = group.x * 32 + half_of_rows + j;
    if (row < sizes.x && group.y * 64 + column < sizes.z) {
      out[row * sizes.z + group.y * 64 + column] = sums[j] * right[column];
    }
  }
}
