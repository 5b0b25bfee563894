// Constructs that public Metal code uses, each with a result that can be worked out by hand.
#include <metal_logging>
#include <metal_stdlib>

#define FIRST_CONSTANT 20
constant short factor [[function_constant(FIRST_CONSTANT + 0)]];
static constant constexpr const bool has_extra [[function_constant(FIRST_CONSTANT + 1)]];
constant int octal [[function_constant(010)]];
constant short pair_of_factors[2] = {factor, short(factor * 2)};
constant int unset [[function_constant(99)]];
constant bool has_unset = metal::is_function_constant_defined(unset);

#define LARGER(a, b) ((a) > (b) ? (a) : (b))
#define UNROLLED _Pragma("clang loop unroll(full)") for

// A name that the standard library does not have.
namespace metal {
template <typename T> struct is_empty : bool_constant<__is_empty(T)> {};
template <typename... T> struct make_nothing { typedef void type; };
template <typename... T> using void_t = typename make_nothing<T...>::type;
template <typename T> struct pointee {};
template <typename T> struct pointee<device T*> { using type = T; };
template <typename T> struct pointee<threadgroup T*> { using type = T; };
// What a kernel's headers add for bfloat does not hide what is there for float.
METAL_FUNC bfloat exp(bfloat x) { return bfloat(__metal_exp(float(x), __METAL_MAYBE_FAST_MATH__)); }
namespace precise {
METAL_FUNC bfloat exp(bfloat x) { return bfloat(__metal_exp(float(x), __METAL_PRECISE_MATH__)); }
}
}  // namespace metal

// What Apple's numeric_limits of other types comes from.
struct Wrapped {
  float value;
};
using namespace metal;
template <> struct _numeric_limits_impl<Wrapped> {
  static constexpr Wrapped max() { return {7}; }
};

struct Spaced {
  float value;
  Spaced() thread = default;
  Spaced() threadgroup = default;
  Spaced(float v) thread : value(v) {}
  Spaced(float v) constant : value(v) {}
  float get() const thread { return value; }
  float get() const device { return value; }
  friend Spaced operator+=(thread Spaced& a, Spaced b) { a.value += b.value; return a; }
};
struct Truth {
  constexpr operator bool() thread { return true; }
  constexpr operator bool() const device { return true; }
};
constant Spaced table_of_spaced[2] = {Spaced(3.0), Spaced(4.0)};

// Set aside: no kernels.
struct Varyings {
  float4 position [[position]];
};
vertex Varyings draw(uint i [[vertex_id]]) { return Varyings{float4(i)}; }
fragment float4 shade(Varyings v [[stage_in]]) { return v.position; }

template <typename T> inline float dot(T a, T b) { return -1; }

kernel void constants(device float* out [[buffer(0)]], constant int& extra [[buffer(3), function_constant(has_extra)]]) {
  out[0] = factor;
  out[1] = pair_of_factors[1];
  out[2] = octal;
  out[3] = has_extra ? extra : -1;
  out[4] = has_unset;
}
kernel void needs_unset(device float* out [[buffer(0)]]) { out[0] = unset; }
template <int M, int N = 4>
[[kernel, max_total_threads_per_threadgroup(M * N * 32)]] void limited(device float* out [[buffer(0)]]) { out[0] = M * N; }
template [[host_name("limited_2")]] [[kernel]] decltype(limited<2>) limited<2>;
template [[host_name("limited_2_1")]] [[kernel]] decltype(limited<2, 1>) limited<2, 1>;

