// Textures and samplers in kernels.
#include <metal_stdlib>
using namespace metal;

constexpr sampler halves(coord::normalized, address::repeat, filter::linear);

kernel void copied(
    texture2d<float, access::read> from [[texture(0)]], texture2d<float, access::write> to [[texture(1)]],
    device uint* size [[buffer(0)]], uint2 p [[thread_position_in_grid]]) {
  if (p.x >= from.get_width() || p.y >= from.get_height()) return;
  to.write(from.read(p.xy) * 2.0, p.xy);
  if (p.x == 0 && p.y == 0) size[0] = from.get_width() * 100 + to.get_height();
}
kernel void sampled(
    texture2d<float> t [[texture(0)]], sampler s [[sampler(0)]], device float2* at [[buffer(0)]], device float* out [[buffer(1)]],
    uint i [[thread_position_in_grid]]) {
  out[i] = t.sample(s, at[i]).x;
}
kernel void sampled_by_a_constant(
    texture2d<half> t [[texture(2)]], device float* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = t.sample(halves, float2(i, 0.5)).x;
}
kernel void layers(
    texture2d_array<uint, access::read_write> t [[texture(0)]], texture3d<int, access::read> solid [[texture(1)]],
    texture1d<half, access::write> line [[texture(2)]], uint2 p [[thread_position_in_grid]]) {
  const uint last = t.get_array_size() - 1;
  t.write(t.read(p, 0) + uint4(solid.read(uint3(p, 1)).x), p, last);
  line.write(half4(half(p.x)), p.x);
}
