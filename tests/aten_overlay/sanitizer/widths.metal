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
kernel void shift(ARGUMENTS) {
  uint base = uint(a) << b;  // shift
  out[i] = x[min(base, 7u)];
}
kernel void amount(ARGUMENTS) {
  uint base = 1u << b;  // amount
  out[i] = x[min(base, 7u)];
}
kernel void amount_to_the_right(ARGUMENTS) {
  uint bucket = uint(a) >> (32 - b);  // amount_to_the_right
  out[i] = x[min(bucket, 7u)];
}
kernel void amount_of_signed(ARGUMENTS) {
  int last = a >> b;  // amount_of_signed
  for (int at = 0; at < last; ++at) out[i] += x[at];
}
kernel void amount_of_long(ARGUMENTS) {
  out[i] = x[min(1ul << b, 7ul)];  // amount_of_long
}
kernel void amount_repaired(ARGUMENTS) {
  out[i] = x[b == 0 ? 0u : min(uint(a) >> (32 - b), 7u)];
}
kernel void rotated_hash(ARGUMENTS) {
  uint h = (uint(a) << b) | (uint(a) >> (32 - b));
  out[i] = x[h & 7u] + x[h % 8u];
}
kernel void bit_of_a_mask(ARGUMENTS) {
  uint bit = (uint(a) >> b) & 1u;
  if (bit != 0u) out[i] = float(1u << b) + x[bit];
}
struct Tile {
  int start, rows;
  Tile(int row, int columns, int many) {
    start = row * columns;  // member
    rows = many;
  }
  int place(uint at) const { return start + int(at); }
};
kernel void member(ARGUMENTS) {
  const Tile tile(a, b, 4), copy = tile;
  out[i] = x[min(copy.place(i), 7)];
}
kernel void array(ARGUMENTS) {
  int strides[2];
  for (int k = 0; k < 2; ++k) strides[k] = a * (b >> k);  // array
  out[i] = x[min(strides[i & 1], 7)];
}
kernel void vector(ARGUMENTS) {
  uint3 at = uint3(uint(a), i, 1u);
  at *= uint3(uint(b), 1u, 1u);  // vector
  out[i] = x[min(at.x + at.y, 7u)];
}
kernel void difference_of_vectors(ARGUMENTS) {
  const int4 at = int4(a) - int4(b, 0, 0, 0);  // difference_of_vectors
  out[i] = x[min(at.x & 7, int(i))] + x[max(min(at.x, 7), 0)];
}
kernel void counter(ARGUMENTS) {
  int turns = 0;
  for (uchar at = 0; at < a && turns < 300; ++at, ++turns) out[i] += x[min(uint(at), 7u)];  // counter
}
kernel void rounded(ARGUMENTS) {
  const short rows = short(float(a) * 8);  // rounded
  for (short r = 0; r < min(rows, short(b)); ++r) out[r] = x[r];
}
kernel void rounded_below_zero(ARGUMENTS) {
  const uint at = uint(float(a) - 4);  // rounded_below_zero
  out[i] = x[min(at, 7u)];
}
kernel void middle(ARGUMENTS) {
  int low = a + int(i), high = b;
  int at = (low + high) / 2;  // middle
  out[i] = x[max(min(at, 7), 0)];
}
kernel void middle_repaired(ARGUMENTS) {
  int low = a + int(i), high = b;
  int at = low + (high - low) / 2;
  out[i] = x[max(min(at, 7), 0)];
}
kernel void remainder(ARGUMENTS) {
  int turn = a * b;  // remainder
  out[i] = x[((turn % 8) + 8) % 8];
}
kernel void quotient(ARGUMENTS) {
  uint at = uint(a) * uint(b) / 4u;  // quotient
  out[i] = x[min(at, 7u)];
}
kernel void only_compared(ARGUMENTS) {
  int total = a * b;  // only_compared
  if (total <= 0) return;
  out[i] = x[min(a + int(i), 7)];
}
kernel void only_compared_repaired(ARGUMENTS) {
  if (long(a) * b <= 0) return;
  out[i] = x[min(a + b, 7)];
}
kernel void through_float(ARGUMENTS) {
  float at = float(a) - b;  // through_float
  out[i] = x[min(int(floor(at)), 7)];
}
kernel void through_float_repaired(ARGUMENTS) {
  int at = a - b;
  out[i] = x[min(at, 7)];
}
kernel void through_half(ARGUMENTS) {
  half at = half(uint(a) + i);  // through_half
  out[i] = x[min(uint(at), 7u)];
}
kernel void infinite_half(ARGUMENTS) {
  half at = half(uint(a));  // infinite_half
  out[i] = x[min(uint(at), 7u)];
}
kernel void negated_float(ARGUMENTS) {
  float at = -float(a);  // negated_float
  out[i] = x[max(min(int(-at), 7), 0)];
}
kernel void copied_float(ARGUMENTS) {
  float at = float(a);  // copied_float
  at = precise::trunc(abs(floor(ceil(rint(round(at))))));
  at = select(0.0f, fmin(max(fabs(min(at, 1e9f)), 0.0f), 1e9f), true);
  out[i] = x[min(int(clamp(at, 0.0f, 1e9f)), 7)];
}
kernel void narrow_count(device float* out [[buffer(0)]], device const float* x [[buffer(1)]], uint i [[thread_position_in_grid]],
                         ushort threads [[threads_per_grid]]) {
  out[i % 16] = x[threads % 16];
}
kernel void narrow_count_of_groups(device float* out [[buffer(0)]], device const float* x [[buffer(1)]], uint2 i [[thread_position_in_grid]],
                                   ushort2 groups [[threadgroups_per_grid]]) {
  out[i.y % 16] = x[groups.y % 16];
}
kernel void narrow_position(device float* out [[buffer(0)]], device const float* x [[buffer(1)]], ushort i [[thread_position_in_grid]]) {
  out[i % 16] = x[i % 16];
}
kernel void narrow_groups(device float* out [[buffer(0)]], device const float* x [[buffer(1)]], uint3 i [[thread_position_in_grid]],
                          ushort3 group [[threadgroup_position_in_grid]]) {
  out[(group.y + i.y) % 16] = x[group.y % 16];
}
// Right, or nothing that an address is made of.
kernel void data_compared(ARGUMENTS) {
  int one = as_type<int>(x[i]), other = as_type<int>(x[i + 1]);
  if (one * other > a) out[i] = 1;
  out[min(a, 7)] += max(one * other, 0);
}
kernel void hash_in_a_branch(ARGUMENTS) {
  uint h = (uint(a) + i) * 0x9E3779B9u;
  if (h > 1000u) out[i] = x[(h >> 16) % 8u];
}
kernel void down_to_zero(ARGUMENTS) {
  uchar left = uchar(a);
  while (left-- > 0) out[i] += x[min(uint(left), 7u)];
}
kernel void data_in_places(ARGUMENTS) {
  uint state[2] = {uint(a), uint(b)};
  for (int k = 0; k < 4; ++k) state[k & 1] = state[0] * 0x9E3779B9u + state[1];
  uint4 v = uint4(state[0]) * uint4(0xD2511F53u);
  v = v * v + uint4(uint(b));
  out[i] = x[v.x % 8u] + float(v.y) + float(state[1]) + x[state[0] & 7u];
}
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
kernel void scaled(ARGUMENTS) { out[i] = x[min(int(float(a) * 0.5f), 7)]; }
kernel void square_root(ARGUMENTS) { out[i] = x[min(uint(sqrt(float(a))), 7u)]; }
kernel void multiplied_and_added(ARGUMENTS) { out[i] = x[min(int(fma(float(a), 0.5f, float(b))), 7)]; }
kernel void counted_in_float(ARGUMENTS) { out[i] = float(a) + x[min(i, 7u)]; }
__attribute__((annotate("porter: wraps"))) uint mix(uint n) { return n * n * n; }
kernel void annotated(ARGUMENTS) { out[i] = x[min(mix(uint(a)), 7u)]; }
kernel void unannotated(ARGUMENTS) {
  uint n = uint(a);
  out[i] = x[min(n * n * n, 7u)];  // unannotated
}
