// Scalar types (MSL section 2.1). Vectors are classes because clang's own vector types refuse `float2(a, b)`.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define PM_INLINE __attribute__((always_inline)) inline

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;
using half = _Float16;

namespace pm {
template <bool B, class T = void> struct enable {};
template <class T> struct enable<true, T> { using type = T; };
template <bool B, class T = void> using enable_t = typename enable<B, T>::type;
template <class T> inline constexpr bool is_bfloat = false;
template <class T> inline constexpr bool is_plain_float = __is_same(T, float) || __is_same(T, half) || __is_same(T, double);
template <class T> inline constexpr bool is_plain = is_plain_float<T> || __is_integral(T);
// A class whose only conversion to a number is to bool itself. A class that converts to another number would become a
// bfloat in two steps, which the operators of bfloat would then take for their own.
char exact_bool(bool);
#define PM_OTHER(T) void exact_bool(T);
PM_OTHER(char) PM_OTHER(signed char) PM_OTHER(uchar) PM_OTHER(short) PM_OTHER(ushort) PM_OTHER(int) PM_OTHER(uint) PM_OTHER(long)
PM_OTHER(ulong) PM_OTHER(half) PM_OTHER(float) PM_OTHER(double)
#undef PM_OTHER
template <class A> A&& value_of();
template <class A, class = char> inline constexpr bool is_truth = false;
template <class A> inline constexpr bool is_truth<A, decltype(exact_bool(value_of<const A&>()))> = __is_class(A);
}  // namespace pm

// Brain float: 16 bits, rounded to nearest even. From bfloat to float is implicit, back is explicit (from an integer implicit). With a float or
// half it computes in float; with itself or an integer it stays bfloat.
struct bfloat {
  uint16_t bits;
  bfloat() = default;
  template <class A, pm::enable_t<pm::is_plain_float<A> || __is_enum(A), int> = 0>
  PM_INLINE explicit constexpr bfloat(A a) : bits(round(float(a))) {}
  template <class A, pm::enable_t<__is_integral(A), int> = 0>
  PM_INLINE constexpr bfloat(A a) : bits(round(float(a))) {}
  template <class A, pm::enable_t<pm::is_truth<A>, int> = 0>
  PM_INLINE constexpr bfloat(const A& a) : bits(round(bool(a) ? 1.0f : 0.0f)) {}
  PM_INLINE constexpr operator float() const { return __builtin_bit_cast(float, uint32_t(bits) << 16); }
  PM_INLINE constexpr bfloat operator-() const { return from_bits(bits ^ 0x8000); }
  PM_INLINE constexpr bfloat operator+() const { return *this; }
  PM_INLINE static constexpr bfloat from_bits(uint32_t b) {
    bfloat r{};
    r.bits = uint16_t(b);
    return r;
  }
  PM_INLINE static constexpr uint16_t round(float f) {
#ifdef __CUDA__
    if (!__builtin_is_constant_evaluated()) return __builtin_bit_cast(uint16_t, static_cast<__bf16>(f));
#endif
    const uint32_t u = __builtin_bit_cast(uint32_t, f);
    const uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1)) >> 16;
    const uint32_t nan = (u >> 16) | 0x40;
    return uint16_t(f != f ? nan : rounded);
  }
  PM_INLINE constexpr bfloat& operator++() { return *this = bfloat(float(*this) + 1.0f); }
  PM_INLINE constexpr bfloat& operator--() { return *this = bfloat(float(*this) - 1.0f); }
#define PM_ASSIGN(op) \
  template <class A> PM_INLINE constexpr bfloat& operator op##=(A b) { return *this = bfloat(float(*this) op float(b)); }
  PM_ASSIGN(+) PM_ASSIGN(-) PM_ASSIGN(*) PM_ASSIGN(/)
#undef PM_ASSIGN
// Friends, so that no class which only converts to bfloat finds them.
#define PM_OPERATOR(op, R) \
  friend PM_INLINE constexpr R operator op(bfloat a, bfloat b) { return R(float(a) op float(b)); }
  PM_OPERATOR(+, bfloat) PM_OPERATOR(-, bfloat) PM_OPERATOR(*, bfloat) PM_OPERATOR(/, bfloat)
  PM_OPERATOR(==, bool) PM_OPERATOR(!=, bool) PM_OPERATOR(<, bool) PM_OPERATOR(>, bool) PM_OPERATOR(<=, bool)
  PM_OPERATOR(>=, bool)
#undef PM_OPERATOR
};

namespace pm {
template <> inline constexpr bool is_bfloat<bfloat> = true;
// An integer that takes the type of what it is chosen beside (see choices.py).
struct literal {
  long value;
  template <class T> PM_INLINE constexpr operator T() const { return T(value); }
};
// What a choice is made of: an integer beside a bfloat becomes one, anything else stays what it is.
template <class Other, class T> PM_INLINE constexpr decltype(auto) beside(T&& side) {
  if constexpr (is_bfloat<__remove_cv(__remove_reference_t(Other))> && __is_integral(__remove_reference_t(T))) return bfloat(side);
  else return static_cast<T>(static_cast<T&&>(side));
}
template <bool Integral> struct bfloat_result { using type = bfloat; };
template <> struct bfloat_result<false> { using type = float; };
template <class A> using bfloat_with = typename enable<is_plain<A>, typename bfloat_result<__is_integral(A)>::type>::type;
// Beside a plain number, what converts to bool is one rather than a bfloat.
template <bool, class A> struct truth_result {};
template <class A> struct truth_result<true, A> { using type = decltype(A() + true); };
template <class A, class B> using with_truth = typename truth_result<is_plain<A> && is_truth<B>, A>::type;
}  // namespace pm

#define PM_ARITHMETIC(op) \
  template <class A> PM_INLINE constexpr pm::bfloat_with<A> operator op(bfloat a, A b) { return pm::bfloat_with<A>(float(a) op float(b)); } \
  template <class A> PM_INLINE constexpr pm::bfloat_with<A> operator op(A a, bfloat b) { return pm::bfloat_with<A>(float(a) op float(b)); } \
  template <class A, class B> PM_INLINE constexpr pm::with_truth<A, B> operator op(A a, const B& b) { return a op bool(b); } \
  template <class A, class B> PM_INLINE constexpr pm::with_truth<A, B> operator op(const B& b, A a) { return bool(b) op a; }
PM_ARITHMETIC(+) PM_ARITHMETIC(-) PM_ARITHMETIC(*) PM_ARITHMETIC(/)
#undef PM_ARITHMETIC

#define PM_COMPARE(op) \
  template <class A> PM_INLINE constexpr pm::enable_t<pm::is_plain<A>, bool> operator op(bfloat a, A b) { return float(a) op float(b); } \
  template <class A> PM_INLINE constexpr pm::enable_t<pm::is_plain<A>, bool> operator op(A a, bfloat b) { return float(a) op float(b); }
PM_COMPARE(==) PM_COMPARE(!=) PM_COMPARE(<) PM_COMPARE(>) PM_COMPARE(<=) PM_COMPARE(>=)
#undef PM_COMPARE

// By their names in `metal::` as well.
namespace metal {
using ::uchar; using ::ushort; using ::uint; using ::ulong; using ::half; using ::bfloat;
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::size_t; using ::ptrdiff_t;
}  // namespace metal

// Literal suffixes `1.5h` and `1.5bf` (MSL section 2.1).
constexpr half operator""h(long double x) { return half(x); }
constexpr half operator""h(unsigned long long x) { return half(x); }
constexpr bfloat operator""bf(long double x) { return bfloat(float(x)); }
