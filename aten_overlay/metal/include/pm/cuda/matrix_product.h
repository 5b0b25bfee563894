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
    const ulong address = reinterpret_cast<ulong>(p);
    if (right == 1 && ((address | down * sizeof(T)) & (8 * sizeof(T) - 1) & 15) == 0) {
      const void* from = __builtin_assume_aligned(p + row * down, sizeof(T) == 4 ? 16 : 8 * sizeof(T));
      __builtin_memcpy(row_, from, sizeof(row_));
#pragma unroll
      for (uint i = 0; i < 8; ++i)
        __builtin_memcpy(&columns_[i], __builtin_assume_aligned(p + i * down + column, 2 * sizeof(T)), 2 * sizeof(T));
    } else {
#pragma unroll
      for (uint i = 0; i < 8; ++i) row_[i] = p[row * down + i * right];
#pragma unroll
      for (uint i = 0; i < 8; ++i)
        for (uint k = 0; k < 2; ++k) columns_[i].v_[k] = p[i * down + (column + k) * right];
    }
    kept_ = true;
  }
};

template <class T> PM_INLINE uint pair_of_halves(const metal::vec<T, 2>& v) { return __builtin_bit_cast(uint, v.v_); }
// The rows of an accumulator that tensor cores multiply are 16: half of them is left empty.
template <class A> PM_INLINE void multiply_on_tensor_cores(float (&sum)[4], uint a, uint b) {
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %0;" : "+r"(b));
  if constexpr (__is_same(A, half))
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a), "r"(0), "r"(b));
  else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]) : "r"(a), "r"(0), "r"(b));
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
