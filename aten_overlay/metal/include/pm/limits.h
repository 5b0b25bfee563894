// <metal_limits>: MSL section 6.1.
#pragma once

namespace pm {
using schar = signed char;
using longlong = long long;
using ulonglong = unsigned long long;
}  // namespace pm

namespace metal {
// Sources specialize either, as in Apple's headers.
template <class T> struct _numeric_limits_impl {
  static constexpr bool is_specialized = false;
};
template <class T> struct numeric_limits : _numeric_limits_impl<T> {};
#define PM_INTEGER_LIMITS(T) \
  template <> struct numeric_limits<T> { \
    static constexpr bool is_specialized = true, is_integer = true, is_exact = true, is_signed = T(-1) < T(0); \
    static constexpr bool has_infinity = false, has_quiet_NaN = false; \
    static constexpr int digits = __is_same(T, bool) ? 1 : int(sizeof(T)) * 8 - is_signed, digits10 = digits * 3 / 10, radix = 2; \
    static constexpr T max() { return T(is_signed ? ~0ul >> (65 - 8 * sizeof(T)) : ~0ul); } \
    static constexpr T min() { return is_signed ? T(-max() - 1) : T(0); } \
    static constexpr T lowest() { return min(); } \
    static constexpr T epsilon() { return T(0); } \
    static constexpr T infinity() { return T(0); } \
    static constexpr T quiet_NaN() { return T(0); } \
    static constexpr T denorm_min() { return T(0); } \
  };
PM_INTEGER_LIMITS(bool) PM_INTEGER_LIMITS(char) PM_INTEGER_LIMITS(pm::schar) PM_INTEGER_LIMITS(uchar) PM_INTEGER_LIMITS(short)
PM_INTEGER_LIMITS(ushort) PM_INTEGER_LIMITS(int) PM_INTEGER_LIMITS(uint) PM_INTEGER_LIMITS(long) PM_INTEGER_LIMITS(ulong)
PM_INTEGER_LIMITS(pm::longlong) PM_INTEGER_LIMITS(pm::ulonglong)
#undef PM_INTEGER_LIMITS
#define PM_FLOAT_LIMITS(T, BITS, MAX, MIN, EPSILON, TRUE_MIN, MAX_EXP, MIN_EXP) \
  template <> struct numeric_limits<T> { \
    static constexpr bool is_specialized = true, is_integer = false, is_exact = false, is_signed = true; \
    static constexpr bool has_infinity = true, has_quiet_NaN = true; \
    static constexpr int digits = BITS, digits10 = (BITS - 1) * 3 / 10, radix = 2, max_exponent = MAX_EXP, min_exponent = MIN_EXP; \
    static constexpr T max() { return T(MAX); } \
    static constexpr T min() { return T(MIN); } \
    static constexpr T lowest() { return T(-MAX); } \
    static constexpr T epsilon() { return T(EPSILON); } \
    static constexpr T infinity() { return T(__builtin_inff()); } \
    static constexpr T quiet_NaN() { return T(__builtin_nanf("")); } \
    static constexpr T signaling_NaN() { return quiet_NaN(); } \
    static constexpr T denorm_min() { return T(TRUE_MIN); } \
    static constexpr T round_error() { return T(0.5f); } \
  };
PM_FLOAT_LIMITS(float, 24, __FLT_MAX__, __FLT_MIN__, __FLT_EPSILON__, 0x1p-149f, 128, -125)
PM_FLOAT_LIMITS(half, 11, 65504.0f, 0x1p-14f, 0x1p-10f, 0x1p-24f, 16, -13)
PM_FLOAT_LIMITS(bfloat, 8, 0x1.fep127f, __FLT_MIN__, 0x1p-7f, 0x1p-133f, 128, -125)
#undef PM_FLOAT_LIMITS
// Of a vector: those of its components, in each.
template <class T, int N> struct numeric_limits<vec<T, N>> : numeric_limits<T> {
#define PM_EACH(name) \
  static constexpr vec<T, N> name() { return vec<T, N>(numeric_limits<T>::name()); }
  PM_EACH(max) PM_EACH(min) PM_EACH(lowest) PM_EACH(epsilon) PM_EACH(infinity) PM_EACH(quiet_NaN) PM_EACH(denorm_min)
#undef PM_EACH
};

// How a float's bits are divided.
template <class T> struct _fp_encoding_traits;
#define PM_ENCODING(T, BITS, MANTISSA) \
  template <> struct _fp_encoding_traits<T> { \
    using encoding_type = uint##BITS##_t; \
    static constexpr encoding_type sign_mask = encoding_type(1) << (BITS - 1); \
    static constexpr encoding_type mantissa_mask = (encoding_type(1) << MANTISSA) - 1; \
    static constexpr encoding_type exponent_mask = encoding_type(~(sign_mask | mantissa_mask)); \
    static constexpr encoding_type inf_mask = exponent_mask; \
    static constexpr encoding_type exponent_shift = MANTISSA; \
    static constexpr encoding_type exponent_bias = (1 << (BITS - 2 - MANTISSA)) - 1; \
  };
PM_ENCODING(float, 32, 23) PM_ENCODING(half, 16, 10) PM_ENCODING(bfloat, 16, 7)
#undef PM_ENCODING
}  // namespace metal
