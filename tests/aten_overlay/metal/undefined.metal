// Integer operations without a value in C++: see test_undefined.py.
#include <metal_stdlib>
using namespace metal;

// Of each pair: as scalars, assigned, as elements of vectors of two, three and four, as swizzles.
#define OPERATOR(name, op) \
  template <typename T> kernel void name(device const T* a, device const T* b, device T* o, uint i [[thread_position_in_grid]]) { \
    const T x = a[i], y = b[i]; \
    device T* out = o + 6 * i; \
    out[0] = x op y; \
    out[1] = x; \
    out[1] op##= y; \
    out[2] = (vec<T, 2>(x) op y).y; \
    out[3] = (vec<T, 3>(x) op vec<T, 3>(y)).z; \
    vec<T, 4> four(x); \
    four op##= vec<T, 4>(y); \
    out[4] = four[3]; \
    const vec<T, 4> left(x), right(y); \
    out[5] = (left.xy op right.zw).y; \
  }
OPERATOR(quotient, /) OPERATOR(rest, %) OPERATOR(left, <<) OPERATOR(right, >>)

template <typename T, typename F> kernel void to(device const F* a, device T* o, uint i [[thread_position_in_grid]]) {
  o[i] = static_cast<T>(a[i]);
}
template <typename T> kernel void to_vector(device const float* a, device T* o, uint i [[thread_position_in_grid]]) {
  o[i] = vec<T, 4>(float4(a[i])).z;
}

#define INSTANTIATE(name, T) \
  template [[host_name(#name "_" #T)]] kernel void name<T>(device const T*, device const T*, device T*, uint);
#define CONVERSION(F, T) \
  template [[host_name("to_" #T "_of_" #F)]] kernel void to<T, F>(device const F*, device T*, uint);
#define ALL(T) \
  INSTANTIATE(quotient, T) INSTANTIATE(rest, T) INSTANTIATE(left, T) INSTANTIATE(right, T) \
  CONVERSION(half, T) CONVERSION(bfloat, T) CONVERSION(float, T) \
  template [[host_name("to_" #T "_of_vector")]] kernel void to_vector<T>(device const float*, device T*, uint);
ALL(char) ALL(uchar) ALL(short) ALL(ushort) ALL(int) ALL(uint) ALL(long) ALL(ulong)

constexpr int third(int x) { return x / 3; }
kernel void constants(device const int*, device int* o, uint i [[thread_position_in_grid]]) {
  constexpr int quotient = third(10), shifted = 3 << 2;
  constexpr short2 halves = short2(8, -4) / short2(2);
  int room[(1 << 3) / 2] = {0};
  const int values[] = {quotient, shifted, (1 << 8) >> 4, halves.y, int(5.9f), int(sizeof(room) / sizeof(int))};
  o[i] = values[i];
}

inline int identity(int x) { return x; }
kernel void constants_without_a_value(device const int* a, device int* o, uint i [[thread_position_in_grid]]) {
  switch (i) {
    case 0: o[i] = 7 / 0; break;
    case 1: o[i] = identity(7 % 0); break;
    case 2: o[i] = int(NAN); break;
    case 3: o[i] = a[i] == 0 ? INT_MIN / -1 : 3; break;
    case 4: o[i] = a[i] + int(1e20f); break;
    default: o[i] = as_type<int>(float(5 / 0)); break;
  }
}

kernel void selected(device const int* a, device const int* b, device int* o, uint i [[thread_position_in_grid]]) {
  const bool none = b[i] == 0 || (a[i] == INT_MIN && b[i] == -1);
  o[i] = select(a[i] / b[i], -1, none);
}
kernel void guarded(device const int* a, device const int* b, device int* o, uint i [[thread_position_in_grid]]) {
  if (b[i] == 0 || (a[i] == INT_MIN && b[i] == -1)) o[i] = -1;
  else o[i] = a[i] / b[i];
}
kernel void chosen(device const int* a, device const int* b, device int* o, uint i [[thread_position_in_grid]]) {
  const int made = a[i] / b[i];
  o[i] = b[i] == 0 || (a[i] == INT_MIN && b[i] == -1) ? -1 : max(made, -1);
}

kernel void functions(device const int* a, device int* o, uint i [[thread_position_in_grid]]) {
  const int x = a[i];
  const int values[] = {rotate(x, 36), rotate(x, 64), extract_bits(x, 0, 8), extract_bits(x, 0, 32), clz(x - x), ctz(x - x), abs(INT_MIN + (x - x))};
  o[i] = values[i];
}

kernel void together(device const int* a, device const int* b, device int* o, uint i [[thread_position_in_grid]],
                     uint lane [[thread_position_in_threadgroup]]) {
  threadgroup int shared[128];
  shared[lane] = a[i] / b[i];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  o[i] = shared[lane ^ 1];
}
