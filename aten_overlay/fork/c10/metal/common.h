// What Metal and host code agree on: element type codes and launch constants.
#pragma once

#ifdef __METAL__
#include <metal_stdlib>
#define C10_METAL_CONSTEXPR constant constexpr
#else
#define C10_METAL_CONSTEXPR constexpr
#endif

// The codes are those of c10::ScalarType; the last column is the Metal type.
#define C10_METAL_ALL_TYPES_FUNCTOR(_) \
  _(Byte, 0, uchar)                    \
  _(Char, 1, char)                     \
  _(Short, 2, short)                   \
  _(Int, 3, int)                       \
  _(Long, 4, long)                     \
  _(Half, 5, half)                     \
  _(Float, 6, float)                   \
  _(ComplexHalf, 8, half2)             \
  _(ComplexFloat, 9, float2)           \
  _(Bool, 11, bool)                    \
  _(BFloat16, 15, bfloat)

namespace c10 {
namespace metal {

C10_METAL_CONSTEXPR unsigned max_ndim = 16;
C10_METAL_CONSTEXPR unsigned simdgroup_size = 32;
// Elements that one thread of a dense elementwise kernel computes.
C10_METAL_CONSTEXPR unsigned ILP_PER_THREAD = 4;

template <typename T>
inline T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

enum class ScalarType {
#define DEFINE_TYPE_CODE(name, code, type) name = code,
  C10_METAL_ALL_TYPES_FUNCTOR(DEFINE_TYPE_CODE)
#undef DEFINE_TYPE_CODE
};

} // namespace metal
} // namespace c10
