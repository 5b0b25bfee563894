// <metal_pack>: vectors in the bits of an integer, of float and half (MSL section 6.14).
#pragma once

namespace pm {
template <int Bits, bool Signed> constexpr float scale_of = float((1u << (Bits - Signed)) - 1);
template <int Bits, bool Signed> PM_INLINE uint packed_part(float v) {
  const float low = Signed ? -1.0f : 0.0f, known = v != v ? 0.0f : v;
  return uint(int(metal::rint(metal::clamp(known, low, 1.0f) * scale_of<Bits, Signed>))) & ((1u << Bits) - 1);
}
template <int Bits, bool Signed> PM_INLINE float unpacked_part(uint word, int at) {
  const uint part = word >> at & ((1u << Bits) - 1);
  if constexpr (Signed) return metal::max(float(int(part << (32 - Bits)) >> (32 - Bits)) / scale_of<Bits, true>, -1.0f);
  else return float(part) / scale_of<Bits, false>;
}
template <int Bits, bool Signed, class T, int N> PM_INLINE uint pack(const metal::vec<T, N>& v) {
  uint word = 0;
  for (int i = 0; i < N; ++i) word |= packed_part<Bits, Signed>(float(v.v_[i])) << Bits * i;
  return word;
}
template <int Bits, bool Signed, class T, int N> PM_INLINE metal::vec<T, N> unpack(uint word) {
  metal::vec<T, N> v;
  for (int i = 0; i < N; ++i) v.v_[i] = T(unpacked_part<Bits, Signed>(word, Bits * i));
  return v;
}
PM_INLINE float to_srgb(float v) {
  const float c = metal::clamp(v, 0.0f, 1.0f);
  return c <= 0.0031308f ? c * 12.92f : 1.055f * metal::pow(c, 1.0f / 2.4f) - 0.055f;
}
PM_INLINE float from_srgb(float v) { return v <= 0.04045f ? v / 12.92f : metal::pow((v + 0.055f) / 1.055f, 2.4f); }
}  // namespace pm

namespace metal {
#define PM_PACK(T, format, Bits, Signed, N, R) \
  PM_INLINE R pack_##T##_to_##format(T##N v) { return R(pm::pack<Bits, Signed>(v)); } \
  PM_INLINE T##N unpack_##format##_to_##T(R word) { return pm::unpack<Bits, Signed, T, N>(word); }
#define PM_PACKS(T) \
  PM_PACK(T, unorm4x8, 8, false, 4, uint) PM_PACK(T, snorm4x8, 8, true, 4, uint) \
  PM_PACK(T, unorm2x16, 16, false, 2, uint) PM_PACK(T, snorm2x16, 16, true, 2, uint) \
  PM_INLINE uint pack_##T##_to_srgb_unorm4x8(T##4 v) { \
    return pm::pack<8, false>(float4(pm::to_srgb(v.x), pm::to_srgb(v.y), pm::to_srgb(v.z), float(v.w))); \
  } \
  PM_INLINE T##4 unpack_unorm4x8_srgb_to_##T(uint word) { \
    const float4 v = pm::unpack<8, false, float, 4>(word); \
    return T##4(T(pm::from_srgb(v.x)), T(pm::from_srgb(v.y)), T(pm::from_srgb(v.z)), T(v.w)); \
  } \
  PM_INLINE uint pack_##T##_to_unorm10a2(T##4 v) { \
    return pm::pack<10, false>(vec<T, 3>(v.x, v.y, v.z)) | pm::packed_part<2, false>(float(v.w)) << 30; \
  } \
  PM_INLINE T##4 unpack_unorm10a2_to_##T(uint word) { \
    return T##4(pm::unpack<10, false, T, 3>(word), T(pm::unpacked_part<2, false>(word, 30))); \
  } \
  PM_INLINE ushort pack_##T##_to_unorm565(T##3 v) { \
    const uint low = pm::packed_part<5, false>(float(v.x)), high = pm::packed_part<5, false>(float(v.z)); \
    return ushort(low | pm::packed_part<6, false>(float(v.y)) << 5 | high << 11); \
  } \
  PM_INLINE T##3 unpack_unorm565_to_##T(ushort word) { \
    return T##3(T(pm::unpacked_part<5, false>(word, 0)), T(pm::unpacked_part<6, false>(word, 5)), \
                T(pm::unpacked_part<5, false>(word, 11))); \
  }
PM_PACKS(float) PM_PACKS(half)
#undef PM_PACKS
#undef PM_PACK
}  // namespace metal
