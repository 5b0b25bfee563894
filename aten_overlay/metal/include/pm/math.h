// <metal_math>: MSL section 6.5. `precise` and `fast` share one implementation, but for fast::exp and with PM_MATH_ERRORS.
#pragma once

namespace pm {
PM_INLINE float divide(float a, float b) { return a / b; }
// The largest value below 1 of each type bounds `fract`, as the specification asks.
PM_INLINE float fract_below(float x, float bound) {
  const float f = x - __builtin_floorf(x);
  return x != x || x - x != 0.0f ? (x != x ? x : 0.0f) : (f < bound ? f : bound);
}
PM_INLINE float sign(float x) { return x > 0.0f ? 1.0f : (x < 0.0f ? -1.0f : (x == 0.0f ? x : 0.0f)); }
PM_INLINE int exponent_of(float x) {
  const bool special = x == 0.0f || x - x != 0.0f;
  return special ? -2147483647 - 1 : pm::ilogb(x);
}
}  // namespace pm

namespace metal {
PM_UNARY(exp, pm::chosen::exp) PM_UNARY(exp2, pm::chosen::exp2) PM_UNARY(exp10, pm::exp10)
PM_UNARY(log, pm::log) PM_UNARY(log2, pm::log2) PM_UNARY(log10, pm::log10)
PM_UNARY(sin, pm::chosen::sin) PM_UNARY(cos, pm::chosen::cos) PM_UNARY(tan, pm::chosen::tan)
PM_UNARY(sinpi, pm::sinpi) PM_UNARY(cospi, pm::cospi) PM_UNARY(tanpi, pm::tanpi)
PM_UNARY(asin, pm::asin) PM_UNARY(acos, pm::acos) PM_UNARY(atan, pm::atan)
PM_UNARY(sinh, pm::chosen::sinh) PM_UNARY(cosh, pm::chosen::cosh) PM_UNARY(tanh, pm::chosen::tanh)
PM_UNARY(asinh, pm::asinh) PM_UNARY(acosh, pm::acosh) PM_UNARY(atanh, pm::atanh)
PM_UNARY(sqrt, __builtin_sqrtf) PM_UNARY(rsqrt, pm::chosen::rsqrt)
PM_UNARY(fabs, __builtin_fabsf) PM_UNARY(floor, __builtin_floorf) PM_UNARY(ceil, __builtin_ceilf)
PM_UNARY(trunc, __builtin_truncf) PM_UNARY(round, pm::round) PM_UNARY(rint, __builtin_rintf)
PM_BINARY(atan2, pm::atan2) PM_BINARY(pow, pm::pow) PM_BINARY(powr, pm::powr) PM_BINARY(fmod, pm::fmod)
PM_BINARY(copysign, __builtin_copysignf) PM_BINARY(fdim, pm::fdim) PM_BINARY(divide, pm::divide)
PM_BINARY(fmin, __builtin_fminf) PM_BINARY(fmax, __builtin_fmaxf)

PM_INLINE float fract(float x) { return pm::fract_below(x, 0x1.fffffep-1f); }
PM_INLINE half fract(half x) { return half(pm::fract_below(float(x), 0x1.ffcp-1f)); }
template <class T, class = enable_if_t<__is_integral(T) || pm::is_bfloat<T>>> PM_INLINE pm::computed<T> fract(T x) {
  return pm::computed<T>(pm::fract_below(float(x), pm::is_bfloat<T> ? 0x1.fep-1f : 0x1.fffffep-1f));
}
template <class T, int N> PM_INLINE vec<T, N> fract(const vec<T, N>& a) {
  vec<T, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = fract(a.v_[i]);
  return r;
}

// One step towards y in the type's own precision.
PM_INLINE float nextafter(float x, float y) { return pm::nextafter(x, y); }
template <class T> PM_INLINE T nextafter_16(T x, T y) {
  const float a = float(x), b = float(y);
  if (a != a || b != b) return T(a + b);
  if (a == b) return y;
  const short bits = __builtin_bit_cast(short, x);
  if (a == 0.0f) return __builtin_bit_cast(T, short(b < 0.0f ? short(0x8001) : short(1)));
  return __builtin_bit_cast(T, short((a < b) == (a > 0.0f) ? bits + 1 : bits - 1));
}
PM_INLINE half nextafter(half x, half y) { return nextafter_16(x, y); }
template <class T, class = enable_if_t<pm::is_bfloat<T>>> PM_INLINE T nextafter(T x, T y) { return nextafter_16(x, y); }

PM_INLINE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
PM_INLINE half fma(half a, half b, half c) { return pm::fma(a, b, c); }
template <
    class A, class B, class C,
    class = enable_if_t<pm::mixed<A, B, C> || (pm::all_same<A, B, C> && (__is_integral(A) || pm::is_bfloat<A>))>>
PM_INLINE auto fma(A a, B b, C c) {
  if constexpr (__is_integral(A) && __is_integral(B) && __is_integral(C)) {
    return a * b + c;
  } else {
    return pm::computed<A, B, C>(__builtin_fmaf(float(a), float(b), float(c)));
  }
}
template <class T, int N>
PM_INLINE vec<T, N> fma(const vec<T, N>& a, const type_identity_t<vec<T, N>>& b, const type_identity_t<vec<T, N>>& c) {
  vec<T, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = fma(a.v_[i], b.v_[i], c.v_[i]);
  return r;
}
template <class A, class B, class C> PM_INLINE auto mad(A a, B b, C c) { return fma(a, b, c); }

template <class T, class = enable_if_t<pm::is_float<T>>> PM_INLINE T ldexp(T x, int e) { return T(pm::ldexp(float(x), e)); }
template <class T, class = enable_if_t<pm::is_float<T>>> PM_INLINE T frexp(T x, int& e) { return T(pm::frexp(float(x), &e)); }
template <class T, class = enable_if_t<pm::is_float<T>>> PM_INLINE int ilogb(T x) { return pm::exponent_of(float(x)); }
template <class T, class = enable_if_t<pm::is_float<T>>> PM_INLINE T modf(T x, T& whole) {
  const float w = __builtin_truncf(float(x));
  const bool infinite = __builtin_fabsf(float(x)) == __builtin_inff();
  whole = T(w);
  return T(infinite ? __builtin_copysignf(0.0f, float(x)) : __builtin_copysignf(float(x) - w, float(x)));
}
template <class T, int N> PM_INLINE vec<T, N> modf(const vec<T, N>& a, vec<T, N>& whole) {
  vec<T, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = modf(a.v_[i], whole.v_[i]);
  return r;
}
template <class T> PM_INLINE T sincos(T x, T& cosine) {
  cosine = cos(x);
  return sin(x);
}
template <class T, int N> PM_INLINE vec<T, N> ldexp(const vec<T, N>& a, const vec<int, N>& e) {
  vec<T, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = ldexp(a.v_[i], e.v_[i]);
  return r;
}
template <class T, int N> PM_INLINE vec<T, N> frexp(const vec<T, N>& a, vec<int, N>& e) {
  vec<T, N> r;
  for (int i = 0; i < N; ++i) r.v_[i] = frexp(a.v_[i], e.v_[i]);
  return r;
}
template <class T> PM_INLINE T fmin3(T a, T b, T c) { return fmin(a, fmin(b, c)); }
template <class T> PM_INLINE T fmax3(T a, T b, T c) { return fmax(a, fmax(b, c)); }
template <class T> PM_INLINE T fmedian3(T a, T b, T c) { return fmax(fmin(a, b), fmin(fmax(a, b), c)); }
}  // namespace metal
