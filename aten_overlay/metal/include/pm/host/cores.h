// The float functions, computed in double without a branch, so that a loop over them vectorizes and the result is within
// about half an ulp.
#pragma once

namespace pm {
PM_INLINE double select(bool c, double a, double b) { return c ? a : b; }
PM_INLINE double fma_(double a, double b, double c) { return __builtin_fma(a, b, c); }
PM_INLINE double magnitude(double x) { return __builtin_fabs(x); }
inline constexpr double infinity = __builtin_inf();
inline constexpr double nan = __builtin_nan("");
inline constexpr double rounder = 0x1.8p52;  // adding it rounds to an integer, kept in the low bits
// A sum with it stays what it is where an arithmetic regroups sums: of a factor of one or two, the rounder went away again.
#define PM_ROUNDED(sum) __arithmetic_fence(sum)
inline constexpr double ln2 = 0.693147180559945309417232, log2e = 1.44269504088896340735992;
inline constexpr double log2_10 = 3.32192809488736234787032, pi = 3.14159265358979323846264;

// a / b for a b whose reciprocal a float can hold; relative error 2^-44. Divisions of doubles are slow.
PM_INLINE double quotient(double a, double b) {
  const double inverse = 1.0f / float(b), near = a * inverse;
  return fma_(fma_(-near, b, a), inverse, near);
}
// The same, given 1 / b with a relative error of 2^-9.5; relative error 2^-38.
PM_INLINE double quotient(double a, double b, double inverse) {
  const double e = fma_(-inverse, b, 1.0), near = a * inverse, nearer = fma_(near, e, near);
  return fma_(nearer, e * e, nearer);
}
// 2^(x * factor), for any x and a factor up to 3.4; relative error 2^-40. The polynomial is the best for half a power up
// and down. A float is bounded as one: an instruction holds twice as many.
template <class T> PM_INLINE double power_core(T x, double factor) {
  const T above = x < T(-300) ? T(-300) : x;
  const double bounded = above > T(300) ? T(300) : above;
  const double shifted = factor == 1.0 ? PM_ROUNDED(bounded + rounder) : fma_(bounded, factor, rounder);
  const double whole = factor == 1.0 ? PM_ROUNDED(shifted - rounder) : shifted - rounder;
  const double f = fma_(bounded, factor, -whole);
  double p = 0.000001325522487866881697546;
  p = fma_(p, f, 0.00001531007940224929743657);
  p = fma_(p, f, 0.0001540345585245383944189);
  p = fma_(p, f, 0.001333345056800064568483);
  p = fma_(p, f, 0.009618129159402558188467);
  p = fma_(p, f, 0.05550410941205932993131);
  p = fma_(p, f, 0.2402265069581298820961);
  p = fma_(p, f, 0.6931471805459334549295);
  p = fma_(p, f, 1.0);
  const long scale = __builtin_bit_cast(long, shifted) << 52;
  return __builtin_bit_cast(double, __builtin_bit_cast(long, p) + scale);
}
// e^x within an ulp, in floats: half as much work. 2^n goes in as two factors, for results that are denormal.
PM_INLINE float fast_exp(float x) {
  const float above = x < -104.0f ? -104.0f : x, bounded = above > 89.0f ? 89.0f : above;
  const float shifted = __builtin_fmaf(bounded, float(log2e), 0x1.8p23f), n = shifted - 0x1.8p23f;
  const float r = __builtin_fmaf(n, -1.42860677e-6f, __builtin_fmaf(n, -0.693145752f, bounded));
  float p = 1.38195558e-3f;
  p = __builtin_fmaf(p, r, 8.37312452e-3f);
  p = __builtin_fmaf(p, r, 4.16695364e-2f);
  p = __builtin_fmaf(p, r, 1.66664720e-1f);
  p = __builtin_fmaf(p, r, 4.99999851e-1f);
  p = __builtin_fmaf(p, r, 1.0f);
  p = __builtin_fmaf(p, r, 1.0f);
  const int k = __builtin_bit_cast(int, shifted) - 0x4b400000, part = k >> 1;
  return p * __builtin_bit_cast(float, (part + 127) << 23) * __builtin_bit_cast(float, (k - part + 127) << 23);
}
PM_INLINE double exp2_core(double t) { return power_core(t, 1.0); }
PM_INLINE double exp_core(float x) { return power_core(x, log2e); }
// tanh(n ln(2)/2 + r) of tanh(n ln(2)/2) = (s - 1) / (s + 1), where s is 2^n, and tanh(r); relative error 2^-41. No float
// holds the bounds, so that clang compares doubles, in one instruction each.
PM_INLINE double tanh_core(float x) {
  const double above = select(x < -20.1, -20.1, x), a = select(above > 20.1, 20.1, above);
  const double shifted = fma_(a, log2e * 2.0, rounder);
  const double r = fma_(shifted - rounder, ln2 * -0.5, a), z = r * r;
  double p = 0.021217133651366447387;
  p = fma_(p, z, -0.053951223393559067872);
  p = fma_(p, z, 0.13333315123914323652);
  p = fma_(p, z, -0.33333333265088442075);
  p = fma_(p, z, 0.99999999999959040305);
  const double s = __builtin_bit_cast(double, (__builtin_bit_cast(long, shifted) << 52) + 0x3ff0000000000000L), h = p * r;
  const double v = fma_(s + 1.0, h, s - 1.0) / fma_(s - 1.0, h, s + 1.0);
  return __builtin_copysign(v, double(x));
}

// Natural logarithm of a finite x > 0 that is normal as a double; relative error 2^-38, at 1 too.
PM_INLINE double log_finite(double x) {
  const long bits = __builtin_bit_cast(long, x);
  const long split = bits - 0x3fe6a09e667f3bcdL;  // sqrt(1/2)
  const double e = double(split >> 52);
  const double m = __builtin_bit_cast(double, bits - (split & long(0xfff0000000000000UL)));
  const double b = m + 1.0, inverse = fma_(fma_(0.11685670846994238, b, -0.7224198574320306), b, 1.477732395093295);
  const double s = quotient(m - 1.0, b, inverse), z = s * s;
  double p = 0.19362655741770396316;
  p = fma_(p, z, 0.22191400725954421675);
  p = fma_(p, z, 0.28571754537558123646);
  p = fma_(p, z, 0.39999998797329535494);
  p = fma_(p, z, 0.66666666667375095988);
  return fma_(e, ln2, fma_(p, z * s, s + s));
}
PM_INLINE double log_core(double x) {
  const double finite = log_finite(x);
  const double at_zero = select(x == 0.0, -infinity, nan);
  return select(x > 0.0, select(x == infinity, infinity, finite), at_zero);
}

// x modulo pi/2 into [-pi/4, pi/4] and the multiple, right for every float. In integers, so that it vectorizes: the 24 bits
// of x times the 128 bits of 1/(2 pi) from where whole turns end.
struct Reduced {
  double r;
  long quadrant;
};
inline constexpr ulong turn_bits[5] = {0x0000000028be60dbUL, 0x9391054a7f09d5f4UL, 0x7d4d377036d8a566UL, 0x4f10e4107f9458eaUL, 0xf7aef1586dc91b8eUL};  // of 1/(2 pi), 32 places down

PM_INLINE Reduced reduce_core(float x) {
  const uint bits = __builtin_bit_cast(uint, x) & 0x7fffffff;
  const int exponent = int(bits >> 23) - 127;
  const bool tiny = exponent < -8;
  const ulong mantissa = (bits & 0x7fffff) | 0x800000;
  const ulong shift = ulong(tiny ? 0 : exponent + 9), whole = shift >> 6, part = shift & 63;
  const ulong a = whole == 0 ? turn_bits[0] : whole == 1 ? turn_bits[1] : turn_bits[2];
  const ulong b = whole == 0 ? turn_bits[1] : whole == 1 ? turn_bits[2] : turn_bits[3];
  const ulong c = whole == 0 ? turn_bits[2] : whole == 1 ? turn_bits[3] : turn_bits[4];
  const ulong high = (a << part) | ((b >> 1) >> (63 - part)), low = (b << part) | ((c >> 1) >> (63 - part));
  const ulong carry = (mantissa * (low >> 32) + ((mantissa * (low & 0xffffffff)) >> 32)) >> 32;
  const ulong magnitude_ = mantissa * high + carry, turn = x < 0.0f ? 0 - magnitude_ : magnitude_;
  const ulong quadrant = (turn + 0x2000000000000000UL) >> 62;
  const double r = double(long(turn - (quadrant << 62))) * 0x1.921fb54442d18p-62;
  return {select(tiny, double(x), r), tiny ? 0 : long(quadrant)};
}
PM_INLINE double sin_poly(double r) {
  const double z = r * r;
  double p = 1.0 / 6227020800;
  p = fma_(p, z, -1.0 / 39916800);
  p = fma_(p, z, 1.0 / 362880);
  p = fma_(p, z, -1.0 / 5040);
  p = fma_(p, z, 1.0 / 120);
  p = fma_(p, z, -1.0 / 6);
  return fma_(p, z * r, r);
}
PM_INLINE double cos_poly(double r) {
  const double z = r * r;
  double p = -1.0 / 87178291200;
  p = fma_(p, z, 1.0 / 479001600);
  p = fma_(p, z, -1.0 / 3628800);
  p = fma_(p, z, 1.0 / 40320);
  p = fma_(p, z, -1.0 / 720);
  p = fma_(p, z, 1.0 / 24);
  p = fma_(p, z, -0.5);
  return fma_(p, z, 1.0);
}
PM_INLINE double sine_of(Reduced a, long shift) {
  const long q = a.quadrant + shift;
  const double v = select(q & 1, cos_poly(a.r), sin_poly(a.r));
  return select(q & 2, -v, v);
}
PM_INLINE double tangent_of(Reduced a) {
  const double s = sin_poly(a.r), c = cos_poly(a.r);
  return select(a.quadrant & 1, -c, s) / select(a.quadrant & 1, s, c);
}
// Multiples of pi: the reduction is exact.
PM_INLINE Reduced reduce_half_turns(float x) {
  const double shifted = PM_ROUNDED(fma_(double(x) - 2.0 * __builtin_rint(double(x) * 0.5), 2.0, rounder));
  const double r = double(x) - 2.0 * __builtin_rint(double(x) * 0.5) - PM_ROUNDED(shifted - rounder) * 0.5;
  return {r * pi, __builtin_bit_cast(long, shifted)};
}

// The angle of (x, y) for y >= 0 and x >= 0, not both infinite; relative error 2^-48.
PM_INLINE double atan_core(double y, double x) {
  const bool steep = y > x;
  const double lo = select(steep, x, y), hi = select(steep, y, x);
  const bool far = lo > hi * 0.41421356237309504880;
  const double below = select(far, hi + lo, hi);
  const double t = select(far, lo - hi, lo) / select(below == 0.0, 1.0, below), z = t * t;
  double p = -0.02531647957377647565022;
  p = fma_(p, z, 0.05024762118940128032375);
  p = fma_(p, z, -0.06505982967170839915746);
  p = fma_(p, z, 0.07673535428183286017608);
  p = fma_(p, z, -0.09089529956562307357683);
  p = fma_(p, z, 0.1111104885375129568309);
  p = fma_(p, z, -0.1428571266168479383707);
  p = fma_(p, z, 0.1999999997839266205557);
  p = fma_(p, z, -0.3333333333322143404701);
  const double near = fma_(p, z * t, t);
  const double angle = near + select(far, 0.785398163397448309616, 0.0);
  return select(steep, 1.57079632679489661923 - angle, angle);
}

// These two may be called for many lanes at once: see runtime/wide.cpp.
#if defined(PM_CALL_WIDE) && defined(__AVX512F__) && defined(__AVX512DQ__)
extern "C" __attribute__((const)) float pm_exp(float), pm_tanh(float);
PM_INLINE float exp(float x) { return pm_exp(x); }
PM_INLINE float tanh(float x) { return pm_tanh(x); }
#else
PM_INLINE float exp(float x) { return float(exp_core(x)); }
PM_INLINE float tanh(float x) { return float(tanh_core(x)); }
#endif
PM_INLINE float exp2(float x) { return float(exp2_core(x)); }
PM_INLINE float exp10(float x) { return float(power_core(x, log2_10)); }
// The logarithm times `unit`; what is special is chosen among floats, of which an instruction holds twice as many.
PM_INLINE float log_times(float x, double unit) {
  const float finite = float(log_finite(x) * unit), at_zero = x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
  return x > 0.0f ? (x == __builtin_inff() ? x : finite) : at_zero;
}
PM_INLINE float log(float x) { return log_times(x, 1.0); }
PM_INLINE float log2(float x) { return log_times(x, log2e); }
PM_INLINE float log10(float x) { return log_times(x, 0.434294481903251827651); }
PM_INLINE float sin(float x) {
  const float v = float(sine_of(reduce_core(x), 0));
  return x == 0.0f ? x : (x - x == 0.0f ? v : __builtin_nanf(""));
}
PM_INLINE float cos(float x) {
  const float v = float(sine_of(reduce_core(x), 1));
  return x - x == 0.0f ? v : __builtin_nanf("");
}
PM_INLINE float tan(float x) {
  const float v = float(tangent_of(reduce_core(x)));
  return x == 0.0f ? x : (x - x == 0.0f ? v : __builtin_nanf(""));
}
PM_INLINE float sinpi(float x) {
  const float v = float(sine_of(reduce_half_turns(x), 0));
  const float zero = __builtin_copysignf(0.0f, x);
  return x - x == 0.0f ? (x == __builtin_truncf(x) ? zero : v) : __builtin_nanf("");
}
PM_INLINE float cospi(float x) {
  const float v = float(sine_of(reduce_half_turns(x), 1));
  return x - x == 0.0f ? v + 0.0f : __builtin_nanf("");
}
PM_INLINE float tanpi(float x) {
  const float v = float(tangent_of(reduce_half_turns(x)));
  return x == 0.0f ? x : (x - x == 0.0f ? v : __builtin_nanf(""));
}
PM_INLINE float atan2(float y, float x) {
  const double ay = magnitude(y), ax = magnitude(x);
  const bool corner = ay == infinity && ax == infinity;
  const double a = atan_core(select(corner, 1.0, ay), select(corner, 1.0, ax));
  const double whole = select(__builtin_signbit(x), pi - a, a);
  const float v = __builtin_copysignf(float(whole), y);
  return x != x || y != y ? __builtin_nanf("") : v;
}
PM_INLINE float atan(float x) {
  const float v = __builtin_copysignf(float(atan_core(magnitude(x), 1.0)), x);
  return x != x ? x : v;
}
PM_INLINE float asin(float x) {
  const double a = magnitude(x);
  const double v = atan_core(a, __builtin_sqrt((1.0 - a) * (1.0 + a)));
  return a > 1.0 || x != x ? __builtin_nanf("") : __builtin_copysignf(float(v), x);
}
PM_INLINE float acos(float x) {
  const double a = magnitude(x);
  const double v = atan_core(__builtin_sqrt((1.0 - a) * (1.0 + a)), a);
  return a > 1.0 || x != x ? __builtin_nanf("") : float(select(x < 0.0f, pi - v, v));
}
PM_INLINE float sinh(float x) {
  const double a = magnitude(x), e = exp_core(__builtin_fabsf(x)), z = a * a;
  const double small = fma_(fma_(fma_(z, 1.0 / 5040, 1.0 / 120), z, 1.0 / 6), z * a, a);
  const double v = select(a < 0.1, small, 0.5 * (e - 1.0 / e));
  return __builtin_copysignf(float(v), x);
}
PM_INLINE float cosh(float x) {
  const double e = exp_core(__builtin_fabsf(x));
  return float(0.5 * (e + 1.0 / e));
}
PM_INLINE float asinh(float x) {
  const double a = magnitude(x), z = a * a;
  const double small = fma_(fma_(z, 3.0 / 40, -1.0 / 6), z * a, a);
  const double v = select(a < 0.001, small, log_core(a + __builtin_sqrt(z + 1.0)));
  return __builtin_copysignf(float(v), x);
}
PM_INLINE float acosh(float x) {
  const double a = x, v = log_core(a + __builtin_sqrt((a - 1.0) * (a + 1.0)));
  return x < 1.0f || x != x ? __builtin_nanf("") : float(v);
}
PM_INLINE float atanh(float x) {
  const double a = magnitude(x), z = a * a;
  const double small = fma_(fma_(z, 1.0 / 5, 1.0 / 3), z * a, a);
  const double v = select(a < 0.001, small, 0.5 * log_core((1.0 + a) / (1.0 - a)));
  return __builtin_copysignf(float(v), x);
}
PM_INLINE float rsqrt(float x) { return float(1.0 / __builtin_sqrt(double(x))); }

// On bits, because clang turns the float comparison into a class test that it cannot vectorize.
PM_INLINE bool is_infinite(float x) { return (__builtin_bit_cast(uint, x) << 1) == 0xff000000u; }

// x^y (C99 F.10.4.4), and powr, whose domain is x >= 0.
PM_INLINE float pow_positive(float a, float y) { return float(exp2_core(double(y) * (log_core(a) * log2e))); }
PM_INLINE float pow(float x, float y) {
  const float a = __builtin_fabsf(x), whole = __builtin_truncf(y), half_y = y * 0.5f;
  const bool integer = whole == y, odd = integer && __builtin_truncf(half_y) != half_y;
  const bool unit = x == 1.0f || y == 0.0f || (x == -1.0f && is_infinite(y));
  const float v = pow_positive(a, y);
  const float signed_v = odd ? __builtin_copysignf(v, x) : v;
  const bool undefined = (x < 0.0f && !is_infinite(x) && !integer) || x != x || y != y;
  return unit ? 1.0f : (undefined ? __builtin_nanf("") : signed_v);
}
PM_INLINE float powr(float x, float y) {
  const bool undefined = x < 0.0f || x != x || y != y || (x == 0.0f && y == 0.0f) ||
      (x == 1.0f && is_infinite(y)) || (is_infinite(x) && y == 0.0f);
  return undefined ? __builtin_nanf("") : pow_positive(__builtin_fabsf(x), y);
}

// What the compiler itself has.
PM_INLINE float round(float x) { return __builtin_roundf(x); }
PM_INLINE float fmod(float x, float y) { return __builtin_fmodf(x, y); }
PM_INLINE float fdim(float x, float y) { return __builtin_fdimf(x, y); }
PM_INLINE float nextafter(float x, float y) { return __builtin_nextafterf(x, y); }
PM_INLINE float ldexp(float x, int e) { return __builtin_ldexpf(x, e); }
PM_INLINE float frexp(float x, int* e) { return __builtin_frexpf(x, e); }
PM_INLINE int ilogb(float x) { return __builtin_ilogbf(x); }
PM_INLINE half fma(half a, half b, half c) { return half(__builtin_fma(double(a), double(b), double(c))); }
}  // namespace pm
