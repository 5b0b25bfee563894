// <simd/simd.h> as Metal sees it: other names of the vector and matrix types, which sources share with host code.
#pragma once
#include "matrix.h"
#define PM_SIMD_VECTORS(T) \
  using simd_##T##1 = T; \
  using simd_##T##2 = metal::vec<T, 2>; \
  using simd_##T##3 = metal::vec<T, 3>; \
  using simd_##T##4 = metal::vec<T, 4>; \
  using vector_##T##2 = simd_##T##2; \
  using vector_##T##3 = simd_##T##3; \
  using vector_##T##4 = simd_##T##4;
PM_SIMD_VECTORS(char) PM_SIMD_VECTORS(uchar) PM_SIMD_VECTORS(short) PM_SIMD_VECTORS(ushort) PM_SIMD_VECTORS(int)
PM_SIMD_VECTORS(uint) PM_SIMD_VECTORS(long) PM_SIMD_VECTORS(ulong) PM_SIMD_VECTORS(half) PM_SIMD_VECTORS(float)
#undef PM_SIMD_VECTORS
#define PM_SIMD_MATRIX(T, C, R) \
  using simd_##T##C##x##R = metal::matrix<T, C, R>; \
  using matrix_##T##C##x##R = metal::matrix<T, C, R>;
#define PM_SIMD_MATRICES(T) \
  PM_SIMD_MATRIX(T, 2, 2) PM_SIMD_MATRIX(T, 2, 3) PM_SIMD_MATRIX(T, 2, 4) PM_SIMD_MATRIX(T, 3, 2) PM_SIMD_MATRIX(T, 3, 3) \
  PM_SIMD_MATRIX(T, 3, 4) PM_SIMD_MATRIX(T, 4, 2) PM_SIMD_MATRIX(T, 4, 3) PM_SIMD_MATRIX(T, 4, 4)
PM_SIMD_MATRICES(half) PM_SIMD_MATRICES(float)
#undef PM_SIMD_MATRICES
#undef PM_SIMD_MATRIX
namespace simd {
using namespace metal;
}  // namespace simd
