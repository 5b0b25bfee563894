// The float functions: libdevice's, and with PM_FAST those of Metal's fast math. No CUDA toolkit: libdevice is bitcode.
#pragma once

#define PM_1(name) extern "C" __attribute__((device)) float __nv_##name(float);
#define PM_2(name) extern "C" __attribute__((device)) float __nv_##name(float, float);
PM_1(expf) PM_1(exp2f) PM_1(exp10f) PM_1(logf) PM_1(log2f) PM_1(log10f) PM_1(sinf) PM_1(cosf) PM_1(tanf) PM_1(sinpif)
PM_1(cospif) PM_1(asinf) PM_1(acosf) PM_1(atanf) PM_1(sinhf) PM_1(coshf) PM_1(tanhf) PM_1(asinhf) PM_1(acoshf)
PM_1(atanhf) PM_1(rsqrtf) PM_1(roundf) PM_2(atan2f) PM_2(powf) PM_2(fmodf) PM_2(fdimf) PM_2(nextafterf)
PM_1(fast_expf) PM_1(fast_exp10f) PM_1(fast_logf) PM_1(fast_log2f) PM_1(fast_log10f) PM_1(fast_sinf) PM_1(fast_cosf) PM_1(fast_tanf)
PM_2(fast_powf)
#undef PM_1
#undef PM_2
extern "C" __attribute__((device)) float __nv_ldexpf(float, int);
extern "C" __attribute__((device)) float __nv_frexpf(float, int*);
extern "C" __attribute__((device)) int __nv_ilogbf(float);

namespace pm {
PM_INLINE bool is_infinite(float x) { return (__builtin_bit_cast(uint, x) << 1) == 0xff000000u; }
#define PM_CORE(name) PM_INLINE float name(float x) { return __nv_##name##f(x); }
namespace exact {
PM_CORE(exp) PM_CORE(exp2) PM_CORE(exp10) PM_CORE(log) PM_CORE(log2) PM_CORE(log10) PM_CORE(sin) PM_CORE(cos) PM_CORE(tan)
PM_CORE(sinpi) PM_CORE(cospi) PM_CORE(asin) PM_CORE(acos) PM_CORE(atan) PM_CORE(sinh) PM_CORE(cosh) PM_CORE(tanh)
PM_CORE(asinh) PM_CORE(acosh) PM_CORE(atanh) PM_CORE(rsqrt)
PM_INLINE float pow(float x, float y) { return __nv_powf(x, y); }
}  // namespace exact
namespace quick {
using namespace exact;
PM_INLINE float exp(float x) { return __nv_fast_expf(x); }
PM_INLINE float exp2(float x) { return __nvvm_ex2_approx_f(x); }
PM_INLINE float exp10(float x) { return __nv_fast_exp10f(x); }
PM_INLINE float log(float x) { return __nv_fast_logf(x); }
PM_INLINE float log2(float x) { return __nv_fast_log2f(x); }
PM_INLINE float log10(float x) { return __nv_fast_log10f(x); }
PM_INLINE float sin(float x) { return __nv_fast_sinf(x); }
PM_INLINE float cos(float x) { return __nv_fast_cosf(x); }
PM_INLINE float tan(float x) { return __nv_fast_tanf(x); }
}  // namespace quick
#undef PM_CORE
#ifdef PM_FAST
using namespace quick;
#else
using namespace exact;
#endif
PM_INLINE float fast_exp(float x) { return quick::exp(x); }
PM_INLINE float tanpi(float x) { return __nv_sinpif(x) / __nv_cospif(x); }
PM_INLINE float atan2(float y, float x) { return __nv_atan2f(y, x); }
PM_INLINE float powr(float x, float y) {
  const bool undefined = x < 0.0f || x != x || y != y || (x == 0.0f && y == 0.0f) || (x == 1.0f && is_infinite(y)) ||
      (is_infinite(x) && y == 0.0f);
  return undefined ? __builtin_nanf("") : __nv_powf(__builtin_fabsf(x), y);
}
PM_INLINE float round(float x) { return __nv_roundf(x); }
PM_INLINE float fmod(float x, float y) { return __nv_fmodf(x, y); }
PM_INLINE float fdim(float x, float y) { return __nv_fdimf(x, y); }
PM_INLINE float nextafter(float x, float y) { return __nv_nextafterf(x, y); }
PM_INLINE float ldexp(float x, int e) { return __nv_ldexpf(x, e); }
PM_INLINE float frexp(float x, int* e) { return __nv_frexpf(x, e); }
PM_INLINE int ilogb(float x) { return __nv_ilogbf(x); }
PM_INLINE half fma(half a, half b, half c) { return __builtin_fmaf16(a, b, c); }
namespace chosen = ::pm;
}  // namespace pm
