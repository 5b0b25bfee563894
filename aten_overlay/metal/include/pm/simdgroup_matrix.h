// <metal_simdgroup_matrix>: 8x8 matrices spread over a simdgroup, two neighboring elements a lane (MSL section 6.9.4).
#pragma once

namespace metal {
template <class T, int Columns, int Rows> struct simdgroup_matrix : pm::matrix_operand<T> {
  static_assert(Columns == 8 && Rows == 8, "simdgroup matrices are 8x8");
  using storage_type = vec<T, 2>;
  storage_type elements_;
  simdgroup_matrix() = default;
  PM_INLINE explicit simdgroup_matrix(T diagonal) {
    const uint r = pm::matrix_row(pm_lane()), c = pm::matrix_column(pm_lane());
    elements_ = vec<T, 2>(r == c ? diagonal : T(0), r == c + 1 ? diagonal : T(0));
  }
  PM_INLINE storage_type& thread_elements() {
    this->forget();
    return elements_;
  }
  PM_INLINE const storage_type& thread_elements() const { return elements_; }
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
  m.keep(p + origin.y * stride + origin.x, transposed ? 1 : stride, transposed ? stride : 1, pm::matrix_row(pm_lane()), pm::matrix_column(pm_lane()));
}
template <class T>
PM_INLINE void simdgroup_store(const simdgroup_matrix<T, 8, 8>& m, T* p, ulong stride = 8, ulong2 origin = ulong2(0), bool transposed = false) {
  for (uint k = 0; k < 2; ++k) *detail_matrix::at<T>(p, stride, origin, transposed, k) = m.elements_.v_[k];
  simdgroup_barrier(mem_flags::mem_none);
}
template <class D, class A, class B, class C>
PM_INLINE void simdgroup_multiply_accumulate(
    simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a, const simdgroup_matrix<B, 8, 8>& b, const simdgroup_matrix<C, 8, 8>& c) {
  pm::multiply_accumulate(d, a, b, c);
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
