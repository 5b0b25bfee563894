// Kernels that use private variables before they have a value, and their repairs.
#include <metal_stdlib>
using namespace metal;

#define ARGUMENTS device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]]

// Sums in registers that nobody set to 0, at places that are known only when it runs.
kernel void sums(ARGUMENTS) {
  float sum[4];
  for (uint k = 0; k < 8; ++k) sum[uint(abs(in[i + k]) * 8) & 3] += in[i + k];
  out[i] = sum[0] + sum[1] + sum[2] + sum[3];  // sums
}
kernel void sums_repaired(ARGUMENTS) {
  float sum[4] = {0, 0, 0, 0};
  for (uint k = 0; k < 8; ++k) sum[uint(abs(in[i + k]) * 8) & 3] += in[i + k];
  out[i] = sum[0] + sum[1] + sum[2] + sum[3];
}

// A value on some ways only.
kernel void some_ways(ARGUMENTS) {
  float most;
  for (uint k = 0; k < i; ++k) most = k ? max(most, in[k]) : in[k];
  out[i] = most;  // some_ways
}
kernel void some_ways_repaired(ARGUMENTS) {
  float most = -INFINITY;
  for (uint k = 0; k < i; ++k) most = max(most, in[k]);
  out[i] = most;
}

// A branch.
kernel void branch(ARGUMENTS) {
  bool found;
  if (in[i] > 0) found = in[i] > 1;
  if (found) out[i] = 1;  // branch
}
kernel void branch_repaired(ARGUMENTS) {
  bool found = false;
  if (in[i] > 0) found = in[i] > 1;
  if (found) out[i] = 1;
}

// One component of a vector, one member of a structure.
struct Pair {
  float first;
  int second;
};
kernel void one_component(ARGUMENTS) {
  float4 v;
  v.xyz = float3(in[i]);
  out[i] = dot(v, float4(1));  // one_component
}
kernel void one_component_repaired(ARGUMENTS) {
  float4 v = float4(0);
  v.xyz = float3(in[i]);
  out[i] = dot(v, float4(1));
}
kernel void member(ARGUMENTS) {
  Pair pair;
  pair.first = in[i];
  out[i] = pair.first * pair.second;  // member
}
kernel void member_repaired(ARGUMENTS) {
  Pair pair;
  pair.first = in[i];
  pair.second = 2;
  out[i] = pair.first * pair.second;
}

// What simdgroup functions pass on.
kernel void passed_on(ARGUMENTS) {
  float part;
  if (i % 32 < 16) part = in[i];
  out[i] = simd_sum(part);  // passed_on
}
kernel void passed_on_repaired(ARGUMENTS) {
  float part;
  part = i % 32 < 16 ? in[i] : 0;
  out[i] = simd_sum(part);
}

// What a function that is kept apart reads through a pointer, or leaves unwritten.
static void __attribute__((noinline)) scale(thread float* v, float by) { v[0] *= by, v[1] *= by; }
kernel void kept_apart(ARGUMENTS) {
  float v[2];
  v[0] = in[i];
  scale(v, in[0]);
  out[i] = v[0] + v[1];  // kept_apart
}
kernel void kept_apart_repaired(ARGUMENTS) {
  float v[2] = {in[i], 1};
  scale(v, in[0]);
  out[i] = v[0] + v[1];
}

static void __attribute__((noinline)) find_first(thread uint& found, const device float* in) {
  for (uint k = 0; k < 8; ++k)
    if (in[k] > 100) found = k;
}
kernel void left_unwritten(ARGUMENTS) {
  uint found;
  find_first(found, in);
  out[i] = found;  // left_unwritten
}
kernel void left_unwritten_repaired(ARGUMENTS) {
  uint found = 8;
  find_first(found, in);
  out[i] = found;
}

