// Integer arithmetic whose result Metal leaves open, used and not used.
#include <metal_stdlib>
using namespace metal;
#define ARGUMENTS \
  device int* out [[buffer(0)]], device const int* a [[buffer(1)]], device const float* x [[buffer(2)]], \
      uint i [[thread_position_in_grid]]

kernel void quotient(ARGUMENTS) {
  const int by = a[1];
  const int all = a[0] / by;  // quotient
  out[i] = all + 1;
}
kernel void rest(ARGUMENTS) {
  out[i] = uint(a[0]) % uint(a[1]);  // rest
}
kernel void rows(ARGUMENTS) {
  out[i] = (int2(a[0], 8) / int2(a[1], 2)).x;  // rows
}
kernel void rounded(ARGUMENTS) {
  const short small = short(x[0]);  // rounded
  if (small > 4) out[i] = 1;
}
kernel void index(ARGUMENTS) {
  out[uint(x[0]) & 7] = 1;  // index
}
kernel void chosen(ARGUMENTS) {
  out[i] = a[1] == 0 ? 0 : a[0] / a[1];
}
kernel void selected(ARGUMENTS) {
  out[i] = select(a[0] / a[1], 0, a[1] == 0);
}
kernel void clamped(ARGUMENTS) {
  out[i] = isfinite(x[0]) ? int(clamp(x[0], -1e9f, 1e9f)) : 0;
}
kernel void unused(ARGUMENTS) {
  const int2 both = int2(float2(x[0], 3));
  out[i] = both.y;
}
