// Every elementary function, for float, half and bfloat.
#include <metal_stdlib>
using namespace metal;

#define UNARY(name) \
  template <typename T> kernel void unary_##name(constant T* x [[buffer(0)]], device T* out [[buffer(1)]], uint i [[thread_position_in_grid]]) { \
    out[i] = T(precise::name(x[i])); \
  } \
  template [[host_name(#name "_float")]] kernel void unary_##name<float>(constant float*, device float*, uint); \
  template [[host_name(#name "_half")]] kernel void unary_##name<half>(constant half*, device half*, uint); \
  template [[host_name(#name "_bfloat")]] kernel void unary_##name<bfloat>(constant bfloat*, device bfloat*, uint);
#define BINARY(name) \
  template <typename T> kernel void binary_##name(constant T* x [[buffer(0)]], constant T* y [[buffer(1)]], device T* out [[buffer(2)]], uint i [[thread_position_in_grid]]) { \
    out[i] = T(precise::name(x[i], y[i])); \
  } \
  template [[host_name(#name "_float")]] kernel void binary_##name<float>(constant float*, constant float*, device float*, uint); \
  template [[host_name(#name "_half")]] kernel void binary_##name<half>(constant half*, constant half*, device half*, uint); \
  template [[host_name(#name "_bfloat")]] kernel void binary_##name<bfloat>(constant bfloat*, constant bfloat*, device bfloat*, uint);

UNARY(exp) UNARY(exp2) UNARY(exp10) UNARY(log) UNARY(log2) UNARY(log10) UNARY(sin) UNARY(cos) UNARY(tan) UNARY(sinpi)
UNARY(cospi) UNARY(tanpi) UNARY(asin) UNARY(acos) UNARY(atan) UNARY(sinh) UNARY(cosh) UNARY(tanh) UNARY(asinh) UNARY(acosh)
UNARY(atanh) UNARY(sqrt) UNARY(rsqrt) UNARY(fabs) UNARY(floor) UNARY(ceil) UNARY(trunc) UNARY(round) UNARY(rint) UNARY(sign)
UNARY(fract)
BINARY(atan2) BINARY(pow) BINARY(fmod) BINARY(copysign) BINARY(fmin) BINARY(fmax) BINARY(fdim) BINARY(divide)
BINARY(nextafter)
kernel void fast_exp_float(constant float* x [[buffer(0)]], device float* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = fast::exp(x[i]);
}
kernel void fast_exp_forms(constant packed_float3* x [[buffer(0)]], device float4* out [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  out[i] = float4(fast::exp(x[i]), float(fast::exp(half(x[i].x)))) + float4(fast::exp(float4(x[i], 0).xyz), float(fast::exp(bfloat(x[i].x))));
}
