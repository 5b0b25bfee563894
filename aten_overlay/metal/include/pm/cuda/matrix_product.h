// Products of simdgroup matrices (see ../simdgroup_matrix.h): exact, by fused multiply-adds of floats in the order of the host's.
// With PM_TENSOR_CORES those of half and bfloat by tensor cores, which add in an order of their own.
#pragma once

namespace pm {
// The lane that has element (row, column), and its neighbor, in Apple's layout.
PM_INLINE uint matrix_lane(uint row, uint column) { return (row & 4) << 2 | (column & 4) << 1 | (row & 3) << 1 | (column >> 1 & 1); }

// What a product takes of its operands, read from where they were loaded rather than exchanged between lanes: the row and the
// two columns of this lane's elements. What is not used costs nothing.
template <class T> struct matrix_operand {
  T row_[8];
  metal::vec<T, 2> columns_[8];
  bool kept_ = false;
  PM_INLINE void forget() { kept_ = false; }
  // Element (row, column) is at p[row * down + column * right].
  template <class P> PM_INLINE void keep(P* p, ulong down, ulong right, uint row, uint column) {
    if (right == 1 && ((reinterpret_cast<ulong>(p) | down * sizeof(T)) & 15) == 0) {
      keep_aligned(p, down, row, column);
    } else {
#pragma unroll
      for (uint i = 0; i < 8; ++i) row_[i] = p[row * down + i * right];
#pragma unroll
      for (uint i = 0; i < 8; ++i)
        for (uint k = 0; k < 2; ++k) columns_[i].v_[k] = p[i * down + (column + k) * right];
    }
    kept_ = true;
  }

 private:
  template <int Bytes> using bytes = uint __attribute__((vector_size(Bytes), may_alias));
  // In vectors, which stay what they are: elements one by one would be read as those of any other matrix.
  template <class P> PM_INLINE void keep_aligned(P* p, ulong down, uint row, uint column) {
    const bytes<16>* from = reinterpret_cast<const bytes<16>*>(p + row * down);
    bytes<16> parts[sizeof(row_) / 16];
#pragma unroll
    for (uint i = 0; i < sizeof(row_) / 16; ++i) parts[i] = from[i];
    __builtin_memcpy(row_, parts, sizeof(row_));
#pragma unroll
    for (uint i = 0; i < 8; ++i) {
      const auto pair = *reinterpret_cast<const bytes<2 * sizeof(T)>*>(p + i * down + column);
      __builtin_memcpy(&columns_[i], &pair, sizeof(pair));
    }
  }
};

template <class T> PM_INLINE uint pair_of_halves(const metal::vec<T, 2>& v) { return __builtin_bit_cast(uint, v.v_); }
template <class A> PM_INLINE void multiply_on_tensor_cores(float (&sum)[4], uint a, uint b) {
  if constexpr (__is_same(A, half)) multiply_halves(sum, a, transpose_halves(b));
  else multiply_bfloats(sum, a, transpose_halves(b));
}
#ifdef PM_TENSOR_CORES
template <class A, class B> inline constexpr bool by_tensor_cores = __is_same(A, B) && (__is_same(A, half) || __is_same(A, bfloat));
#else
template <class A, class B> inline constexpr bool by_tensor_cores = false;
#endif

// d becomes a * b + c.
template <class D, class A, class B, class C> PM_INLINE void multiply_accumulate(D& d, const A& a, const B& b, const C& c) {
  using R = __remove_reference_t(decltype(d.elements_.v_[0]));
  using L = __remove_cv(__remove_reference_t(decltype(a.elements_.v_[0])));
  using T = __remove_cv(__remove_reference_t(decltype(b.elements_.v_[0])));
  const uint lane = pm_lane(), row = matrix_row(lane), column = matrix_column(lane);
  float sum[4] = {float(c.elements_.v_[0]), float(c.elements_.v_[1]), 0.0f, 0.0f};
  if constexpr (by_tensor_cores<L, T>) {
    // Tensor cores have rows in order, four lanes each.
    const uint theirs = matrix_lane(lane >> 2, (lane & 3) * 2), ours = row * 4 + column / 2;
    for (uint k = 0; k < 2; ++k) sum[k] = from_lane(~0u, sum[k], theirs);
    multiply_on_tensor_cores<L>(sum, from_lane(~0u, pair_of_halves(a.elements_), theirs), from_lane(~0u, pair_of_halves(b.elements_), theirs));
    for (uint k = 0; k < 2; ++k) sum[k] = from_lane(~0u, sum[k], ours);
  } else {
    L left[8];
    metal::vec<T, 2> right[8];
    if (a.kept_) {
#pragma unroll
      for (uint j = 0; j < 8; ++j) left[j] = a.row_[j];
    } else {
#pragma unroll
      for (uint j = 0; j < 8; ++j) left[j] = from_lane(~0u, a.elements_.v_[j & 1], matrix_lane(row, j));
    }
    if (b.kept_) {
#pragma unroll
      for (uint j = 0; j < 8; ++j) right[j] = b.columns_[j];
    } else {
#pragma unroll
      for (uint j = 0; j < 8; ++j) right[j] = from_lane(~0u, b.elements_, matrix_lane(j, column));
    }
#pragma unroll
    for (uint j = 0; j < 8; ++j)
      for (uint k = 0; k < 2; ++k) sum[k] = __builtin_fmaf(float(left[j]), float(right[j].v_[k]), sum[k]);
  }
  d.forget();
  d.elements_ = metal::vec<R, 2>(R(sum[0]), R(sum[1]));
}
}  // namespace pm