// An index: of what is read, written, updated, and of a private array.
kernel void read_at(ARGUMENTS) {
  uint at;
  for (uint k = 0; k < i % 4; ++k) at += k;
  out[i] = in[at & 7];  // read_at
}
kernel void read_at_repaired(ARGUMENTS) {
  uint at = 0;
  for (uint k = 0; k < i % 4; ++k) at += k;
  out[i] = in[at & 7];
}
kernel void written_at(ARGUMENTS) {
  long to;
  if (in[i] > 0) to = i;
  out[to] = 1;  // written_at
}
kernel void written_at_repaired(ARGUMENTS) {
  long to = i;
  if (in[i] > 0) to = i;
  out[to] = 1;
}
kernel void updated_at(ARGUMENTS) {
  uint bin;
  if (i > 0) bin = uint(abs(in[i])) & 3;
  atomic_fetch_add_explicit(reinterpret_cast<device atomic_uint*>(out) + bin, 1u, memory_order_relaxed);  // updated_at
}
kernel void updated_at_repaired(ARGUMENTS) {
  uint bin = 0;
  if (i > 0) bin = uint(abs(in[i])) & 3;
  atomic_fetch_add_explicit(reinterpret_cast<device atomic_uint*>(out) + bin, 1u, memory_order_relaxed);
}
kernel void own_at(ARGUMENTS) {
  float own[8];
  for (uint k = 0; k < 8; ++k) own[k] = in[i + k];
  uint best;
  for (uint k = 0; k < 8; ++k)
    if (own[k] > 100) best = k;
  out[i] = own[best];  // own_at
}
kernel void own_at_repaired(ARGUMENTS) {
  float own[8];
  for (uint k = 0; k < 8; ++k) own[k] = in[i + k];
  uint best = 0;
  for (uint k = 0; k < 8; ++k)
    if (own[k] > 100) best = k;
  out[i] = own[best];
}

// Nothing is wrong here: the value is there wherever it is used, or is not used.
kernel void guarded(ARGUMENTS) {
  float x, three[3];
  const bool there = in[i] > 0;
  if (there) x = in[i] * 2;
  for (uint k = 0; k < 3; ++k) three[k] = in[i + k];
  threadgroup float3 shared[128];
  float3 v;
  v.x = three[0], v.y = three[i % 3], v.z = three[2];
  shared[i % 128] = v;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[i] = (there ? x : 0.0f) + shared[(i + 1) % 128].y;
}

// Arrays: of floats, and of structures that are copied.
kernel void array(ARGUMENTS) {
  float kept[300];
  for (uint k = 0; k < 299; ++k) kept[k] = in[k];
  out[i] = kept[299 - (i & 1)];  // array
}
kernel void array_repaired(ARGUMENTS) {
  float kept[300];
  for (uint k = 0; k < 300; ++k) kept[k] = in[k];
  out[i] = kept[299 - (i & 1)];
}
kernel void copied(ARGUMENTS) {
  Pair from[30], to[30];
  for (uint k = 0; k < 30; ++k)
    if (k != uint(abs(in[0]))) from[k] = {in[k], int(k)};
  for (uint k = 0; k < 30; ++k) to[k] = from[29 - k];
  out[i] = to[i % 30].second;  // copied
}
kernel void copied_repaired(ARGUMENTS) {
  Pair from[30], to[30];
  for (uint k = 0; k < 30; ++k) from[k] = {in[k], int(k)};
  for (uint k = 0; k < 30; ++k) to[k] = from[29 - k];
  out[i] = to[i % 30].second;
}

// Nothing is wrong here: what has no value lies between members, and is copied with them; what is written in one piece is
// read in several.
struct Padded {
  float value;
  char mark;
};
kernel void pieces(ARGUMENTS) {
  Padded from[30], to[30];
  float4 vectors[16];
  half halves[64];
  for (uint k = 0; k < 30; ++k) from[k].value = in[k], from[k].mark = char(k);
  for (uint k = 0; k < 30; ++k) to[k] = from[29 - k];
  for (uint k = 0; k < 16; ++k) vectors[k] = float4(in[k]);
  for (uint k = 0; k < 32; ++k) reinterpret_cast<thread half2*>(halves)[k] = half2(in[k]);
  out[i] = to[i % 30].mark + vectors[i % 16].y + vectors[(i + 1) % 16][i & 3] + halves[i % 64];
  if (i % 2 == 0) reinterpret_cast<device Padded*>(out + 256)[i / 2] = to[i % 30];
}
