// <metal_relational>: MSL section 6.4.
#pragma once

namespace metal {
// An integer is a float first, and so never a NaN.
#define PM_PREDICATE(name, test) \
  template <class T, class = enable_if_t<pm::is_float<T> || __is_integral(T)>> PM_INLINE constexpr bool name(T v) { \
    const float x = float(v); \
    return test; \
  } \
  template <class T, int N> PM_INLINE vec<bool, N> name(const vec<T, N>& a) { \
    vec<bool, N> r; \
    for (int i = 0; i < N; ++i) r.v_[i] = name(a.v_[i]); \
    return r; \
  }
PM_PREDICATE(isnan, x != x) PM_PREDICATE(isinf, __builtin_fabsf(x) == __builtin_inff())
PM_PREDICATE(isfinite, __builtin_fabsf(x) < __builtin_inff()) PM_PREDICATE(signbit, (__builtin_bit_cast(uint, x) >> 31) != 0)
#undef PM_PREDICATE
template <class T, class = enable_if_t<pm::is_float<T>>> PM_INLINE bool isnormal(T v) {
  const float x = __builtin_fabsf(float(v));
  return x >= float(numeric_limits<T>::min()) && x < __builtin_inff();
}
template <class A, class B, class = enable_if_t<pm::is_float<A> && pm::is_float<B>>>
PM_INLINE constexpr bool isunordered(A a, B b) { return isnan(a) || isnan(b); }
template <class A, class B, class = enable_if_t<pm::is_float<A> && pm::is_float<B>>>
PM_INLINE constexpr bool isordered(A a, B b) { return !isunordered(a, b); }
template <class T, int N> PM_INLINE vec<bool, N> isunordered(const vec<T, N>& a, const vec<T, N>& b) {
  vec<bool, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = isunordered(a.v_[i], b.v_[i]);
  return r;
}
template <int N> PM_INLINE bool all(const vec<bool, N>& a) {
  bool r = true;
  for (int i = 0; i < N; ++i) r = r && a.v_[i];
  return r;
}
template <int N> PM_INLINE bool any(const vec<bool, N>& a) {
  bool r = false;
  for (int i = 0; i < N; ++i) r = r || a.v_[i];
  return r;
}
PM_INLINE bool all(bool a) { return a; }
PM_INLINE bool any(bool a) { return a; }
// select(a, b, c) is b where c holds.
template <class T> PM_INLINE constexpr T select(T a, type_identity_t<T> b, bool c) { return c ? b : a; }
template <class T, int N>
PM_INLINE vec<T, N> select(const vec<T, N>& a, const type_identity_t<vec<T, N>>& b, const vec<bool, N>& c) {
  vec<T, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = c.v_[i] ? b.v_[i] : a.v_[i];
  return r;
}
template <class A, class T, int N, class = enable_if_t<pm::is_number<A>>>
PM_INLINE vec<T, N> select(A a, const vec<T, N>& b, const vec<bool, N>& c) { return select(vec<T, N>(a), b, c); }
template <class T, int N> PM_INLINE vec<bool, N> isordered(const vec<T, N>& a, const vec<T, N>& b) { return !isunordered(a, b); }
template <class T, int N> PM_INLINE vec<bool, N> isnormal(const vec<T, N>& a) {
  vec<bool, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = isnormal(a.v_[i]);
  return r;
}
}  // namespace metal
