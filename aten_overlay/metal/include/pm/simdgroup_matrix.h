// <metal_simdgroup_matrix>: 8x8 matrices spread over a simdgroup, two neighboring elements a lane (MSL section 6.9.4).
#pragma once

namespace pm {
PM_INLINE uint matrix_row(uint lane) { return ((lane / 4) & 4) + (lane / 2) % 4; }
PM_INLINE uint matrix_column(uint lane) { return ((lane / 4) & 2) * 2 + (lane % 2) * 2; }
// A simdgroup's elements in the order of its lanes are 4x4 blocks in the order of rows, with rows in each.
using matrix_block = float __attribute__((vector_size(64)));
// Adds column J of a block times row J of another one.
template <int J> PM_INLINE void add_product(matrix_block& sum, matrix_block a, matrix_block b) {
  const matrix_block column = __builtin_shufflevector(
      a, a, J, J, J, J, J + 4, J + 4, J + 4, J + 4, J + 8, J + 8, J + 8, J + 8, J + 12, J + 12, J + 12, J + 12);
  constexpr int R = 4 * J;
  const matrix_block row = __builtin_shufflevector(
      b, b, R, R + 1, R + 2, R + 3, R, R + 1, R + 2, R + 3, R, R + 1, R + 2, R + 3, R, R + 1, R + 2, R + 3);
  sum += column * row;
}
// The third matrix becomes the product of the others added to it.
inline void multiply_step(pm_exchange* x, uint simd) {
  const auto a = reinterpret_cast<const matrix_block*>(x->matrices[0] + simd * 64);
  const auto b = reinterpret_cast<const matrix_block*>(x->matrices[1] + simd * 64);
  const auto c = reinterpret_cast<matrix_block*>(x->matrices[2] + simd * 64);
  for (uint place = 0; place < 4; ++place) {
    matrix_block sum = c[place];
    for (uint k = 0; k < 2; ++k) {
      const matrix_block left = a[(place & 2) + k], right = b[2 * k + (place & 1)];
      add_product<0>(sum, left, right);
      add_product<1>(sum, left, right);
      add_product<2>(sum, left, right);
      add_product<3>(sum, left, right);
    }
    c[place] = sum;
  }
}
}  // namespace pm

namespace metal {
template <class T, int Columns, int Rows> struct simdgroup_matrix {
  static_assert(Columns == 8 && Rows == 8, "simdgroup matrices are 8x8");
  vec<T, 2> elements_;
  simdgroup_matrix() = default;
  PM_INLINE explicit simdgroup_matrix(T diagonal) {
    const uint r = pm::matrix_row(pm_lane()), c = pm::matrix_column(pm_lane());
    elements_ = vec<T, 2>(r == c ? diagonal : T(0), r == c + 1 ? diagonal : T(0));
  }
  PM_INLINE vec<T, 2>& thread_elements() { return elements_; }
  PM_INLINE const vec<T, 2>& thread_elements() const { return elements_; }
};
using simdgroup_float8x8 = simdgroup_matrix<float, 8, 8>;
using simdgroup_half8x8 = simdgroup_matrix<half, 8, 8>;
using simdgroup_bfloat8x8 = simdgroup_matrix<bfloat, 8, 8>;

template <class T, int C = 8, int R = C> PM_INLINE simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T v) {
  simdgroup_matrix<T, C, R> m;
  m.elements_ = vec<T, 2>(v);
  return m;
}
namespace detail_matrix {
template <class T> using pair_t = conditional_t<sizeof(T) == 2, uint, ulong>;
template <class T, class P> PM_INLINE P* at(P* p, ulong stride, ulong2 origin, bool transposed, uint k) {
  const ulong r = pm::matrix_row(pm_lane()), c = pm::matrix_column(pm_lane()) + k;
  return p + (origin.y + (transposed ? c : r)) * stride + origin.x + (transposed ? r : c);
}
}  // namespace detail_matrix
template <class T>
PM_INLINE void simdgroup_load(simdgroup_matrix<T, 8, 8>& m, const T* p, ulong stride = 8, ulong2 origin = ulong2(0), bool transposed = false) {
  simdgroup_barrier(mem_flags::mem_none);
  if (transposed) {
    for (uint k = 0; k < 2; ++k) m.elements_.v_[k] = *detail_matrix::at<T>(p, stride, origin, true, k);
  } else {
    // Both elements at once: a loop over lanes then gathers half as much.
    detail_matrix::pair_t<T> both;
    __builtin_memcpy(&both, detail_matrix::at<T>(p, stride, origin, false, 0), sizeof(both));
    __builtin_memcpy(&m.elements_, &both, sizeof(both));
  }
}
template <class T>
PM_INLINE void simdgroup_store(const simdgroup_matrix<T, 8, 8>& m, T* p, ulong stride = 8, ulong2 origin = ulong2(0), bool transposed = false) {
  for (uint k = 0; k < 2; ++k) *detail_matrix::at<T>(p, stride, origin, transposed, k) = m.elements_.v_[k];
  simdgroup_barrier(mem_flags::mem_none);
}
template <class D, class A, class B, class C>
PM_INLINE void simdgroup_multiply_accumulate(
    simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a, const simdgroup_matrix<B, 8, 8>& b, const simdgroup_matrix<C, 8, 8>& c) {
  pm_exchange* x = pm_simd_begin(pm::multiply_step, 0);
  const ulong first = ulong(pm_index()) * 2;
  // Neighbors in memory one right after the other: a loop over lanes then stores them together.
  for (uint k = 0; k < 2; ++k) x->matrices[0][first + k] = float(a.elements_.v_[k]);
  for (uint k = 0; k < 2; ++k) x->matrices[1][first + k] = float(b.elements_.v_[k]);
  for (uint k = 0; k < 2; ++k) x->matrices[2][first + k] = float(c.elements_.v_[k]);
  pm_simd_wait(pm::multiply_step);
  for (uint k = 0; k < 2; ++k) {
    const auto sum = reinterpret_cast<const unsigned char*>(x->matrices[2] + first + k);
    d.elements_.v_[k] = D(pm::load<float>(sum));
  }
}
template <class D, class A, class B>
PM_INLINE void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a, const simdgroup_matrix<B, 8, 8>& b) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D, 8, 8>(D(0)));
}
template <class T>
PM_INLINE simdgroup_matrix<T, 8, 8> operator*(const simdgroup_matrix<T, 8, 8>& a, const simdgroup_matrix<T, 8, 8>& b) {
  simdgroup_matrix<T, 8, 8> d;
  simdgroup_multiply(d, a, b);
  return d;
}
}  // namespace metal
