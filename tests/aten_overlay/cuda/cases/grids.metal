// Where a thread is, in grids that threadgroups divide and in others.
#include <metal_stdlib>
using namespace metal;

kernel void places(device uint* out [[buffer(0)]], uint3 at [[thread_position_in_grid]], uint3 local [[thread_position_in_threadgroup]],
                   uint3 group [[threadgroup_position_in_grid]], uint3 size [[threads_per_threadgroup]], uint3 grid [[threads_per_grid]],
                   uint3 groups [[threadgroups_per_grid]], uint3 asked [[dispatch_threads_per_threadgroup]],
                   uint index [[thread_index_in_threadgroup]], uint lane [[thread_index_in_simdgroup]],
                   uint simd [[simdgroup_index_in_threadgroup]], uint simds [[simdgroups_per_threadgroup]]) {
  const ulong i = at.x + grid.x * (at.y + ulong(grid.y) * at.z);
  device uint* to = out + i * 8;
  to[0] = local.x | local.y << 8 | local.z << 16;
  to[1] = group.x, to[2] = group.y, to[3] = group.z;
  to[4] = size.x | size.y << 8 | size.z << 16;
  to[5] = groups.x + groups.y + groups.z + (asked.x << 16);
  to[6] = index;
  to[7] = lane | simd << 8 | simds << 16;
}
// Of those lanes that are there.
kernel void sums(device uint* out [[buffer(0)]], uint2 at [[thread_position_in_grid]], uint2 grid [[threads_per_grid]]) {
  out[at.x + grid.x * at.y] = simd_sum(1u);
}
kernel void long_way(device uchar* out [[buffer(0)]], uint3 at [[thread_position_in_grid]], uint3 grid [[threads_per_grid]]) {
  out[at.x + grid.x * (at.y + ulong(grid.y) * at.z)] = uchar(at.x + at.y * 3 + at.z * 5);
}
#define EACH(T) \
  kernel void twice_##T(device T* out [[buffer(0)]], device const T* x [[buffer(1)]], constant uint& n [[buffer(2)]], uint i [[thread_position_in_grid]]) { \
    if (i < n) out[i] = x[i] + x[i]; \
  }
EACH(uchar) EACH(half) EACH(float) EACH(ulong)
kernel void twice_float4(device float4* out [[buffer(0)]], device const float4* x [[buffer(1)]], constant uint& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
  if (i < n) out[i] = x[i] + x[i];
}
