// Types and arithmetic that functors share, for real and complex elements.
#pragma once
#include <c10/metal/common.h>
#include <metal_stdlib>

namespace c10 {
namespace metal {

namespace detail {

template <typename T>
struct OpMathType {
  using type = T;
};
template <>
struct OpMathType<half> {
  using type = float;
};
template <>
struct OpMathType<bfloat> {
  using type = float;
};
template <>
struct OpMathType<half2> {
  using type = float2;
};
template <>
struct OpMathType<short> {
  using type = int;
};
template <>
struct OpMathType<char> {
  using type = int;
};
template <>
struct OpMathType<uchar> {
  using type = int;
};

template <typename T>
struct AccumulationType {
  using type = T;
};
template <>
struct AccumulationType<half> {
  using type = float;
};
template <>
struct AccumulationType<bfloat> {
  using type = float;
};

} // namespace detail

// The type to compute in, and the type to sum in.
template <typename T>
using opmath_t = typename detail::OpMathType<T>::type;
template <typename T>
using accum_t = typename detail::AccumulationType<T>::type;

template <typename F, typename... Args>
using result_of = decltype(::metal::declval<F>()(::metal::declval<Args>()...));

template <typename T>
constexpr constant bool is_complex_v =
    ::metal::is_same_v<T, float2> || ::metal::is_same_v<T, half2>;
template <typename T>
constexpr constant bool is_scalar_floating_point_v =
    ::metal::is_floating_point_v<T> && ::metal::is_scalar_v<T>;
template <typename T>
constexpr constant bool is_scalar_integral_v =
    ::metal::is_integral_v<T> && ::metal::is_scalar_v<T>;

// Conversion between any two element types: a complex number loses its
// imaginary part, and is true when either part is not zero.
template <
    typename T,
    typename U,
    ::metal::enable_if_t<is_complex_v<T> == is_complex_v<U>, bool> = true>
inline T cast_to(const U from) {
  return static_cast<T>(from);
}

template <
    typename T,
    typename U,
    ::metal::enable_if_t<is_complex_v<T> && !is_complex_v<U>, bool> = true>
inline T cast_to(const U from) {
  return T(static_cast<float>(from), 0.0f);
}

template <
    typename T,
    typename U,
    ::metal::enable_if_t<::metal::is_same_v<T, bool> && is_complex_v<U>, bool> =
        true>
inline T cast_to(const U from) {
  return from.x != 0 || from.y != 0;
}

template <
    typename T,
    typename U,
    ::metal::enable_if_t<
        !::metal::is_same_v<T, bool> && !is_complex_v<T> && is_complex_v<U>,
        bool> = true>
inline T cast_to(const U from) {
  return static_cast<T>(from.x);
}

// Metal's own max and min drop NaN; these return it, as ATen does.
template <
    typename T,
    ::metal::enable_if_t<is_scalar_floating_point_v<T>, bool> = true>
inline T max(const T a, const T b) {
  return ::metal::isunordered(a, b) ? T(NAN) : T(a < b ? b : a);
}

template <
    typename T,
    ::metal::enable_if_t<is_scalar_integral_v<T>, bool> = true>
inline T max(const T a, const T b) {
  return ::metal::max(a, b);
}

template <
    typename T,
    ::metal::enable_if_t<is_scalar_floating_point_v<T>, bool> = true>
inline T min(const T a, const T b) {
  return ::metal::isunordered(a, b) ? T(NAN) : T(b < a ? b : a);
}

template <
    typename T,
    ::metal::enable_if_t<is_scalar_integral_v<T>, bool> = true>
inline T min(const T a, const T b) {
  return ::metal::min(a, b);
}

template <typename T, ::metal::enable_if_t<!is_complex_v<T>, bool> = true>
inline T mul(const T a, const T b) {
  return a * b;
}

template <typename T, ::metal::enable_if_t<is_complex_v<T>, bool> = true>
inline T mul(const T a, const T b) {
  return T(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

template <typename T, ::metal::enable_if_t<!is_complex_v<T>, bool> = true>
inline T div(const T a, const T b) {
  return a / b;
}

// Smith's method: dividing by the larger part first cannot overflow midway.
template <typename T, ::metal::enable_if_t<is_complex_v<T>, bool> = true>
inline T div(const T a, const T b) {
  if (b.y == 0) {
    return T(a.x / b.x, a.y / b.x);
  }
  if (::metal::abs(b.x) >= ::metal::abs(b.y)) {
    const auto ratio = b.y / b.x;
    const auto scale = b.x + b.y * ratio;
    return T((a.x + a.y * ratio) / scale, (a.y - a.x * ratio) / scale);
  }
  const auto ratio = b.x / b.y;
  const auto scale = b.y + b.x * ratio;
  return T((a.x * ratio + a.y) / scale, (a.y * ratio - a.x) / scale);
}

// The remainder with the sign of the dividend (C's %, fmod).
template <
    typename T,
    ::metal::enable_if_t<is_scalar_integral_v<T>, bool> = true>
inline T fmod(const T a, const T b) {
  return a % b;
}

template <
    typename T,
    ::metal::enable_if_t<is_scalar_floating_point_v<T>, bool> = true>
inline T fmod(const T a, const T b) {
  return static_cast<T>(::metal::fmod(float(a), float(b)));
}

// The remainder with the sign of the divisor (Python's %).
template <
    typename T,
    ::metal::enable_if_t<
        is_scalar_integral_v<T> || is_scalar_floating_point_v<T>,
        bool> = true>
inline T remainder(const T a, const T b) {
  const T rest = c10::metal::fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? T(rest + b) : rest;
}

// Division rounded towards minus infinity (Python's //).
template <
    typename T,
    ::metal::enable_if_t<is_scalar_integral_v<T>, bool> = true>
inline T floor_divide(const T a, const T b) {
  const T quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? T(quotient - 1) : quotient;
}

// a - fmod(a, b) is a multiple of b, which floor(a / b) is not once the
// quotient rounds up to the next integer.
template <
    typename T,
    ::metal::enable_if_t<is_scalar_floating_point_v<T>, bool> = true>
inline T floor_divide(const T a_, const T b_) {
  const float a = a_;
  const float b = b_;
  if (b == 0) {
    return static_cast<T>(a / b);
  }
  const float rest = ::metal::fmod(a, b);
  float quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) {
    quotient -= 1;
  }
  if (quotient == 0) {
    return static_cast<T>(::metal::copysign(0.0f, a / b));
  }
  const float whole = ::metal::floor(quotient);
  return static_cast<T>(quotient - whole > 0.5f ? whole + 1 : whole);
}

} // namespace metal
} // namespace c10
