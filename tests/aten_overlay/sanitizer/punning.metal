// Unions, bit-fields and words of parts: a value is there byte by byte, or bit by bit. The line that is found has the kernel's name.
#include <metal_stdlib>
using namespace metal;

#define ARGUMENTS \
  device float* out [[buffer(0)]], const device float* in [[buffer(1)]], device uchar* more [[buffer(2)]], \
      uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]]
#define PAIR(name, body) \
  template <bool repaired> static void body(device float* out, const device float* in, device uchar* more, uint i, uint l, threadgroup void* memory); \
  kernel void name(ARGUMENTS) { \
    threadgroup float4 memory[512]; \
    body<false>(out, in, more, i, l, memory); \
  } \
  kernel void name##_repaired(ARGUMENTS) { \
    threadgroup float4 memory[512]; \
    body<true>(out, in, more, i, l, memory); \
  } \
  template <bool repaired> static void body(device float* out, const device float* in, device uchar* more, uint i, uint l, threadgroup void* memory)
#define SHARED(type) threadgroup type* shared = reinterpret_cast<threadgroup type*>(memory)
#define MEET threadgroup_barrier(mem_flags::mem_threadgroup)

union Either {
  float value;
  ulong whole;
  uchar bytes[8];
};
struct Tagged {
  uchar tag;
  union {
    float value;
    ulong whole;
    half halves[4];
  };
};
struct Fields {
  uint low : 4, middle : 7, high : 1;
};
struct Wide {
  float value;
  uint low : 4, middle : 20;
};
static float sum_of(packed_float3 v) { return v.x + v.y + v.z; }

// Unions in threadgroup memory, of which one member has a value.
PAIR(shared_union, shared_union_of) {
  SHARED(Either);
  if (repaired || l != 70) shared[l].value = in[i];
  MEET;
  Either own = shared[127 - l];  // shared_union
  out[i] = own.value;
}
PAIR(other_member, other_member_of) {
  SHARED(Either);
  shared[l].value = in[i];
  MEET;
  Either own = shared[127 - l];  // other_member
  out[i] = repaired ? own.value : float(own.whole);
}
PAIR(shared_copy, shared_copy_of) {
  SHARED(Tagged);
  if (repaired || l != 70) shared[l].tag = 1;
  shared[l].value = in[i];
  MEET;
  shared[128 + l] = shared[127 - l];  // shared_copy
  MEET;
  out[i] = shared[255 - l].value;
}
// A packed vector is no such union.
PAIR(shared_vector, shared_vector_of) {
  SHARED(packed_float3);
  shared[l].x = in[i], shared[l].y = 1;
  if (repaired) shared[l].z = 2;
  MEET;
  shared[128 + l] = shared[127 - l];  // shared_vector
  MEET;
  out[i] = sum_of(shared[255 - l]);
}

// Private ones: their bytes, copies, and what stores them as a whole.
PAIR(private_byte, private_byte_of) {
  Either own;
  own.value = in[i];
  out[i] = own.bytes[repaired ? i & 3 : 4 + (i & 3)];  // private_byte
}
static Tagged tagged(float value) {
  Tagged made;
  made.tag = 1, made.value = value;
  return made;
}
static Tagged picked(thread const Tagged* all, uint k) { return all[k]; }
PAIR(private_union, private_union_of) {
  Tagged all[5];
  for (uint k = 0; k < 5; ++k) all[k] = tagged(in[i + k]);
  const Tagged own = picked(all, i % 5);
  device Tagged* stored = reinterpret_cast<device Tagged*>(more);
  stored[i] = own;
  out[i] = repaired ? stored[i].value : float(own.halves[2]);  // private_union
}

// Bit-fields: a store reads what is beside it, and no bit has a value beyond the last.
PAIR(shared_fields, shared_fields_of) {
  SHARED(Fields);
  if (repaired || l != 70) shared[l].low = i, shared[l].middle = 3, shared[l].high = 1;
  MEET;
  out[i] = shared[127 - l].low + shared[127 - l].middle;  // shared_fields
}
PAIR(private_fields, private_fields_of) {
  SHARED(Fields);
  Fields own;
  own.low = i, own.high = 1;
  if (repaired) own.middle = 5;
  shared[l] = own;
  reinterpret_cast<device Fields*>(more)[i] = own;
  MEET;
  out[i] = shared[127 - l].low + own.middle;  // private_fields
}
PAIR(wide_fields, wide_fields_of) {
  device Wide* stored = reinterpret_cast<device Wide*>(more);
  Wide own;
  own.low = 1, own.middle = i;
  if (repaired) own.value = in[i];
  stored[i] = own;  // wide_fields
  out[i] = stored[i].middle;
}

// Words that are put together of parts.
PAIR(word, word_of) {
  uint packed;
  for (uint k = 0; k < 3; ++k) packed = packed << 8 | (uint(abs(in[i + k])) & 255);
  out[i] = repaired ? packed & 0xFFFFFF : packed;  // word
}
PAIR(halves, halves_of) {
  union {
    half parts[2];
    uint whole;
  } own;
  own.parts[i & 1] = half(in[i]);
  if (repaired) own.parts[~i & 1] = 1;
  out[i] = own.whole;  // halves
}

// Of a word of which the bits in `kept` have a value, those in `read` are read.
kernel void bits(device uint* out [[buffer(0)]], constant uint* numbers [[buffer(1)]]) {
  const uint kept = numbers[0], read = numbers[1], by = numbers[2];
  uint word;
  word = (word & ~kept) | (numbers[3] & kept);
  out[0] = ((word >> by) ^ numbers[3]) & read;
}

// Unions with vectors, which are assigned.
union Ray {
  float3 direction;
  float2 plane;
};
PAIR(assigned, assigned_of) {
  SHARED(Ray);
  Ray own, other;
  other.direction = float3(1);
  own.plane = float2(in[i]);
  if (i & 1) other = own;
  shared[l] = other;
  reinterpret_cast<device Ray*>(more)[i] = other;
  MEET;
  own = shared[127 - l];
  out[i] = repaired ? own.plane.y : other.direction.z;  // assigned
}
