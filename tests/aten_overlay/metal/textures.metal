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
kernel void gathered(
    texture2d<float> t [[texture(0)]], sampler s [[sampler(0)]], device float4* out [[buffer(0)]]) {
  out[0] = t.gather(s, float2(0.5), int2(0), component::x);
  out[1] = t.gather(s, float2(0.5), int2(1, 0));
  out[2] = t.sample(s, float2(0.5), level(0), int2(0, 1));
}
kernel void compared(
    depth2d<float> t [[texture(0)]], depth2d_array<float> many [[texture(1)]], sampler s [[sampler(0)]], device float4* out [[buffer(0)]]) {
  constexpr sampler own(compare_func::greater, coord::normalized, lod_clamp(0.0, 1.0), max_anisotropy(2));
  out[0] = float4(
      t.sample_compare(s, float2(0.5), 2.5), t.sample_compare(own, float2(0.1), 0.5), many.sample_compare(own, float2(0.1), 1, 4.5, level(0)),
      many.sample(s, float2(0.1), 1));
  out[1] = t.gather_compare(s, float2(0.5), 2.5);
}
kernel void cubes(
    texturecube<float> t [[texture(0)]], texturecube_array<float> many [[texture(1)]], depthcube<float> depth [[texture(0)]],
    sampler s [[sampler(0)]], device float3* at [[buffer(0)]], device float4* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = float4(t.sample(s, at[i]).x, many.sample(s, at[i], 1, level(0)).x, many.get_array_size(), depth.sample(s, at[i]));
  if (i == 0) out[0].z += many.read(uint2(0, 1), 3, 1).x;
}
kernel void samples(
    texture2d_ms<float> t [[texture(0)]], texture2d<float, access::write> out [[texture(1)]], uint2 p [[thread_position_in_grid]]) {
  float4 sum(0);
  for (uint i = 0; i < t.get_num_samples(); ++i) sum += t.read(p, i);
  out.write(sum / t.get_num_samples(), p);
}
kernel void counted(
    texture2d<uint, access::read_write> t [[texture(0)]], texture2d_array<int, access::read_write, memory_coherence_device> many [[texture(1)]],
    device uint* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  t.atomic_fetch_add(uint2(0, 0), 2u);
  t.atomic_fetch_max(uint2(1, 0), i);
  many.atomic_fetch_sub(uint2(0, 0), 1, 1);
  uint4 old(100u);
  do {
    old.x = t.atomic_load(uint2(0, 1)).x;
  } while (!t.atomic_compare_exchange_weak(uint2(0, 1), &old, old.x + i));
  if (i == 0) {
    t.atomic_store(uint4(9), uint2(1, 1));
    out[0] = t.atomic_exchange(uint2(1, 1), 8u).x;
    out[1] = t.atomic_fetch_add(uint2(50, 0), 2u).x;
  }
}
kernel void several(
    metal::array<texture2d<float, access::read_write>, 3> many [[texture(1)]], metal::array<sampler, 2> how [[sampler(0)]],
    texture2d<float> t [[texture(0)]], device float* out [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  out[i] = many[i].read(uint2(0)).x + t.sample(how[i % 2], float2(0.5)).x * 10;
}

kernel void of_sparse(
    texture2d<float> image [[texture(0)]], sampler s [[sampler(0)]], constant float2& at [[buffer(0)]], device float* out [[buffer(1)]]) {
  const sparse_color<float4> mixed = image.sparse_sample(s, at, level(0));
  out[0] = mixed.resident() ? mixed.value().x : -1;
  out[1] = image.sparse_read(uint2(2, 0)).value().x;
  out[2] = image.sparse_gather(s, at.xy).value().w;
}
