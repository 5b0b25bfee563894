// What the language offers beyond elementary functions. Each kernel writes what it computes to `out`, one value a thread.
#include <metal_stdlib>
using namespace metal;

constant float table[4] = {1.0, 2.0, 3.0, 4.0};
constant constexpr uint size = 4;

struct Parameters {
  array<uint, 3> sizes;
  float2 pair;
  long offset;
  bool flag;
  packed_float3 triple;
};
struct Counter {
  float value;
  thread float& get() thread { return value; }
  float read() const { return value; }
};
// Told apart by address space alone: the host keeps one.
inline float first(constant float* p) { return p[0]; }
inline float first(const device float* p) { return p[0]; }

kernel void vectors(device float* out [[buffer(0)]]) {
  float4 a = float4(1, 2, 3, 4);
  float4 b = a.wzyx;
  b.xy = a.zw;
  b.zw += float2(10, 20);
  float3 c = float3(a.xyz) * 2.0;
  const int2 i = int2(float2(1.9, -1.9));
  float4 values[] = {b, float4(c, dot(c, c)), float4(i.x, i.y, a.xx), float4(a.rgb, a[3]), select(a, b, a > 2.0)};
  for (int k = 0; k < 20; ++k) out[k] = values[k / 4][k % 4];
}
kernel void packed_vectors(constant packed_uint4& size [[buffer(0)]], device uint* out [[buffer(1)]]) {
  packed_uint4 index = size * size;
  index += uint4(size) * 2;
  const packed_uint4 values[] = {index, size + 1u, 10 - size, uint4(1, 2, 3, 4) * size, uint4(size == packed_uint4(1, 0, 3, 0))};
  for (int k = 0; k < 20; ++k) out[k] = values[k / 4][k % 4];
}
kernel void parameters(constant Parameters& p [[buffer(0)]], device float* out [[buffer(1)]]) {
  Parameters copy = p;
  Counter counter;
  counter.get() = 3;
  out[0] = copy.sizes[1];
  out[1] = copy.pair.y;
  out[2] = copy.offset;
  out[3] = copy.flag;
  out[4] = float3(copy.triple).z + 100 * copy.triple.x + 1000 * copy.triple[1];
  out[5] = counter.read() + table[2] + size;
  out[6] = sizeof(Parameters);
}
kernel void integers(device long* out [[buffer(0)]]) {
  out[0] = clz(1u);
  out[1] = ctz(ulong(8));
  out[2] = popcount(char(-1));
  out[3] = mulhi(0x7fffffffffffffffL, 4L);
  out[4] = rotate(uchar(0x81), uchar(1));
  out[5] = reverse_bits(ushort(1));
  out[6] = addsat(char(100), char(100));
  out[7] = subsat(uchar(1), uchar(2));
  out[8] = hadd(int(0x7fffffff), int(0x7fffffff));
  out[9] = extract_bits(0xabcdu, 4, 8);
  out[10] = insert_bits(0u, 0xffu, 4, 8);
  out[11] = absdiff(char(-128), char(127));
  out[12] = as_type<int>(1.0);
  out[13] = as_type<ulong>(uint2(1, 2));
  out[14] = min(2u, 3u) + max(-1L, 5L);
  out[15] = abs(short(-5));
}
kernel void narrow(device half* h [[buffer(0)]], device bfloat* b [[buffer(1)]], device float* out [[buffer(2)]]) {
  h[0] = half(2049.0);
  h[1] = 1.5h * half(2.0);
  h[2] = half(65520.0);
  b[0] = bfloat(1.00390625);
  b[1] = bfloat(1.01171875);
  b[2] = bfloat(3) * bfloat(1.0078125);
  out[0] = h[0] * 2.0f;
  out[1] = fract(half(-1e-4));
  out[2] = float(b[0]) + b[2] * 2.0f;
  out[3] = sizeof(0.5) == 4;
  out[4] = numeric_limits<bfloat>::max();
}
// Vectors at addresses that are aligned for their components alone.
struct spaced {
  float first;
  float4 rest;
};
kernel void misaligned(device float* x [[buffer(0)]], device ulong* sizes [[buffer(1)]]) {
  device float4* v = reinterpret_cast<device float4*>(x + 1);
  device float4* w = reinterpret_cast<device float4*>(x + 5);
  const float4 old = *v;
  *v = *w;
  *w = old * 2 + float4(x[0]);
  v[1].xy = v[0].yx;
  sizes[0] = sizeof(spaced);
  sizes[1] = alignof(float3) + 100 * alignof(half4) + 10000 * alignof(bool2);
}
kernel void vector_limits(device float* out [[buffer(0)]]) {
  constexpr auto unbounded = numeric_limits<float2>::infinity().y;
  out[0] = unbounded;
  out[1] = numeric_limits<half3>::lowest().z;
  out[2] = numeric_limits<uchar4>::max().w;
  out[3] = numeric_limits<bfloat2>::is_integer + 2 * numeric_limits<int4>::is_integer;
}
// Literals are float, in a template and out of it.
template <typename T> uint literal_sizes(T x) {
  auto product = 2.0 * x;
  auto plain = 1e-3;
  return sizeof(product) + 16 * sizeof(plain) + 256 * sizeof(.5) + 4096 * sizeof(0x1p3);
}
kernel void literals(device uint* out [[buffer(0)]]) {
  out[0] = literal_sizes(1.0);
  out[1] = literal_sizes(half(1));
}
kernel void nans(device float* out [[buffer(0)]]) {
  const float nan = as_type<float>(0x7fc00000u);
  out[0] = max(nan, 1.0);
  out[1] = min(1.0, nan);
  out[2] = fmax(nan, nan);
  out[3] = isnan(nan) + isinf(-INFINITY) + isfinite(1.0) + signbit(-0.0);
  out[4] = clamp(nan, 0.0, 1.0);
  out[5] = sign(nan);
}
kernel void addresses(constant float* a [[buffer(0)]], device float* b [[buffer(1)]]) { b[0] += first(a) + first(b); }

