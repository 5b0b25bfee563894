// Products of simdgroup matrices, of which each lane has two elements (see ../simdgroup_matrix.h).
#pragma once
#include "internal.h"

namespace pm {
// A simdgroup's elements in the order of its lanes are 4x4 blocks in the order of rows, with rows in each.
using matrix_block = float __attribute__((vector_size(64)));
using block_row = float __attribute__((vector_size(16)));
// Adds column J of a block times row J of another one, which is read from memory into every row: that takes no shuffle.
template <int J> PM_INLINE void add_product(matrix_block& sum, matrix_block a, const block_row* b) {
  const matrix_block column = __builtin_shufflevector(
      a, a, J, J, J, J, J + 4, J + 4, J + 4, J + 4, J + 8, J + 8, J + 8, J + 8, J + 12, J + 12, J + 12, J + 12);
  const matrix_block row = __builtin_shufflevector(b[J], b[J], 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3);
  sum += column * row;
}
// The third matrix becomes the product of the others added to it.
inline void multiply_step(pm_exchange* x, uint simd) {
  const auto a = reinterpret_cast<const matrix_block*>(x->matrices[0] + simd * 64);
  const auto b = reinterpret_cast<const block_row*>(x->matrices[1] + simd * 64);
  const auto c = reinterpret_cast<matrix_block*>(x->matrices[2] + simd * 64);
  for (uint place = 0; place < 4; ++place) {
    matrix_block sum = c[place];
    for (uint k = 0; k < 2; ++k) {
      const matrix_block left = a[(place & 2) + k];
      const block_row* right = b + 4 * (2 * k + (place & 1));
      add_product<0>(sum, left, right);
      add_product<1>(sum, left, right);
      add_product<2>(sum, left, right);
      add_product<3>(sum, left, right);
    }
    c[place] = sum;
  }
}
// What another target keeps of a matrix that was loaded.
template <class T> struct matrix_operand {
  PM_INLINE void forget() {}
  PM_INLINE void keep(const T*, ulong, ulong, uint, uint) {}
};
// d becomes a * b + c.
template <class D, class A, class B, class C> PM_INLINE void multiply_accumulate(D& d, const A& a, const B& b, const C& c) {
  using T = __remove_reference_t(decltype(d.elements_.v_[0]));
  pm_exchange* x = pm_simd_begin(pm::multiply_step, 0);
  const ulong first = ulong(pm_index()) * 2;
  // Neighbors in memory one right after the other: a loop over lanes then stores them together.
  for (uint k = 0; k < 2; ++k) x->matrices[0][first + k] = float(a.elements_.v_[k]);
  for (uint k = 0; k < 2; ++k) x->matrices[1][first + k] = float(b.elements_.v_[k]);
  for (uint k = 0; k < 2; ++k) x->matrices[2][first + k] = float(c.elements_.v_[k]);
  pm_simd_wait(pm::multiply_step);
  for (uint k = 0; k < 2; ++k) {
    const auto sum = reinterpret_cast<const unsigned char*>(x->matrices[2] + first + k);
    d.elements_.v_[k] = T(pm::load<float>(sum));
  }
}
}  // namespace pm
