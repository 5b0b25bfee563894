// Lifts a function of floats to half, bfloat, vectors and integers (MSL chapter 6: T is any float type or vector of one).
#pragma once

namespace pm {
template <class... A> inline constexpr bool all_numbers = (is_number<A> && ...);
template <class A, class... B> inline constexpr bool all_same = (__is_same(A, B) && ...);
template <class A, class... B> inline constexpr bool mixed = all_numbers<A, B...> && !all_same<A, B...>;
}  // namespace pm

#define PM_UNARY(name, call) \
  PM_INLINE float name(float x) { return call(x); } \
  PM_INLINE half name(half x) { return half(call(float(x))); } \
  PM_INLINE bfloat name(bfloat x) { return bfloat(call(float(x))); } \
  template <class T, class = enable_if_t<__is_integral(T) || __is_same(T, double)>> \
  PM_INLINE float name(T x) { return call(float(x)); } \
  template <class T, int N> PM_INLINE vec<T, N> name(const vec<T, N>& a) { \
    vec<T, N> r; \
    for (int i = 0; i < N; ++i) r.v_[i] = name(a.v_[i]); \
    return r; \
  } \
  template <class T, int M, int... I> PM_INLINE vec<T, sizeof...(I)> name(const pm::swizzle<T, M, I...>& a) { \
    return name(vec<T, sizeof...(I)>(a)); \
  }

#define PM_BINARY(name, call) \
  PM_INLINE float name(float x, float y) { return call(x, y); } \
  PM_INLINE half name(half x, half y) { return half(call(float(x), float(y))); } \
  PM_INLINE bfloat name(bfloat x, bfloat y) { return bfloat(call(float(x), float(y))); } \
  template <class A, class B, class = enable_if_t<pm::mixed<A, B> || (__is_same(A, B) && __is_integral(A))>> \
  PM_INLINE float name(A x, B y) { return call(float(x), float(y)); } \
  template <class T, int N> PM_INLINE vec<T, N> name(const vec<T, N>& a, const type_identity_t<vec<T, N>>& b) { \
    vec<T, N> r; \
    for (int i = 0; i < N; ++i) r.v_[i] = name(a.v_[i], b.v_[i]); \
    return r; \
  }
