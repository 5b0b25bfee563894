// Mathematical functions, and conversions between types.
#include <metal_stdlib>
using namespace metal;

#define UNARY(name) \
  kernel void name##_float(device const float* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) { \
    out[i] = name(x[i]); \
  }
UNARY(exp) UNARY(exp2) UNARY(exp10) UNARY(log) UNARY(log2) UNARY(log10) UNARY(sin) UNARY(cos) UNARY(tan) UNARY(sinpi) UNARY(cospi)
UNARY(asin) UNARY(acos) UNARY(atan) UNARY(sinh) UNARY(cosh) UNARY(tanh) UNARY(asinh) UNARY(acosh) UNARY(atanh) UNARY(sqrt) UNARY(rsqrt)
UNARY(fabs) UNARY(floor) UNARY(ceil) UNARY(trunc) UNARY(round) UNARY(rint) UNARY(fract) UNARY(sign)
#define BINARY(name) \
  kernel void name##_float(device const float* x [[buffer(0)]], device const float* y [[buffer(1)]], device float* out [[buffer(2)]], \
                           uint i [[thread_position_in_grid]]) { \
    out[i] = name(x[i], y[i]); \
  }
BINARY(pow) BINARY(atan2) BINARY(fmod) BINARY(fmin) BINARY(fmax) BINARY(copysign) BINARY(fdim) BINARY(divide) BINARY(nextafter)
kernel void parts_float(device const float* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  int exponent;
  const float fraction = frexp(x[i], exponent);
  float whole;
  const float rest = modf(x[i], whole);
  out[4 * i] = ldexp(fraction, exponent), out[4 * i + 1] = whole + rest, out[4 * i + 2] = float(exponent), out[4 * i + 3] = float(ilogb(x[i]));
}

#define CONVERT(A, B) \
  kernel void A##_to_##B(device const A* x [[buffer(0)]], device B* out [[buffer(1)]], uint i [[thread_position_in_grid]]) { out[i] = B(x[i]); }
CONVERT(float, half) CONVERT(float, bfloat) CONVERT(half, float) CONVERT(bfloat, float) CONVERT(int, half) CONVERT(int, bfloat)
CONVERT(float, int) CONVERT(float, uchar) CONVERT(int, float) CONVERT(ulong, float)
kernel void bfloat_sum(device const bfloat* x [[buffer(0)]], device const bfloat* y [[buffer(1)]], device bfloat* out [[buffer(2)]],
                       uint i [[thread_position_in_grid]]) {
  out[i] = x[i] + y[i];
}
kernel void half_fused(device const half* x [[buffer(0)]], device const half* y [[buffer(1)]], device half* out [[buffer(2)]],
                       uint i [[thread_position_in_grid]]) {
  out[i] = fma(x[i], y[i], y[i]);
}
