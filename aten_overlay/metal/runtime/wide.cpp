// Functions that loops call for 16 or 8 lanes at once (see wide.py). They compute in floats, of which an instruction holds
// twice as many as of doubles: what a result is rounded from is a sum of two. One lane gets what it gets among many.
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#include "../include/pm/host/internal.h"

#include <immintrin.h>

#define PM_INLINE static inline __attribute__((always_inline))
using uint = unsigned;
using ulong = unsigned long;
using half = _Float16;
#include "../include/pm/host/cores.h"

namespace pm {
namespace {
using floats = float __attribute__((vector_size(64)));
using uints = uint __attribute__((vector_size(64)));
constexpr uint kLanes = 16, kSign = 0x80000000u;

PM_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
PM_INLINE floats fused(floats a, floats b, floats c) { return __builtin_elementwise_fma(a, b, c); }
PM_INLINE uint bits(float x) { return __builtin_bit_cast(uint, x); }
PM_INLINE uints bits(floats x) { return __builtin_bit_cast(uints, x); }
PM_INLINE float value(uint x) { return __builtin_bit_cast(float, x); }
PM_INLINE floats value(uints x) { return __builtin_bit_cast(floats, x); }
PM_INLINE float make(float, float x) { return x; }
PM_INLINE floats make(floats, float x) { return x - floats{}; }
PM_INLINE bool all(bool x) { return x; }
PM_INLINE bool all(int __attribute__((vector_size(64))) x) { return _mm512_movepi32_mask(__builtin_bit_cast(__m512i, x)) == 0xffff; }
PM_INLINE float look_up(const float* table, uint i) { return table[i & 31]; }
PM_INLINE floats look_up(const float* table, uints i) {
  return _mm512_permutex2var_ps(_mm512_load_ps(table), __builtin_bit_cast(__m512i, i), _mm512_load_ps(table + kLanes));
}

// 1 / x with a relative error of 2^-14.
PM_INLINE floats inverted(floats x) { return _mm512_rcp14_ps(x); }
PM_INLINE float inverted(float x) { return inverted(make(floats{}, x))[0]; }

// 2^(j/32) as floats whose bits lack j << 18, which the sum with (32 n + j) << 18 adds, and what these lack of the powers.
alignas(64) constexpr uint kPowers[32] = {
    0x3f800000, 0x3f7ecd87, 0x3f7daac3, 0x3f7c980f, 0x3f7b95c2, 0x3f7aa43a, 0x3f79c3d3, 0x3f78f4f0,
    0x3f7837f0, 0x3f778d3a, 0x3f76f532, 0x3f767043, 0x3f75fed7, 0x3f75a15b, 0x3f75583f, 0x3f7523f6,
    0x3f7504f3, 0x3f74fbaf, 0x3f7508a4, 0x3f752c4d, 0x3f75672a, 0x3f75b9be, 0x3f76248c, 0x3f76a81e,
    0x3f7744fd, 0x3f77fbb8, 0x3f78ccdf, 0x3f79b907, 0x3f7ac0c7, 0x3f7be4ba, 0x3f7d257d, 0x3f7e83b3};
alignas(64) constexpr float kRest[32] = {
    0,               -4.70845762e-08, 4.62854715e-08,  -5.56042252e-08, -1.19921575e-08, -4.87760623e-08,
    4.72978243e-08,  -3.48144269e-08, 3.19341815e-08,  -2.68866653e-08, 3.62105723e-08,  1.11842102e-09,
    -3.09907193e-08, -2.63830096e-08, -7.47521334e-09, -4.24563567e-08, 1.71142709e-08,  2.30019666e-08,
    -3.04768335e-08, -1.65385377e-08, 5.23333421e-09,  -3.5920646e-08,  6.10759177e-09,  -3.11405444e-08,
    -1.47196051e-08, -2.82181016e-08, -5.25879518e-09, -6.36038733e-09, -6.12825968e-09, -2.48804088e-08,
    5.14060927e-09,  -8.69726691e-09};

template <class V> struct Sum {
  V high, low;
};
// e^x for |x| < 70, of which x is r more than whole 32nds of ln(2); relative error 2^-36.
template <class V> PM_INLINE Sum<V> power(V x) {
  const V rounder = make(x, 0x1.8p23f), shifted = fused(x, make(x, 0x1.715476p+5f), rounder), n = shifted - rounder;
  const auto index = bits(shifted);
  const V r = fused(n, make(x, -0x1.62e43p-6f), x);  // exact
  const V rest = fused(n, make(x, 0x1.05c61p-34f), look_up(kRest, index)), whole = r + rest;
  const V scale = value(bits(look_up(reinterpret_cast<const float*>(kPowers), index)) + (index << 18));
  const V p = fused(fused(make(x, 0.0416667890f), r, make(x, 0.166667401f)), r, make(x, 0.5f));
  const V above = fused(p, whole * whole, rest);
  const V high = fused(scale, r, scale);
  return {high, fused(scale, above, fused(scale, r, scale - high))};
}
PM_INLINE bool is_moderate(float x) { return __builtin_fabsf(x) < 70.0f; }
PM_INLINE auto is_moderate(floats x) { return value(bits(x) & ~kSign) < 70.0f; }
PM_INLINE float exact_exp(float x) { return float(exp_core(x)); }
PM_INLINE floats exact_exp(floats x) {
  alignas(64) float given[kLanes], found[kLanes];
  _mm512_store_ps(given, x);
  for (uint i = 0; i < kLanes; ++i) found[i] = exact_exp(given[i]);
  return _mm512_load_ps(found);
}
template <class V> PM_INLINE V exp_of(V x) {
  if (__builtin_expect(!all(is_moderate(x)), false)) return exact_exp(x);
  const Sum<V> e = power(x);
  return e.high + e.low;
}
// 2 / (1 + e) - 1 with e = exp(-2 |x|), or near 0 the beginning of its series.
template <class V> PM_INLINE V tanh_of(V x) {
  const auto sign = bits(x) & kSign;
  const V positive = value(bits(x) ^ sign), a = positive > 9.5f ? make(x, 9.5f) : positive;
  const Sum<V> e = power(a * -2.0f);
  // 1 / (1 + e) is near (1 + c). 1 - near and 2 near - 1 are exact.
  const V near = inverted((1.0f + e.high) + e.low), twice = near + near;
  const V error = fused(-near, e.low, fused(-near, e.high, 1.0f - near)), c = fused(error, error, error);
  const V far = fused(twice, c, twice - 1.0f);
  const V z = a * a, small = fused(a * z, fused(make(x, 0.133247107f), z, make(x, -0.333333312f)), a);
  return value(bits(a < 0.04f ? small : far) | sign);
}

using narrow = float __attribute__((vector_size(32)));
PM_INLINE floats widen(narrow x) { return _mm512_zextps256_ps512(x); }
PM_INLINE narrow narrowed(floats x) { return _mm512_castps512_ps256(x); }
}  // namespace
}  // namespace pm

#define PM_FUNCTION(name) \
  PM_EXPORT float pm_##name(float x) { return pm::name##_of(x); } \
  PM_EXPORT pm::floats pm_##name##_16(pm::floats x) { return pm::name##_of(x); } \
  PM_EXPORT pm::narrow pm_##name##_8(pm::narrow x) { return pm::narrowed(pm::name##_of(pm::widen(x))); }
extern "C" {
PM_FUNCTION(exp)
PM_FUNCTION(tanh)
}
#endif
