// Values with padding, copied as a whole: what lies between values is no fault; a value that nothing wrote still is. The line
// that is found has the kernel's name.
#include <metal_stdlib>
using namespace metal;

#define ARGUMENTS \
  device float* out [[buffer(0)]], const device float* in [[buffer(1)]], uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]]
#define PAIR(name, body) \
  template <bool repaired> static void body(device float* out, const device float* in, uint i, uint l, threadgroup void* memory); \
  kernel void name(ARGUMENTS) { \
    threadgroup float4 memory[2048]; \
    body<false>(out, in, i, l, memory); \
  } \
  kernel void name##_repaired(ARGUMENTS) { \
    threadgroup float4 memory[2048]; \
    body<true>(out, in, i, l, memory); \
  } \
  template <bool repaired> static void body(device float* out, const device float* in, uint i, uint l, threadgroup void* memory)
#define SHARED(type) threadgroup type* shared = reinterpret_cast<threadgroup type*>(memory)
#define MEET threadgroup_barrier(mem_flags::mem_threadgroup)

// Moments of rows, by value: mean, sum of squares and count.
static float3 combined(float3 a, float3 b) {
  const float count = a.z + b.z, share = count != 0 ? b.z / count : 0;
  return float3(a.x + (b.x - a.x) * share, a.y + b.y, count);
}
PAIR(moments, moments_of) {
  SHARED(float3);
  if (repaired || l != 70) shared[l] = float3(in[i], 0, 1);
  for (uint width = 64; width; width >>= 1) {
    MEET;
    if (l < width) shared[l] = combined(shared[l], shared[l + width]);  // moments
  }
  MEET;
  if (l == 0) out[i] = shared[0].y;
}

// One component of three.
static float total(float3 v) { return v.x + v.y + v.z; }
PAIR(component, component_of) {
  SHARED(float3);
  shared[l].xy = float2(in[i]);
  if (repaired) shared[l].z = 1;
  MEET;
  out[i] = total(shared[127 - l]);  // component
}

// A structure with padding between and behind its members.
struct Mixed {
  float3 place;
  char mark;
  float weight;
  bool there;
  half3 color;
};
PAIR(structure, structure_of) {
  SHARED(Mixed);
  shared[l].place = float3(in[i]), shared[l].mark = 1, shared[l].there = true, shared[l].color = half3(1);
  if (repaired) shared[l].weight = 2;
  MEET;
  const Mixed all[2] = {shared[127 - l], shared[l]};  // structure
  out[i] = all[i & 1].weight + all[i & 1].place.y;
  MEET;
  shared[l] = all[0];
  MEET;
  out[i] += shared[127 - l].color.y;
}

// One without vectors, from threadgroup memory to threadgroup memory and to the device.
struct Plain {
  float value;
  bool there;
};
PAIR(plain, plain_of) {
  SHARED(Plain);
  shared[l].there = true;
  if (repaired) shared[l].value = in[i];
  MEET;
  shared[128 + l] = shared[127 - l];  // plain
  MEET;
  reinterpret_cast<device Plain*>(out)[i] = shared[255 - l];
}

// Structures in an array of a structure; a class with a base.
struct Box {
  float3 low, high;
};
struct Boxes {
  Box boxes[3];
  uchar count;
};
PAIR(boxes, boxes_of) {
  SHARED(Boxes);
  for (uint k = 0; k < 3; ++k) {
    shared[l].boxes[k].low = float3(in[i]);
    if (repaired || k) shared[l].boxes[k].high = float3(in[i]);
  }
  shared[l].count = 3;
  MEET;
  const Boxes own = shared[127 - l];  // boxes
  out[i] = own.boxes[(own.count + i) % 3].high.z;
}
struct Derived : Plain {
  float3 place;
};
PAIR(derived, derived_of) {
  SHARED(Derived);
  shared[l].value = in[i], shared[l].there = true;
  if (repaired) shared[l].place = float3(1);
  MEET;
  const Derived both[2] = {shared[127 - l], shared[l]};  // derived
  out[i] = both[i & 1].place.x + both[i & 1].there;
}

// Padding that clang writes as bytes, in structures of an array that is copied with what it is in.
struct Leaf {
  float3 place;
  uchar mark;
  float weight;
};
struct Tree {
  Leaf leaves[3];
  short count;
};
PAIR(tree, tree_of) {
  SHARED(Tree);
  for (uint k = 0; k < 3; ++k) {
    shared[l].leaves[k].place = float3(in[i]), shared[l].leaves[k].mark = k;
    if (repaired || k != 1) shared[l].leaves[k].weight = k;
  }
  shared[l].count = 3;
  MEET;
  const Tree own = shared[127 - l];  // tree
  out[i] = own.leaves[(own.count + i) % 3].weight;
}

// Bools and bytes; a pointer that a function gets.
struct Bytes {
  bool flags[3];
  char3 bytes;
  short last;
};
static Bytes read(const threadgroup Bytes* all, uint k) { return all[k]; }  // bytes
PAIR(bytes, bytes_of) {
  SHARED(Bytes);
  shared[l].flags[0] = shared[l].flags[2] = true, shared[l].bytes = char3(1), shared[l].last = 2;
  if (repaired) shared[l].flags[1] = false;
  MEET;
  const Bytes own = read(shared, 127 - l);
  out[i] = own.flags[i % 3] + own.bytes.z;
}

// Private memory: structures of an array, which are copied, chosen and stored as a whole.
PAIR(private_copies, private_of) {
  Mixed all[4];
  for (uint k = 0; k < 4; ++k) {
    all[k].place = float3(in[i + k]), all[k].mark = k, all[k].there = k & 1, all[k].color = half3(k);
    if (repaired) all[k].weight = 1;
  }
  Mixed one = all[i & 3];
  const Mixed other = all[(i + 1) & 3];
  if (i & 1) one = other;
  reinterpret_cast<device Mixed*>(out)[i].weight = one.weight;  // private_copies
  if (repaired) reinterpret_cast<device Mixed*>(out)[i] = one;
}
PAIR(private_bytes, private_bytes_of) {
  uchar4 all[8];
  for (uint k = 0; k < 8; ++k) all[k].rgb = uchar3(abs(in[i + k]));
  if (repaired)
    for (uint k = 0; k < 8; ++k) all[k].a = k;
  out[i] = all[i & 7].a;  // private_bytes
}
