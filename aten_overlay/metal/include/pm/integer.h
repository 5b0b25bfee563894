// <metal_integer>: MSL section 6.3.
#pragma once

namespace metal {
#define PM_INTEGER template <class T, class = enable_if_t<__is_integral(T)>> PM_INLINE constexpr
PM_INTEGER T clz(T x) {
  const auto u = make_unsigned_t<T>(x);
  return T(u ? __builtin_clzg(u) : int(8 * sizeof(T)));
}
PM_INTEGER T ctz(T x) {
  const auto u = make_unsigned_t<T>(x);
  return T(u ? __builtin_ctzg(u) : int(8 * sizeof(T)));
}
PM_INTEGER T popcount(T x) { return T(__builtin_popcountll(ulong(make_unsigned_t<T>(x)))); }
PM_INTEGER T rotate(T x, T n) {
  constexpr uint bits = 8 * sizeof(T);
  const auto u = make_unsigned_t<T>(x);
  const uint k = uint(n) % bits;
  return T(k ? (u << k) | (u >> (bits - k)) : u);
}
PM_INTEGER T reverse_bits(T x) {
  auto u = make_unsigned_t<T>(x);
  make_unsigned_t<T> r = 0;
  for (uint i = 0; i < 8 * sizeof(T); ++i, u >>= 1) r = (r << 1) | (u & 1);
  return T(r);
}
PM_INTEGER T mulhi(T a, T b) { return T((__int128(a) * __int128(b)) >> (8 * sizeof(T))); }
PM_INTEGER T mul24(T a, T b) { return T((a << 8 >> 8) * (b << 8 >> 8)); }
PM_INTEGER T mad24(T a, T b, T c) { return mul24(a, b) + c; }
PM_INTEGER T madhi(T a, T b, T c) { return mulhi(a, b) + c; }
PM_INTEGER T addsat(T a, T b) {
  T r{};
  if (!__builtin_add_overflow(a, b, &r)) return r;
  return b < 0 ? numeric_limits<T>::min() : numeric_limits<T>::max();
}
PM_INTEGER T subsat(T a, T b) {
  T r{};
  if (!__builtin_sub_overflow(a, b, &r)) return r;
  return a < b ? numeric_limits<T>::min() : numeric_limits<T>::max();
}
PM_INTEGER T madsat(T a, T b, T c) {
  const __int128 r = __int128(a) * b + c, low = numeric_limits<T>::min(), high = numeric_limits<T>::max();
  return T(r < low ? low : r > high ? high : r);
}
PM_INTEGER T hadd(T a, T b) { return T((__int128(a) + b) >> 1); }
PM_INTEGER T rhadd(T a, T b) { return T((__int128(a) + b + 1) >> 1); }
PM_INTEGER make_unsigned_t<T> absdiff(T a, T b) { return make_unsigned_t<T>(a < b ? b - a : a - b); }
PM_INTEGER T extract_bits(T x, uint offset, uint bits) {
  if (bits == 0) return 0;
  const uint up = 8 * sizeof(T) - bits - offset, down = 8 * sizeof(T) - bits;
  return T(T(make_unsigned_t<T>(x) << up) >> down);
}
PM_INTEGER T insert_bits(T base, T insert, uint offset, uint bits) {
  using U = make_unsigned_t<T>;
  const U mask = (bits >= 8 * sizeof(T) ? U(-1) : U((U(1) << bits) - 1)) << offset;
  return T((U(base) & ~mask) | ((U(insert) << offset) & mask));
}
#undef PM_INTEGER
#define PM_INTEGER_VECTOR(name) \
  template <class T, int N, class = enable_if_t<__is_integral(T)>> PM_INLINE vec<T, N> name(const vec<T, N>& a) { \
    vec<T, N> r; \
    for (int i = 0; i < N; ++i) r.v_[i] = name(a.v_[i]); \
    return r; \
  }
#define PM_INTEGER_VECTORS(name) \
  template <class T, int N, class = enable_if_t<__is_integral(T)>> \
  PM_INLINE vec<T, N> name(const vec<T, N>& a, const type_identity_t<vec<T, N>>& b) { \
    vec<T, N> r; \
    for (int i = 0; i < N; ++i) r.v_[i] = name(a.v_[i], b.v_[i]); \
    return r; \
  }
PM_INTEGER_VECTOR(clz) PM_INTEGER_VECTOR(ctz) PM_INTEGER_VECTOR(popcount) PM_INTEGER_VECTOR(reverse_bits)
PM_INTEGER_VECTORS(rotate) PM_INTEGER_VECTORS(mulhi) PM_INTEGER_VECTORS(addsat) PM_INTEGER_VECTORS(subsat)
PM_INTEGER_VECTORS(hadd) PM_INTEGER_VECTORS(rhadd)
PM_INTEGER_VECTORS(mul24)
#undef PM_INTEGER_VECTOR
#undef PM_INTEGER_VECTORS
#define PM_INTEGER_VECTOR(name) \
  template <class T, int N, class = enable_if_t<__is_integral(T)>> \
  PM_INLINE vec<T, N> name(const vec<T, N>& a, const type_identity_t<vec<T, N>>& b, const type_identity_t<vec<T, N>>& c) { \
    vec<T, N> r; \
    for (int i = 0; i < N; ++i) r.v_[i] = name(a.v_[i], b.v_[i], c.v_[i]); \
    return r; \
  }
PM_INTEGER_VECTOR(mad24) PM_INTEGER_VECTOR(madhi) PM_INTEGER_VECTOR(madsat)
#undef PM_INTEGER_VECTOR
template <class T, int N, class = enable_if_t<__is_integral(T)>>
PM_INLINE vec<make_unsigned_t<T>, N> absdiff(const vec<T, N>& a, const type_identity_t<vec<T, N>>& b) {
  vec<make_unsigned_t<T>, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = absdiff(a.v_[i], b.v_[i]);
  return r;
}
template <class T, int N, class = enable_if_t<__is_integral(T)>>
PM_INLINE vec<T, N> extract_bits(const vec<T, N>& a, uint offset, uint bits) {
  vec<T, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = extract_bits(a.v_[i], offset, bits);
  return r;
}
template <class T, int N, class = enable_if_t<__is_integral(T)>>
PM_INLINE vec<T, N> insert_bits(const vec<T, N>& base, const type_identity_t<vec<T, N>>& insert, uint offset, uint bits) {
  vec<T, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = insert_bits(base.v_[i], insert.v_[i], offset, bits);
  return r;
}
}  // namespace metal
