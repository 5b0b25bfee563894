// <metal_simdgroup_matrix>: 8x8 matrices spread over a simdgroup, two neighboring elements a lane (MSL section 6.9.4).
#pragma once

namespace pm {
PM_INLINE uint matrix_row(uint lane) { return ((lane / 4) & 4) + (lane / 2) % 4; }
PM_INLINE uint matrix_column(uint lane) { return ((lane / 4) & 2) * 2 + (lane % 2) * 2; }
PM_INLINE uint matrix_lane(uint row, uint column) {
  return (row & 4) * 4 + (column & 4) * 2 + (row & 3) * 2 + ((column / 2) & 1);
}

// What a lane has of d = a * b + c.
template <class A, class B, class C> struct Factors {
  metal::vec<A, 2> a;
  metal::vec<B, 2> b;
  metal::vec<C, 2> c;
};
// All lanes of a simdgroup at once, once for all calls: inlined into each lane it would be most of a kernel.
template <class D, class A, class B, class C> void multiply_step(pm_exchange* x, uint simd) {
  using In = Factors<A, B, C>;
  using Out = metal::vec<D, 2>;
  float a[8][8], b[8][8], d[8][8];
  for (uint lane = 0; lane < 32; ++lane) {
    In in;
    __builtin_memcpy(&in, x->inputs + offset_of<In>(simd * 32 + lane), sizeof(In));
    const uint r = matrix_row(lane), c = matrix_column(lane);
    for (uint k = 0; k < 2; ++k) {
      a[r][c + k] = float(in.a.v_[k]);
      b[r][c + k] = float(in.b.v_[k]);
      d[r][c + k] = float(in.c.v_[k]);
    }
  }
  for (uint r = 0; r < 8; ++r)
    for (uint j = 0; j < 8; ++j)
      for (uint c = 0; c < 8; ++c) d[r][c] += a[r][j] * b[j][c];
  for (uint lane = 0; lane < 32; ++lane) {
    const uint r = matrix_row(lane), c = matrix_column(lane);
    const Out out = {static_cast<D>(d[r][c]), static_cast<D>(d[r][c + 1])};
    __builtin_memcpy(x->outputs + offset_of<Out>(simd * 32 + lane), &out, sizeof(Out));
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
template <class T, class P> PM_INLINE P* at(P* p, ulong stride, ulong2 origin, bool transposed, uint k) {
  const ulong r = pm::matrix_row(pm_lane()), c = pm::matrix_column(pm_lane()) + k;
  return p + (origin.y + (transposed ? c : r)) * stride + origin.x + (transposed ? r : c);
}
}  // namespace detail_matrix
template <class T>
PM_INLINE void simdgroup_load(simdgroup_matrix<T, 8, 8>& m, const T* p, ulong stride = 8, ulong2 origin = ulong2(0), bool transposed = false) {
  simdgroup_barrier(mem_flags::mem_none);
  for (uint k = 0; k < 2; ++k) m.elements_.v_[k] = *detail_matrix::at<T>(p, stride, origin, transposed, k);
}
template <class T>
PM_INLINE void simdgroup_store(const simdgroup_matrix<T, 8, 8>& m, T* p, ulong stride = 8, ulong2 origin = ulong2(0), bool transposed = false) {
  for (uint k = 0; k < 2; ++k) *detail_matrix::at<T>(p, stride, origin, transposed, k) = m.elements_.v_[k];
  simdgroup_barrier(mem_flags::mem_none);
}
template <class D, class A, class B, class C>
PM_INLINE void simdgroup_multiply_accumulate(
    simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a, const simdgroup_matrix<B, 8, 8>& b, const simdgroup_matrix<C, 8, 8>& c) {
  const pm::Factors<A, B, C> mine{a.elements_, b.elements_, c.elements_};
  d.elements_ = pm::read_own_output<vec<D, 2>>(pm::exchange(mine, pm::multiply_step<D, A, B, C>));
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
