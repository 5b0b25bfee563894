// Functions across a simdgroup and a quadgroup, of all lanes and of some.
#include <metal_stdlib>
using namespace metal;

static bool takes_part(uint mode, uint lane) {
  return mode == 0 || (mode == 1 && lane < 10) || (mode == 2 && lane % 2 == 1) || (mode == 3 && lane != 7);
}
#define EACH(T, name, expression) \
  kernel void name##_##T(device const T* x [[buffer(0)]], device T* out [[buffer(1)]], constant uint& mode [[buffer(2)]], \
                         uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) { \
    const T v = x[i]; \
    T r = T(0); \
    if (takes_part(mode, lane)) r = T(expression); \
    out[i] = r; \
  }
#define NUMBERS(T) \
  EACH(T, sum, simd_sum(v)) EACH(T, product, simd_product(v < T(0) ? T(-1) : T(1))) EACH(T, least, simd_min(v)) EACH(T, greatest, simd_max(v)) \
  EACH(T, inclusive_sum, simd_prefix_inclusive_sum(v)) EACH(T, exclusive_sum, simd_prefix_exclusive_sum(v)) \
  EACH(T, inclusive_product, simd_prefix_inclusive_product(v < T(0) ? T(-1) : T(1))) \
  EACH(T, exclusive_product, simd_prefix_exclusive_product(v < T(0) ? T(-1) : T(1))) \
  EACH(T, broadcast, simd_broadcast(v, 7)) EACH(T, first, simd_broadcast_first(v)) EACH(T, reversed, simd_shuffle(v, ushort(31 - lane))) \
  EACH(T, exclusive_or, simd_shuffle_xor(v, 5)) EACH(T, down, simd_shuffle_down(v, 3)) EACH(T, up, simd_shuffle_up(v, 3)) \
  EACH(T, rotate_down, simd_shuffle_rotate_down(v, 4)) EACH(T, rotate_up, simd_shuffle_rotate_up(v, 4)) \
  EACH(T, fill_down, simd_shuffle_and_fill_down(v, T(v + T(1)), 3)) EACH(T, fill_up, simd_shuffle_and_fill_up(v, T(v + T(1)), 3)) \
  EACH(T, quad_total, quad_sum(v)) EACH(T, quad_least, quad_min(v)) EACH(T, quad_swap, quad_shuffle_xor(v, 1)) \
  EACH(T, quad_first, quad_broadcast(v, 0)) EACH(T, quad_down, quad_shuffle_down(v, 1)) EACH(T, quad_up, quad_shuffle_up(v, 1)) \
  EACH(T, quad_inclusive_sum, quad_prefix_inclusive_sum(v)) EACH(T, quad_exclusive_sum, quad_prefix_exclusive_sum(v))
NUMBERS(int) NUMBERS(float) NUMBERS(half) NUMBERS(short) NUMBERS(char)
#define BITS(T) \
  EACH(T, every_bit, simd_and(v)) EACH(T, any_bit, simd_or(v)) EACH(T, odd_bits, simd_xor(v)) EACH(T, quad_any_bit, quad_or(v))
BITS(int) BITS(short) BITS(uint)
EACH(uint, ballot, uint(ulong(simd_ballot(v & 1))))
EACH(uint, every, uint(simd_all(v < 1000)))
EACH(uint, some, uint(simd_any(v & 4)))
EACH(uint, elected, uint(simd_is_first()))
EACH(uint, active, uint(ulong(simd_active_threads_mask())))
EACH(uint, quad_votes, uint(ulong(quad_ballot(v & 1))))

// Lanes leave a loop one after the other: the sum is of those that are left.
kernel void rounds(device const uint* x [[buffer(0)]], device uint* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  uint total = 0;
  for (uint round = 0; round < x[i]; ++round) total += simd_sum(1u);
  out[i] = simd_sum(total);
}
kernel void vectors(device const float* x [[buffer(0)]], device float4* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  const float v = x[i];
  out[i] = simd_sum(float4(v, 2 * v, 3 * v, 4 * v)) + simd_shuffle_xor(float4(v), 16);
}
