// Kernels in pairs: one with a fault, which a comment marks on its line, and one without, whose name ends in _right.
#include <metal_stdlib>
using namespace metal;

// Integers of a partial simdgroup summed by shuffles (pytorch 187976, 191104): lanes past the last are read.
kernel void sum_shuffled(device int* out, constant int* in, uint i [[thread_position_in_grid]],
                         uint n [[threads_per_threadgroup]]) {
  int sum = in[i];
  for (ushort delta = 16; delta > 0; delta /= 2)
    sum += simd_shuffle_down(sum, delta);  // FAULT sum_shuffled
  if (i % n == 0) out[i / n] = sum;
}
kernel void sum_shuffled_right(device int* out, constant int* in, uint i [[thread_position_in_grid]],
                               uint lane [[thread_index_in_simdgroup]], uint n [[threads_per_threadgroup]]) {
  int sum = in[i];
  for (ushort delta = 16; delta > 0; delta /= 2) {
    const int other = simd_shuffle_down(sum, delta);
    if (lane + delta < n) sum += other;  // what an inactive lane gives is dropped
  }
  if (i % n == 0) out[i / n] = sum;
}

// Only active lanes take part in a reduction: nothing is open here.
kernel void sum_reduced_right(device int* out, constant int* in, uint i [[thread_position_in_grid]],
                              uint n [[threads_per_threadgroup]]) {
  const int sum = simd_sum(in[i]);
  if (i % n == 0) out[i / n] = sum;
}

// 64-bit integers summed as pairs, with zeros filled in from beyond the simdgroup but not for inactive lanes.
kernel void sum_long(device long* out, constant long* in, uint i [[thread_position_in_grid]],
                     uint n [[threads_per_threadgroup]]) {
  long sum = in[i];
  for (ushort delta = 16; delta > 0; delta /= 2)
    sum += as_type<long>(simd_shuffle_and_fill_down(as_type<int2>(sum), int2(0), delta));  // FAULT sum_long
  if (i % n == 0) out[i / n] = sum;
}
kernel void sum_long_right(device long* out, constant long* in, uint i [[thread_position_in_grid]],
                           uint lane [[thread_index_in_simdgroup]], uint n [[threads_per_threadgroup]]) {
  long sum = in[i];
  for (ushort delta = 16; delta > 0; delta /= 2) {
    const long other = as_type<long>(simd_shuffle_and_fill_down(as_type<int2>(sum), int2(0), delta));
    sum += lane + delta < n ? other : 0;
  }
  if (i % n == 0) out[i / n] = sum;
}

// Half of the lanes shuffle, and read from the other half.
kernel void swap_in_branch(device float* out, constant float* in, uint i [[thread_position_in_grid]]) {
  float value = in[i];
  if (i % 32 < 16) {
    value = simd_shuffle_xor(value, 16);  // FAULT swap_in_branch
  }
  out[i] = value;
}
kernel void swap_in_branch_right(device float* out, constant float* in, uint i [[thread_position_in_grid]]) {
  const float value = in[i], other = simd_shuffle_xor(value, 16);
  out[i] = i % 32 < 16 ? other : value;
}

// A lane that no simdgroup has.
kernel void read_lane(device float* out, constant float* in, constant uint& lane, uint i [[thread_position_in_grid]]) {
  out[i] = simd_shuffle(in[i], ushort(lane));  // FAULT read_lane
}
kernel void read_lane_right(device float* out, constant float* in, constant uint& lane,
                            uint i [[thread_position_in_grid]]) {
  out[i] = simd_shuffle(in[i], ushort(lane % 32));
}

// The last lanes of a full simdgroup keep their own value: that is defined.
kernel void shift_right(device float* out, constant float* in, uint i [[thread_position_in_grid]]) {
  out[i] = simd_shuffle_down(in[i], 3) + simd_shuffle_up(in[i], 2);
}

// The first lane that is active, whichever it is.
kernel void broadcast_first_right(device float* out, constant float* in, uint i [[thread_position_in_grid]]) {
  float value = 0;
  if (i % 32 > 4) value = simd_broadcast_first(in[i]);
  out[i] = value;
}
