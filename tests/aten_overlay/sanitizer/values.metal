// Operations that make NaN or infinity of the numbers that they are given.
#include <metal_stdlib>
using namespace metal;
#define ARGUMENTS \
  device float* out [[buffer(0)]], device const float* x [[buffer(1)]], uint i [[thread_position_in_grid]]

kernel void ratio(ARGUMENTS) {
  out[i] = x[0] / x[1];  // ratio
}
kernel void product(ARGUMENTS) {
  const float2 both = float2(1, x[0]) * x[1];  // product
  out[i] = both.y;
}
kernel void narrowed(ARGUMENTS) {
  const half small = half(x[0]);  // narrowed
  out[i] = small;
}
kernel void exponential(ARGUMENTS) {
  out[i] = exp(x[0]);  // exponential
}
kernel void root(ARGUMENTS) {
  out[i] = sqrt(x[0]);  // root
}
kernel void largest(ARGUMENTS) {
  float most = -INFINITY;
  for (uint k = 0; k < 2; ++k) most = max(most, x[k]);
  out[i] = exp(x[0] - most);
}
