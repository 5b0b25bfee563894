// Functions with the errors that Metal allows them in fast math: what `--arithmetic fast` tries. A GPU's errors are mostly
// smaller. Source: Metal Shading Language Specification, the table of accuracy with fast math.
#pragma once

namespace pm {
namespace exact {
using pm::exp, pm::exp2, pm::exp10, pm::log, pm::log2, pm::log10, pm::sin, pm::cos, pm::tan;
using pm::sinh, pm::cosh, pm::tanh, pm::rsqrt;
}  // namespace exact

namespace quick {
using namespace exact;
// A number from -1 to 1 that depends on all bits of `x`, so that the errors of neighbors do not cancel or add up.
PM_INLINE double error_at(float x) {
  const uint bits = __builtin_bit_cast(uint, x) * 2654435761u;
  return double(int(bits ^ bits >> 15)) * 0x1p-31;
}
// Both roundings, of what is exact and of the result, take half an ulp.
PM_INLINE float within_ulps(float exact, double ulps, float x) {
  return float(exact * (1.0 + error_at(x) * (ulps - 1.0) * 0x1p-24));
}
// 3 + floor(abs(2 * x)) ulps; beyond 128 the result is 0 or infinity.
PM_INLINE double ulps_of_power(float x) {
  const float size = __builtin_fabsf(x);
  return 3.0 + __builtin_floor(2.0 * (size < 128.0f ? size : 128.0f));
}
PM_INLINE float exp(float x) { return within_ulps(pm::exp(x), ulps_of_power(x), x); }
PM_INLINE float exp2(float x) { return within_ulps(pm::exp2(x), ulps_of_power(x), x); }
// An absolute error of 2^-13, and not said how much beyond pi.
PM_INLINE float sin(float x) { return float(pm::sin(x) + error_at(x) * 0x1p-13); }
PM_INLINE float cos(float x) { return float(pm::cos(x) + error_at(x + 1.0f) * 0x1p-13); }
PM_INLINE float tan(float x) { return sin(x) * (1.0f / cos(x)); }
PM_INLINE float sinh(float x) { return 0.5f * (exp(x) - exp(-x)); }
PM_INLINE float cosh(float x) { return 0.5f * (exp(x) + exp(-x)); }
// NaN from 45 on, where exp(2 * x) is infinite (ggml-org/llama.cpp#9159).
PM_INLINE float tanh(float x) {
  const float t = exp(2.0f * x);
  return (t - 1.0f) / (t + 1.0f);
}
PM_INLINE float rsqrt(float x) { return within_ulps(pm::rsqrt(x), 2.0, x); }
}  // namespace quick
#ifdef PM_MATH_ERRORS
namespace chosen = quick;
#else
namespace chosen = ::pm;
#endif
}  // namespace pm
