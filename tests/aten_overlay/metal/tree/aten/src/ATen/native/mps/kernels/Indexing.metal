#include <metal_stdlib>
using namespace metal;

struct Indices {
  device const long* of[1];
};

// `offsets` are bytes: of the output, the values and the indices. Several threads may add to one element.
kernel void index_put_accumulate_32bit_float_idx32(
    constant Indices& indices [[buffer(0)]],
    constant long* sizes [[buffer(1)]],
    constant long* strides [[buffer(2)]],
    constant uint4* offsets [[buffer(3)]],
    constant char* values [[buffer(4)]],
    device char* out [[buffer(5)]],
    constant uint& count [[buffer(6)]],
    uint thread_id [[thread_position_in_grid]]) {
  uint4 at = offsets[thread_id];
  long offset = at.x;
  for (uint i = 0; i < count; ++i) {
    long index = indices.of[i][at.z / sizeof(long)];
    offset += (index < 0 ? index + sizes[i] : index) * strides[i];
  }
  float value = *reinterpret_cast<constant float*>(values + at.y);
  device atomic_uint* to = reinterpret_cast<device atomic_uint*>(out + offset);
  uint seen = atomic_load_explicit(to, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(
      to, &seen, as_type<uint>(as_type<float>(seen) + value), memory_order_relaxed, memory_order_relaxed)) {
  }
}
