// Lifts a function of floats to half, bfloat, vectors and integers (MSL chapter 6: T is any float type or vector of one).
#pragma once

namespace pm {
template <class... A> inline constexpr bool all_numbers = (is_number<A> && ...);
template <class A, class... B> inline constexpr bool all_same = (__is_same(A, B) && ...);
template <class A, class... B> inline constexpr bool mixed = all_numbers<A, B...> && !all_same<A, B...>;
// What a function of floats gives for other numbers: bfloat for bfloats, else float. Those of bfloat are templates,
// so that a kernel's own headers may define the same for bfloat.
template <class... A> using computed = metal::conditional_t<(is_bfloat<A> && ...), bfloat, float>;
}  // namespace pm

#define PM_UNARY(name, call) \
  PM_INLINE float name(float x) { return call(x); } \
  PM_INLINE half name(half x) { return half(call(float(x))); } \
  template <class T, class = enable_if_t<__is_integral(T) || __is_same(T, double) || pm::is_bfloat<T>>> \
  PM_INLINE pm::computed<T> name(T x) { return pm::computed<T>(call(float(x))); } \
  template <class T, int N> PM_INLINE vec<T, N> name(const vec<T, N>& a) { \
    vec<T, N> r; \
    for (int i = 0; i < N; ++i) r.v_[i] = name(a.v_[i]); \
    return r; \
  }

#define PM_BINARY(name, call) \
  PM_INLINE float name(float x, float y) { return call(x, y); } \
  PM_INLINE half name(half x, half y) { return half(call(float(x), float(y))); } \
  template <class A, class B, class = enable_if_t<pm::mixed<A, B> || (__is_same(A, B) && (__is_integral(A) || pm::is_bfloat<A>))>> \
  PM_INLINE pm::computed<A, B> name(A x, B y) { return pm::computed<A, B>(call(float(x), float(y))); } \
  template <class T, int N> PM_INLINE vec<T, N> name(const vec<T, N>& a, const type_identity_t<vec<T, N>>& b) { \
    vec<T, N> r; \
    for (int i = 0; i < N; ++i) r.v_[i] = name(a.v_[i], b.v_[i]); \
    return r; \
  }
