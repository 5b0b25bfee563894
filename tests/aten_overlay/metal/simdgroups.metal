// Barriers and functions across a simdgroup; every thread writes one value.
#include <metal_stdlib>
using namespace metal;

#define EACH(name, expression) \
  kernel void name(constant int* x [[buffer(0)]], device int* out [[buffer(1)]], uint i [[thread_position_in_grid]], \
                   uint lane [[thread_index_in_simdgroup]]) { \
    const int v = x[i]; \
    out[i] = expression; \
  }
EACH(sum, simd_sum(v))
EACH(product, simd_product(v & 1 ? 1 : -1))
EACH(least, simd_min(v))
EACH(greatest, simd_max(v))
EACH(inclusive, simd_prefix_inclusive_sum(v))
EACH(exclusive, simd_prefix_exclusive_sum(v))
EACH(broadcast, simd_broadcast(v, 7))
EACH(shuffle, simd_shuffle(v, ushort(31 - lane)))
EACH(exclusive_or, simd_shuffle_xor(v, 5))
EACH(down, simd_shuffle_and_fill_down(v, -1, 3))
EACH(up, simd_shuffle_and_fill_up(v, -1, 3))
EACH(rotated, simd_shuffle_rotate_down(v, 4))
EACH(ballot, int(uint(ulong(simd_ballot(v > 0)))))
EACH(every, simd_all(v > -1000) + 2 * simd_any(v > 1000))
EACH(elected, simd_is_first())
EACH(quads, quad_sum(v))
EACH(quad_swap, quad_shuffle_xor(v, 1))
EACH(divergent, lane < 10 ? simd_sum(v) : simd_max(v))
EACH(rejoined, (lane < 10 ? simd_sum(v) : 0) + simd_sum(v))

// A tree reduction over threadgroup memory; without the barrier it depends on the order of threads.
template <bool Waits>
kernel void tree(
    constant int* x [[buffer(0)]], device int* out [[buffer(1)]], threadgroup int* shared [[threadgroup(0)]],
    uint i [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
  shared[i] = x[group * n + i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (uint step = n / 2; step > 0; step /= 2) {
    if (i < step) shared[i] += shared[i + step];
    if (Waits) threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  if (i == 0) out[group] = shared[0];
}
template [[host_name("tree_waiting")]] [[kernel]] decltype(tree<true>) tree<true>;
template [[host_name("tree_hasty")]] [[kernel]] decltype(tree<false>) tree<false>;

kernel void own_memory(constant int* x [[buffer(0)]], device int* out [[buffer(1)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup int shared[64];
  shared[i] = x[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = shared[63 - i];
}
kernel void matrices(
    constant float* a [[buffer(0)]], constant float* b [[buffer(1)]], device float* out [[buffer(2)]]) {
  simdgroup_float8x8 x, y, z = make_filled_simdgroup_matrix<float, 8, 8>(1.0);
  simdgroup_load(x, a, 8);
  simdgroup_load(y, b, 8, ulong2(0), true);
  simdgroup_multiply_accumulate(z, x, y, z);
  simdgroup_store(z, out, 8);
}
kernel void matrix_elements(device float* out [[buffer(0)]], uint lane [[thread_index_in_simdgroup]]) {
  simdgroup_float8x8 m(1.0);
  thread simdgroup_float8x8::storage_type& own = m.thread_elements();
  own *= 2;
  out[lane] = own[0] + own[1];
}
