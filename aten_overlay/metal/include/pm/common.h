// <metal_common>, and the functions shared by integers and floats: MSL sections 6.3 to 6.5.
#pragma once

namespace metal {
// On floats min and max return the other operand when one is a NaN.
// They are no templates, as in Metal, so that they win over a template that a kernel's own headers add.
#define PM_FLOAT_EXTREMES(T) \
  PM_INLINE constexpr T min(T a, T b) { return T(__builtin_fminf(float(a), float(b))); } \
  PM_INLINE constexpr T max(T a, T b) { return T(__builtin_fmaxf(float(a), float(b))); }
#define PM_INTEGER_EXTREMES(T) \
  PM_INLINE constexpr T min(T a, T b) { return b < a ? b : a; } \
  PM_INLINE constexpr T max(T a, T b) { return a < b ? b : a; }
PM_FLOAT_EXTREMES(float) PM_FLOAT_EXTREMES(half)
PM_INTEGER_EXTREMES(bool) PM_INTEGER_EXTREMES(char) PM_INTEGER_EXTREMES(pm::schar) PM_INTEGER_EXTREMES(uchar)
PM_INTEGER_EXTREMES(short) PM_INTEGER_EXTREMES(ushort) PM_INTEGER_EXTREMES(int) PM_INTEGER_EXTREMES(uint)
PM_INTEGER_EXTREMES(long) PM_INTEGER_EXTREMES(ulong) PM_INTEGER_EXTREMES(pm::longlong) PM_INTEGER_EXTREMES(pm::ulonglong)
// Except for bfloat, for which kernels declare their own.
template <class T, class = enable_if_t<pm::is_bfloat<T>>> PM_INLINE constexpr T min(T a, T b) { return T(min(float(a), float(b))); }
template <class T, class = enable_if_t<pm::is_bfloat<T>>> PM_INLINE constexpr T max(T a, T b) { return T(max(float(a), float(b))); }
#undef PM_FLOAT_EXTREMES
#undef PM_INTEGER_EXTREMES
template <class A, class B, class = enable_if_t<pm::mixed<A, B>>> PM_INLINE constexpr auto min(A a, B b) {
  using C = decltype(a + b);
  return min(C(a), C(b));
}
template <class A, class B, class = enable_if_t<pm::mixed<A, B>>> PM_INLINE constexpr auto max(A a, B b) {
  using C = decltype(a + b);
  return max(C(a), C(b));
}
#define PM_COMPONENTWISE(name) \
  template <class T, int N> PM_INLINE vec<T, N> name(const vec<T, N>& a, const type_identity_t<vec<T, N>>& b) { \
    vec<T, N> r; \
    for (int i = 0; i < N; ++i) r.v_[i] = name(a.v_[i], b.v_[i]); \
    return r; \
  } \
  template <class A, class T, int N, class = enable_if_t<pm::is_number<A>>> PM_INLINE vec<T, N> name(A a, const vec<T, N>& b) { \
    return name(vec<T, N>(a), b); \
  }
PM_COMPONENTWISE(min) PM_COMPONENTWISE(max)
#undef PM_COMPONENTWISE
template <class T> PM_INLINE constexpr T min3(T a, T b, T c) { return min(a, min(b, c)); }
template <class T> PM_INLINE constexpr T max3(T a, T b, T c) { return max(a, max(b, c)); }
template <class T> PM_INLINE constexpr T median3(T a, T b, T c) { return max(min(a, b), min(max(a, b), c)); }
template <class T> PM_INLINE constexpr T clamp(T x, type_identity_t<T> low, type_identity_t<T> high) {
  return min(max(x, low), high);
}

template <class T, class = enable_if_t<pm::is_number<T>>> PM_INLINE constexpr T abs(T a) {
  if constexpr (pm::is_float<T>) return T(__builtin_fabsf(float(a)));
  else if constexpr (T(-1) < T(0)) return a < 0 ? T(-a) : a;
  else return a;
}
template <class T, int N> PM_INLINE vec<T, N> abs(const vec<T, N>& a) {
  vec<T, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = abs(a.v_[i]);
  return r;
}

template <class T, class = enable_if_t<pm::is_float<pm::element_t<T>>>> PM_INLINE T saturate(T x) { return clamp(x, T(0), T(1)); }
// Of integers there is none: sources declare their own.
PM_INLINE float sign(float x) { return pm::sign(x); }
PM_INLINE half sign(half x) { return half(pm::sign(float(x))); }
template <class T, class = enable_if_t<__is_same(T, double) || pm::is_bfloat<T>>> PM_INLINE T sign(T x) { return T(pm::sign(float(x))); }
template <class T, int N, class = enable_if_t<pm::is_float<T>>> PM_INLINE vec<T, N> sign(const vec<T, N>& a) {
  vec<T, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = sign(a.v_[i]);
  return r;
}
template <class T> PM_INLINE T mix(T x, T y, type_identity_t<T> a) { return x + (y - x) * a; }
template <class T, class = enable_if_t<pm::is_float<T>>> PM_INLINE T step(T edge, T x) { return x < edge ? T(0) : T(1); }
template <class T, int N, class = enable_if_t<pm::is_float<T>>> PM_INLINE vec<T, N> step(const vec<T, N>& edge, const vec<T, N>& x) {
  vec<T, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = step(edge.v_[i], x.v_[i]);
  return r;
}
template <class T, class = enable_if_t<pm::is_float<pm::element_t<T>>>>
PM_INLINE T smoothstep(type_identity_t<T> edge0, type_identity_t<T> edge1, T x) {
  const T t = clamp((x - edge0) / (edge1 - edge0), T(0), T(1));
  return t * t * (T(3) - T(2) * t);
}
}  // namespace metal
