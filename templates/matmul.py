"""Matrix product with simdgroup matrices: 8x8 blocks that a simdgroup holds in its registers.

Simple: one thread an element of the product. Expert: one simdgroup a 32x32 tile. It loads 8x8 blocks of the operands
from device memory; only what remains of the inner length, and small matrices, pass through threadgroup memory, with
zeros where they end.
"""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import FLOATS, Case, Kind, Refusal, Script, Stage, Values, expect, run_script

TILE = 32
NAMES = ["a", "b", "rows", "inner", "columns"]

SIMPLE = MetalKernel(
    "matmul_simple",
    input_names=NAMES,
    output_names=["out"],
    source="""
    uint column = thread_position_in_grid.x, row = thread_position_in_grid.y;
    float sum = 0;
    for (uint k = 0; k < uint(inner); ++k)
      sum += float(a[ulong(row) * uint(inner) + k]) * float(b[ulong(k) * uint(columns) + column]);
    out[ulong(row) * uint(columns) + column] = T(sum);
    """,
)
EXPERT = MetalKernel(
    "matmul",
    input_names=NAMES,
    output_names=["out"],
    header="""
#include <metal_simdgroup_matrix>

// A block as floats: each thread has the same elements of a matrix of any type.
template <typename T>
void load_block(thread simdgroup_float8x8& block, device const T* from, uint row) {
  simdgroup_matrix<T, 8, 8> loaded;
  simdgroup_load(loaded, from, row);
  block.thread_elements() = float2(loaded.thread_elements());
}
inline void load_block(thread simdgroup_float8x8& block, device const float* from, uint row) {
  simdgroup_load(block, from, row);
}
inline void load_block(thread simdgroup_float8x8& block, threadgroup const float* from, uint row) {
  simdgroup_load(block, from, row);
}

// Adds the product of 32 rows of 8 numbers and 8 rows of 32 numbers to a tile.
template <typename Left, typename Right>
void multiply(thread simdgroup_float8x8 (&sums)[4][4], Left left, uint left_row, Right right, uint right_row) {
  simdgroup_float8x8 l[4], r[4];
  #pragma unroll
  for (uint i = 0; i < 4; ++i) {
    load_block(l[i], left + 8 * i * left_row, left_row);
    load_block(r[i], right + 8 * i, right_row);
  }
  #pragma unroll
  for (uint i = 0; i < 4; ++i)
    #pragma unroll
    for (uint j = 0; j < 4; ++j) simdgroup_multiply_accumulate(sums[i][j], l[i], r[j], sums[i][j]);
}
""",
    source="""
    // 32 rows and 8 columns, then 8 rows and 32 columns; in the end the whole tile.
    threadgroup float memory[32 * 32];
    threadgroup float *left = memory, *right = memory + 32 * 8;
    uint m = uint(rows), n = uint(columns), depth = uint(inner), lane = thread_index_in_simdgroup;
    uint row = threadgroup_position_in_grid.y * 32, column = threadgroup_position_in_grid.x * 32;
    // The last tiles begin earlier, so that they end where the matrices do.
    bool fits = m >= 32 && n >= 32;
    uint top = fits ? min(row, m - 32) : row, first = fits ? min(column, n - 32) : column;
    simdgroup_float8x8 sums[4][4];
    for (uint i = 0; i < 4; ++i)
      for (uint j = 0; j < 4; ++j) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);

    uint whole = fits ? depth / 16 * 16 : 0;
    for (uint start = 0; start < whole; start += 16)
      #pragma unroll
      for (uint k = start; k < start + 16; k += 8)
        multiply(sums, a + ulong(top) * depth + k, depth, b + ulong(k) * n + first, n);
    for (uint start = whole; start < depth; start += 8) {
      for (uint i = lane; i < 32 * 8; i += 32) {
        uint r = top + i / 8, c = start + i % 8;
        left[i] = r < m && c < depth ? float(a[ulong(r) * depth + c]) : 0.0f;
        r = start + i / 32, c = first + i % 32;
        right[i] = r < depth && c < n ? float(b[ulong(r) * n + c]) : 0.0f;
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
      multiply(sums, left, 8, right, 32);
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }

    // Through threadgroup memory: a tile writes what lies inside the product and belongs to no other tile.
    #pragma unroll
    for (uint i = 0; i < 4; ++i)
      #pragma unroll
      for (uint j = 0; j < 4; ++j) simdgroup_store(sums[i][j], memory + 8 * i * 32 + 8 * j, 32);
    simdgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = lane; i < 32 * 32; i += 32) {
      uint r = top + i / 32, c = first + i % 32;
      if (r >= row && r < m && c >= column && c < n) out[ulong(r) * n + c] = T(memory[i]);
    }
    """,
)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """One simdgroup a tile."""
    rows, inner, columns = check_arguments(a, b)
    outputs = EXPERT(
        inputs={"a": a, "b": b, "rows": rows, "inner": inner, "columns": columns},
        template={"T": a.dtype},
        grid=(-(-columns // TILE) * 32, -(-rows // TILE), 1),
        threadgroup=(32, 1, 1),
        output_shapes={"out": (rows, columns)},
        output_dtypes={"out": a.dtype},
    )
    return outputs["out"]


def matmul_simple(a: Tensor, b: Tensor) -> Tensor:
    """One thread an element."""
    rows, inner, columns = check_arguments(a, b)
    outputs = SIMPLE(
        inputs={"a": a, "b": b, "rows": rows, "inner": inner, "columns": columns},
        template={"T": a.dtype},
        grid=(columns, rows, 1),
        threadgroup=(32, 8, 1),
        output_shapes={"out": (rows, columns)},
        output_dtypes={"out": a.dtype},
    )
    return outputs["out"]


def check_arguments(a: Tensor, b: Tensor) -> tuple[int, int, int]:
    """Rows, inner length and columns."""
    expect(a.dtype in FLOATS, f"a has to be float, half or bfloat16, not {a.dtype}")
    expect(b.dtype == a.dtype, f"b has to be {a.dtype} as a is, not {b.dtype}")
    expect(a.dim() == 2, f"a has to be a matrix, not of shape {tuple(a.shape)}")
    expect(b.dim() == 2, f"b has to be a matrix, not of shape {tuple(b.shape)}")
    expect(b.shape[0] == a.shape[1], f"b has to have {a.shape[1]} rows, not {b.shape[0]}")
    return a.shape[0], a.shape[1], b.shape[1]


def make_inputs(case: Case) -> Values:
    rows, inner, columns = case.size
    return {"a": case.normal(rows, inner), "b": case.normal(inner, columns, seed=1)}


SCRIPT = Script(
    summary="matrix product with simdgroup matrices",
    kind=Kind.MATRIX,
    stages=(Stage("matmul", matmul, torch.matmul, ("a", "b"), simple=matmul_simple),),
    inputs=make_inputs,
    sizes=((1, 1, 1), (3, 40, 70), (33, 37, 71)),
    benchmark=((256, 256, 256), (301, 203, 257)),
    refusals=(
        Refusal("a", lambda: matmul(torch.zeros(3), torch.zeros(3, 3))),
        Refusal("b", lambda: matmul(torch.zeros(2, 3), torch.zeros(2, 3))),
        Refusal("b", lambda: matmul(torch.zeros(2, 3), torch.zeros(3, 2, dtype=torch.float16))),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
