// Parts of the library that few kernels use: quadgroups, packed vectors, suffixes, lists in braces.
#include <TargetConditionals.h>
#include <metal_raytracing>
#include <metal_stdlib>
#include <metal_visible_function_table>
using namespace metal;
using namespace metal::raytracing;

// Each lane gives its own number; the host knows what each function makes of it.
kernel void quads(device float* out, uint lane [[thread_index_in_simdgroup]], uint size [[threads_per_simdgroup]]) {
  const float v = lane;
  device float* row = out;
  row[lane] = quad_shuffle_rotate_up(v, 1), row += size;
  row[lane] = quad_shuffle_rotate_down(v, 1), row += size;
  row[lane] = quad_shuffle_and_fill_up(v, v + 100, 1), row += size;
  row[lane] = quad_shuffle_and_fill_down(v, v + 100, 1, 2), row += size;
  row[lane] = quad_broadcast_first(v), row += size;
  row[lane] = quad_is_first(), row += size;
  row[lane] = ulong(quad_active_threads_mask()), row += size;
  if (lane % 4 > 1) {
    row[lane] = quad_broadcast_first(v);
    row[lane + size] = quad_is_first() + ulong(quad_active_threads_mask());
  }
}

struct Vertex {
  packed_float3 at;
  packed_half2 uv;
};

kernel void packed(device float* out, device Vertex* vertices) {
  device Vertex& v = vertices[0];
  v.at.xy = v.at.yx;
  v.at.z++;
  const float3 back = -v.at.zyx;
  packed_float3 p = back.zyx;
  p *= 2.0f;
  v.uv = half2(packed_float3(p.xy, 1.0f).x, 3.0h);
  out[0] = sizeof(Vertex);
  out[1] = back.x, out[2] = p.x, out[3] = p.y, out[4] = p.z;
}

kernel void suffixes(device float* out) {
  out[0] = 1.5bf + 2BF;
  out[1] = 2.5H * 2h;
  out[2] = 0x2bf;
  out[3] = (bfloat4(1.0bf, .5bf, 0, 1e1bf) * 2.0bf).w;
}

kernel void lists(device float* out) {
  const float3x3 m = float3x3({0, 1, 0}, {2, 0, 0}, {0, 0, 3});
  const float3 v = m * float3(1, 2, 3);
  out[0] = v.x, out[1] = v.y, out[2] = v.z;
  out[3] = dot(step(float3(1, 2, 3), float3(2)), float3(1, 10, 100)) + dot(step(0.5f, float2(0, 1)), float2(1000, 2000));
  float4 w(1, 2, 3, 4);
  const float2 old = w.yz++;
  const float4 before = w--;
  out[4] = old.x, out[5] = before.y, out[6] = w.z;
}

[[visible]] float twice(float x) { return 2 * x; }
[[stitchable]] float thrice(float x) { return 3 * x; }

kernel void marked(device float* out) {
  const ray r(float3(1), float3(2), 0.5f);
  out[0] = twice(r.direction.x) + thrice(r.min_distance) + TARGET_OS_OSX + __METAL_MACOS__;
}

kernel void commands(device MTLDispatchThreadgroupsIndirectArguments& dispatch, device MTLQuadTessellationFactorsHalf* factors) {
  dispatch.threadgroupsPerGrid[1] = sizeof(MTLDrawIndexedPrimitivesIndirectArguments);
  factors[1].insideTessellationFactor[1] = 2;
}

kernel void traced(device float* out, instance_acceleration_structure scene [[buffer(1)]]) { out[0] = 0; }
kernel void tabled(device float* out, visible_function_table<float(float)> table [[buffer(1)]]) { out[0] = table[0](1); }
struct Commands {
  command_buffer buffer [[id(0)]];
};
kernel void encoding_members(device Commands& commands [[buffer(0)]]) { (void)commands; }
kernel void encoding(device float* out, command_buffer commands [[buffer(1)]]) { out[0] = 0; }
