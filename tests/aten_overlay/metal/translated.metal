// What translators to Metal write: naga, SPIRV-Cross, Tint.
#include <metal_stdlib>
#include <simd/simd.h>
using metal::uint;

enum Slot { unused, first = 3, second, third };
struct Packed {
  metal::packed_float3 v;
  metal::uint8_t last;
};
kernel void named(
    device metal::float4& out [[user(fake0)]], constant Packed& given [[buffer(third)]], metal::uint i [[thread_position_in_grid]]) {
  out = metal::float4(metal::float3(given.v), given.last + i);
}

kernel void shifted(device int4* v [[buffer(0)]], device metal::ulong2* wide [[buffer(1)]]) {
  v[0] = (v[0] >> (metal::uint4(2u) & metal::uint4(31u))) << metal::ushort4(1);
  wide[0] <<= metal::int2(1, 2);
}

struct Block {
  float4 v;
  uint3 u;
};
kernel void coherent_block(volatile device Block& block [[buffer(0)]]) {
  block.v = float4(1, 2, 3, 4);
  const uint3 u = block.u;
  block.u = u + 1;
}

template <typename T> inline T exchanged(T value, ushort lane) { return metal::simd_shuffle(value, lane); }
template <uint N> inline metal::vec<bool, N> exchanged(metal::vec<bool, N> value, ushort lane) {
  return (metal::vec<bool, N>)metal::simd_shuffle((metal::vec<ushort, N>)value, lane);
}
template <> inline metal::ulong exchanged(metal::ulong value, ushort lane) { return as_type<metal::ulong>(exchanged(as_type<uint2>(value), lane)); }
template <> inline metal::ulong2 exchanged(metal::ulong2 value, ushort lane) {
  return metal::ulong2(exchanged(value.x, lane), exchanged(value.y, lane));
}
inline metal::ulong3 exchanged(metal::ulong3 value, ushort lane) { return metal::ulong3(exchanged(value.xy, lane), exchanged(value.z, lane)); }
kernel void shuffled(device metal::ulong3* v [[buffer(0)]], device metal::bool3* b [[buffer(1)]], ushort lane [[thread_index_in_simdgroup]]) {
  v[lane] = exchanged(v[lane], lane ^ 1);
  b[lane] = exchanged(b[lane], lane ^ 1);
  auto low = v[lane].xy;
  v[lane].z += low.y + metal::simd_sum(v[lane].xy * 0).x;
}

kernel void packs(device uint* out [[buffer(0)]], device float* back [[buffer(1)]]) {
  out[0] = metal::pack_float_to_snorm4x8(float4(-1, 0, 0.5, 2));
  out[1] = metal::pack_float_to_unorm4x8(float4(-1, 0, 0.5, 2));
  out[2] = metal::pack_half_to_unorm2x16(half2(1, 0.25));
  out[3] = metal::pack_float_to_snorm2x16(float2(-1, 1));
  out[4] = metal::pack_float_to_unorm10a2(float4(1, 0, 0.5, 1));
  out[5] = metal::pack_float_to_srgb_unorm4x8(float4(0.5));
  out[6] = metal::pack_float_to_unorm565(float3(1, 0.5, 2)) | uint(metal::pack_half_to_unorm565(half3(-1, 1, 0.25))) << 16;
  out[7] = metal::pack_float_to_snorm4x8(float4(NAN, 1, NAN, -1));
  for (uint i = 0; i < 4; ++i) {
    back[i] = metal::unpack_snorm4x8_to_float(out[0])[i];
    back[4 + i] = metal::unpack_unorm10a2_to_float(out[4])[i];
    back[8 + i] = metal::unpack_unorm4x8_srgb_to_float(out[5])[i];
  }
  for (uint i = 0; i < 3; ++i) {
    back[12 + i] = metal::unpack_unorm565_to_float(ushort(out[6]))[i];
    back[15 + i] = metal::unpack_unorm565_to_half(ushort(out[6] >> 16))[i];
  }
}

kernel void integers(device int4* out [[buffer(0)]], device uint2* sums [[buffer(1)]]) {
  const int4 v(0x12345678, -1, 7, -0x7fffffff);
  out[0] = metal::extract_bits(v, 4, 8);
  out[1] = metal::insert_bits(v, int4(3), 0, 4);
  out[2] = metal::madsat(v, int4(2), int4(1));
  out[3] = metal::mad24(int4(3), int4(4), 5);
  sums[0] = metal::madhi(v.xy, v.xy, int2(1, 2)).x;
  sums[1] = metal::absdiff(v, int4(0)).yw;
}

kernel void splits(device float4* v [[buffer(0)]]) {
  float4 whole;
  v[1] = metal::modf(v[0], whole);
  v[2] = whole;
  v[3] = metal::smoothstep(0, 2.0, v[0].x);
}

template <typename T, int Columns> struct Stored {
  metal::vec<T, 2> columns[Columns];
  Stored() thread = default;
  thread Stored& operator=(metal::initializer_list<metal::vec<T, 2>> given) thread {
    thread metal::vec<T, 2>* column = given.begin();
    for (int i = 0; i < Columns; ++i, ++column) columns[i] = *column;
    return *this;
  }
};
kernel void listed(device float* out [[buffer(0)]]) {
  Stored<float, 2> m;
  m = {float2(1, 2), float2(3, 4)};
  for (int i = 0; i < 4; ++i) out[i] = m.columns[i / 2][i % 2];
}

template <typename T, typename E = metal::enable_if_t<metal::is_integral_v<T> && metal::is_signed_v<T>>> inline T sign(T x) {
  return metal::select(metal::select(x, T(0), x == T(0)), x > T(0) ? T(1) : T(-1), x != T(0));
}
kernel void signs(device float* out [[buffer(0)]]) {
  using namespace metal;
  out[0] = sign(-7) + 10 * sign(0);
  out[1] = sign(-2.5f) + 10 * sign(half(3)) + 100 * sign(float2(0, 4)).y;
}