kernel void arrays(
    constant int64_t strides[2] [[buffer(0)]], constant const int (&shape)[2] [[buffer(1)]], device float* out [[buffer(2)]],
    volatile coherent(device) device uint* seen [[buffer(3)]]) {
#pragma unroll (LARGER(2, 1))
  for (int i = 0; i < 2; ++i) out[i] = strides[i] * shape[i];
  UNROLLED (int i = 2; i < 4; ++i) { out[i] = table_of_spaced[i - 2].get(); }
  seen[0] = 7;
}
kernel void spaces(device float* out [[buffer(0)]], device Spaced* given [[buffer(1)]]) {
  Spaced a(1.5);
  a += Spaced(2.0);
  Spaced b;
  b.value = given->get();
  out[0] = a.get() + b.get();
  out[1] = metal::is_empty<Truth>::value;
  metal::pointee<device float*>::type f = 2.5;
  out[2] = f;
  out[3] = bfloat(Truth());
  out[4] = dot(float4(1, 2, 3, 4), float4(1)) + dot(1, 2);
}
kernel void swizzles(device float* out [[buffer(0)]]) {
  float4 v(1, 2, 3, 4);
  v.xy += v.zw;
  const float2 sum = v.xy + v.zw;
  out[0] = sum.x;
  out[1] = sum.y;
  out[2] = as_type<uint>(half4(1, 2, 3, 4).xy) >> 16;
  out[3] = metal::max(v.wz, v.xy).y + metal::dot(v.xy, v.zw) + metal::length(v.zw);
  const metal::vec<float, 3> cut = -v.zyx;
  out[4] = cut.x;
  const uint4 started = {1, 2};
  out[5] = started.x + 10 * started.y + 100 * started.z;
}
struct Corner {
  float2 wz;
};
struct Named {
  float gg;
};
kernel void repeated_colors(device float* out [[buffer(0)]], device float4* pixels [[buffer(1)]]) {
  float4 v = pixels[0].rrrr + float4(pixels->bbg, 1);
  out[0] = v.x + 10 * v.y + 100 * v.z + 1000 * v.w;
  v.rg += pixels[0].aa;
  const auto turned = v.gbbr.rr;
  out[1] = turned.x + turned.y;
  out[2] = metal::dot(metal::mix(v.rrr, v.bbb, v.ggg), float3(1)) + v.aaaa.g;
  Named named{7};
  out[3] = named.gg;
}
kernel void swizzles_of_swizzles(device float* out [[buffer(0)]], device Corner* corners [[buffer(1)]]) {
  float4 v(1, 2, 3, 4);
  out[0] = v.rgba.a;
  v.zyx.xy = float2(30, 20);
  out[1] = v.x + v.y + v.z;
  thread float4* const p = &v;
  const auto turned = p->wzyx.xyz.zx;
  out[2] = turned.x + 10 * turned.y;
  out[3] = metal::dot(v.xyz.xy, v.zw.yx) + (v + v).xyz.z;
  out[4] = corners->wz.x + corners[0].wz.y;
}
template <typename T, T v> struct Known {
  constexpr operator T() const noexcept { return v; }
};
template <class P, class S> float strided(P p, short i, S stride) { return p[stride * i] + 100 * p[i * stride + i]; }
kernel void known(device float* out [[buffer(0)]], constant float* in [[buffer(1)]]) {
  out[0] = strided(in, 2, Known<int, 3>());
  out[1] = strided(in, 2, Known<uchar, 2>());
  out[2] = strided(in, 2, Known<bool, true>());
  const bfloat half_of_it = bfloat(1.5f) * Known<bool, true>();
  out[3] = half_of_it + Known<int, 4>();
}
kernel void scalars(device float* out [[buffer(0)]]) {
  const float4 chosen = metal::select(float4(1, 2, 3, 4), -INFINITY, bool4(false, true, false, false));
  out[0] = chosen.x;
  out[1] = chosen.y;
  out[2] = metal::min(2.5, float2(1, 7)).y;
  out[3] = metal::clamp(float2(-1, 7), 0.0, 3.0).y + metal::fmax(float2(1), 2).x;
  out[4] = metal::pow(2.0, float2(3, 4)).y;
  out[5] = metal::precise::exp(0.0f) + metal::exp(0.0f) + float(metal::precise::exp(bfloat(0.0f))) + metal::fract(3);
  out[6] = MAXHALF;
  out[7] = (as_type<uint>(-2.0f) & metal::_fp_encoding_traits<float>::sign_mask) != 0;
  out[8] = metal::vec_elements<half4>::value + sizeof(metal::remove_addrspace_t<const int>);
  out[9] = metal::make_uniform(6) / metal::make_uniform(4) + metal::_disjunction<metal::is_same<int, float>, metal::is_same<int, int>>::value;
  out[10] = metal::__is_valid_simdgroup_type<half4>::value + 2 * metal::__is_valid_simdgroup_type<long>::value +
      4 * metal::__is_valid_simdgroup_type<bool>::value + 8 * metal::__is_valid_simdgroup_type<Spaced>::value;
  out[11] = metal::numeric_limits<Wrapped>::max().value;
  assert(out[0] > 0);
}
kernel void matrices(device float* out [[buffer(0)]]) {
  float2x2 m(1, 2, 3, 4);
  m += float2x2(1.0);
  m *= 2.0;
  half2x2 narrow = (half2x2)m;
  narrow -= half2x2(half2(1, 0), half2(0, 1));
  for (int c = 0; c < 2; ++c)
    for (int r = 0; r < 2; ++r) out[2 * c + r] = narrow[c][r];
  out[4] = metal::determinant(float4x4(2.0)) + (m == m);
  m /= 2.0;
  out[5] = (float2x2(6, 9, 12, 15) / 3.0f)[1][0] + m[0][1];
}
kernel void packed_conversions(device float* out [[buffer(0)]], device const packed_char4* bytes [[buffer(1)]]) {
  const packed_float4 low = packed_float4(bytes[0] & packed_char4(0x0F)) * 2.0f;
  const packed_half4 whole = packed_half4(bytes[0]);
  const packed_float3 part = packed_float3(bytes[0].wyx);
  const packed_int2 cut = packed_int2(float2(2.75f, -1.5f));
  for (int i = 0; i < 4; ++i) out[i] = low[i] + float(whole[i]);
  for (int i = 0; i < 3; ++i) out[4 + i] = part[i];
  for (int i = 0; i < 2; ++i) out[7 + i] = cut[i];
}
constant metal::os_log journal("porter", "forms");
kernel void logs(device float* out [[buffer(0)]]) {
  journal.log_error("%d is not %.2f", 3, out[0]);
  out[0] = 1;
}
kernel void too_much(device float* out [[buffer(0)]], uint i [[thread_index_in_threadgroup]]) {
  threadgroup float large[8193];
  large[i] = i;
  threadgroup_barrier(metal::mem_flags::mem_threadgroup);
  out[i] = large[i];
}
kernel void broken(device float* out [[buffer(0)]]) { out[0] = no_such_name; }
kernel void broken_parameter(device float* out [[buffer(0)]], float4 v [[stage_in]]) { out[0] = v.x; }
float elsewhere(float x);
kernel void calls_elsewhere(device float* out [[buffer(0)]]) { out[0] = elsewhere(out[0]); }
static float twice(float x) { return x + x; }
static float2 twice(float2 x) { return x + x; }
kernel void twice(device float* out [[buffer(0)]]) { out[0] = twice(2.0f) + twice(float2(3)).x; }
