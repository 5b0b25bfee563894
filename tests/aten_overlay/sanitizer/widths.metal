// Integers on their way to an address: each kernel takes `out`, floats `x` and two numbers.
#include <metal_stdlib>
using namespace metal;
#define ARGUMENTS \
  device float* out [[buffer(0)]], device const float* x [[buffer(1)]], constant int& a [[buffer(2)]], \
      constant int& b [[buffer(3)]], uint i [[thread_position_in_grid]]

uint place(uint row, uint columns) { return row * columns; }

kernel void product(ARGUMENTS) {
  uint base = uint(a) * uint(b);  // product
  out[i] = x[base + i];
}
kernel void product_repaired(ARGUMENTS) {
  ulong base = ulong(a) * ulong(b);
  out[i] = x[min(base, 8ul) + i];
}
kernel void product_of_signed(ARGUMENTS) {
  int base = a * b;  // product_of_signed
  out[i] = x[clamp(base, 0, 8) + int(i)];
}
kernel void product_in_a_helper(ARGUMENTS) { out[i] = x[place(uint(a), uint(b)) + i]; }
kernel void sum(ARGUMENTS) {
  int last = a + b;  // sum
  for (int at = 0; at < last; ++at) out[i] += x[at];
}
kernel void conversion(ARGUMENTS) {
  const short rows = min(short(8), short(a - b));  // conversion
  for (short r = 0; r < rows; ++r) out[r] = x[r];
}
kernel void conversion_repaired(ARGUMENTS) {
  const short rows = short(min(8, a - b));
  for (short r = 0; r < rows; ++r) out[r] = x[r];
}
kernel void narrow_size(ARGUMENTS) {
  long rows = long(a) * b;
  int count = rows;  // narrow_size
  out[i] = x[count > 8 ? 8 : count];
}
kernel void unsigned_position(ARGUMENTS) {
  out[i] = x[a + i];  // unsigned_position
}
// Right, or nothing that an address is made of.
kernel void data(ARGUMENTS) { out[i] = float(a * b) + float(short(a)) + x[i]; }
kernel void hash(ARGUMENTS) {
  uint h = (uint(a) + i) * 0x9E3779B9u;
  h ^= (h >> 16) * 0x85EBCA6Bu;
  out[i] = x[h % 8u];
}
kernel void negative_stride(ARGUMENTS) {
  uint at = uint(a) * i + 7u;  // -1 as a uint: the sum wraps to what is meant
  out[i] = x[at & 7u] + x[int(7u + uint(a) * i)];
}
__attribute__((annotate("porter: wraps"))) uint mix(uint n) { return n * n * n; }
kernel void annotated(ARGUMENTS) { out[i] = x[min(mix(uint(a)), 7u)]; }
kernel void unannotated(ARGUMENTS) {
  uint n = uint(a);
  out[i] = x[min(n * n * n, 7u)];  // unannotated
}
