// Unions of vectors and scalars, assigned as a whole: with and without names, in structures, templates and functions.
#include <metal_stdlib>
using namespace metal;

union Quad {
  float4 f;
  int4 i;
};
typedef struct {
  union {
    float3 direction;
    float parts[3];
  };
  float weight;
} Ray;
struct Outer {
  struct {
    union {
      half4 h;
      ushort u[4];
    };
    uint tag;
  };
  union {
    float2 pair;
    ulong whole;
  } bits;
};
template <typename T, int N> union Lanes {
  vec<T, N> v;
  T each[N];
};
template <typename T> struct Node final {
  union alignas(16) {
    T value;
    float raw;
  };
};
struct Doubling {
  union {
    float4 v;
    uint4 u;
  };
  thread Doubling& operator=(const thread Doubling& other) thread {
    v = other.v * 2;
    return *this;
  }
};
enum class Kind : uint { none };
static void exchange(thread Quad& a, thread Quad& b) {
  Quad kept = a;
  a = b;
  b = kept;
}

kernel void named(device float* out [[buffer(0)]], device Quad* quads [[buffer(1)]]) {
  Quad a = quads[0], b;
  b.f = float4(5, 6, 7, 8);
  exchange(a, b);
  quads[1] = b;
  out[0] = a.f.z, out[1] = b.f.y;
  threadgroup Quad shared[1];
  shared[0] = quads[1];
  b = shared[0];
  b.i.x |= int(0x80000000u);
  out[2] = b.f.x;
}
kernel void nameless(device float* out [[buffer(0)]], device Outer* outers [[buffer(1)]]) {
  Ray ray, other;
  ray.direction = float3(1, 2, 3), ray.weight = 4;
  other = ray;
  other.parts[1] += 10;
  out[0] = other.direction.y, out[1] = other.weight, out[2] = ray.direction.y;
  Outer outer;
  outer.h = half4(1.5h), outer.tag = 9, outer.bits.pair = float2(2, 3);
  outers[0] = outer;
  Outer read;
  read = outers[0];
  out[3] = float(read.h.w) + read.tag, out[4] = read.bits.pair.y;
  union {
    float4 f;
    uint4 u;
  } x, y;
  x.f = float4(1);
  y = x;
  out[5] = y.u.w == 0x3F800000u;
}
kernel void templates(device float* out [[buffer(0)]]) {
  Lanes<float, 4> lanes, others;
  lanes.v = float4(1, 2, 3, 4);
  others = lanes;
  out[0] = others.each[2];
  Node<float3> node, next;
  node.value = float3(7);
  next = node;
  out[1] = next.raw;
  Doubling one, two;
  one.v = float4(3);
  two = one;
  out[2] = two.v.x;
}