kernel void positions(
    device uint* out [[buffer(0)]], uint3 p [[thread_position_in_grid]], uint3 l [[thread_position_in_threadgroup]],
    uint3 g [[threadgroup_position_in_grid]], uint3 n [[threads_per_grid]], uint3 t [[threads_per_threadgroup]],
    uint3 d [[dispatch_threads_per_threadgroup]], uint3 m [[threadgroups_per_grid]], ushort i [[thread_index_in_threadgroup]],
    ushort lane [[thread_index_in_simdgroup]], uint simd [[simdgroup_index_in_threadgroup]],
    uint width [[threads_per_simdgroup]], uint quad [[quadgroup_index_in_threadgroup]]) {
  device uint* o = out + 21 * (p.x + n.x * (p.y + n.y * p.z));
  const uint all[] = {p.x, p.y, p.z, l.x, l.y, l.z, g.x, g.y, g.z, t.x, t.y, t.z, d.x, d.y, m.x, m.y, i, lane, simd, width, quad};
  for (int k = 0; k < 21; ++k) o[k] = all[k];
}
kernel void histogram(device atomic_uint* bins [[buffer(0)]], constant uint* v [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  atomic_fetch_add_explicit(&bins[v[i]], 1, memory_order_relaxed);
}
kernel void largest(device atomic<int>* best [[buffer(0)]], constant int* v [[buffer(1)]], uint i [[thread_position_in_grid]]) {
  atomic_fetch_max_explicit(best, v[i], memory_order_relaxed);
}
constant bool doubled [[function_constant(0)]];
constant float given [[function_constant(3)]];
constant float shift = is_function_constant_defined(given) ? given : 0.5;
kernel void specialised(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
  x[i] = (doubled ? x[i] * 2 : x[i]) + shift;
}
