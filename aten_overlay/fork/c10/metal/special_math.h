// Functions that Metal's standard library lacks, in float.
#pragma once
#include <c10/metal/utils.h>
#include <metal_stdlib>

namespace c10 {
namespace metal {

// Below 1 a polynomial in x^2; above, 1 - exp(-x^2) P(t) with t = 1 / (1 + x /
// 2). Both are Chebyshev fits whose error stays under half a unit in the last
// place.
inline float erf(float x) {
  const float size = ::metal::fabs(x);
  if (size < 1) {
    const float z = x * x;
    float p = -9.667044571e-06f;
    p = ::metal::fma(p, z, 1.126595903e-04f);
    p = ::metal::fma(p, z, -8.484080406e-04f);
    p = ::metal::fma(p, z, 5.221031808e-03f);
    p = ::metal::fma(p, z, -2.686543073e-02f);
    p = ::metal::fma(p, z, 1.128378250e-01f);
    p = ::metal::fma(p, z, -3.761263847e-01f);
    p = ::metal::fma(p, z, 1.128379167e+00f);
    return x * p;
  }
  if (size >= 4) {
    return ::metal::copysign(1.0f, x);
  }
  const float t = 1 / (1 + 0.5f * size);
  float p = 1.209964830e-01f;
  p = ::metal::fma(p, t, -4.770732894e-01f);
  p = ::metal::fma(p, t, 5.721441608e-01f);
  p = ::metal::fma(p, t, -1.109791573e-01f);
  p = ::metal::fma(p, t, 3.514296741e-01f);
  p = ::metal::fma(p, t, 2.586291180e-01f);
  p = ::metal::fma(p, t, 2.850821008e-01f);
  p = ::metal::fma(p, t, -1.656854498e-04f);
  return ::metal::copysign(1 - ::metal::precise::exp(-x * x) * p, x);
}

// log(1 + x), corrected for what was rounded away when 1 was added.
inline float log1p(float x) {
  const float u = 1 + x;
  if (u == 1) {
    return x;
  }
  const float log_u = ::metal::precise::log(u);
  if (u == 0 || ::metal::isinf(u)) {
    return log_u;
  }
  return log_u - ((u - 1) - x) / u;
}

// exp(x) - 1, by its series where the subtraction would cancel.
inline float expm1f(float x) {
  if (::metal::fabs(x) > 0.5f) {
    return ::metal::precise::exp(x) - 1;
  }
  float p = 1.0f / 362880;
  p = ::metal::fma(p, x, 1.0f / 40320);
  p = ::metal::fma(p, x, 1.0f / 5040);
  p = ::metal::fma(p, x, 1.0f / 720);
  p = ::metal::fma(p, x, 1.0f / 120);
  p = ::metal::fma(p, x, 1.0f / 24);
  p = ::metal::fma(p, x, 1.0f / 6);
  p = ::metal::fma(p, x, 0.5f);
  return x * ::metal::fma(p, x, 1.0f);
}

// sqrt(x^2 + y^2), scaled so that the squares neither overflow nor vanish.
inline float hypot(float x, float y) {
  if (::metal::isinf(x) || ::metal::isinf(y)) {
    return INFINITY;
  }
  const float larger = c10::metal::max(::metal::fabs(x), ::metal::fabs(y));
  const float smaller = c10::metal::min(::metal::fabs(x), ::metal::fabs(y));
  if (larger == 0) {
    return larger;
  }
  const float ratio = smaller / larger;
  return larger * ::metal::precise::sqrt(::metal::fma(ratio, ratio, 1.0f));
}

} // namespace metal
} // namespace c10
