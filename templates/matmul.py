"""Matrix product with simdgroup matrices: 8x8 blocks that a simdgroup holds in its registers.

Simple: one thread an element of the product. Expert: one threadgroup a 64x64 tile; its four simdgroups hold a quarter
of it each, and the operands' blocks pass through threadgroup memory, zeros where the matrices end.
"""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import FLOATS, Case, Kind, Refusal, Script, Stage, Values, expect, run_script

TILE = 64
NAMES = ["a", "b", "rows", "inner", "columns"]

SIMPLE = MetalKernel(
    "matmul_simple",
    input_names=NAMES,
    output_names=["out"],
    source="""
    uint column = thread_position_in_grid.x, row = thread_position_in_grid.y;
    float sum = 0;
    for (uint k = 0; k < uint(inner); ++k)
      sum += float(a[row * uint(inner) + k]) * float(b[k * uint(columns) + column]);
    out[row * uint(columns) + column] = T(sum);
    """,
)
EXPERT = MetalKernel(
    "matmul",
    input_names=NAMES,
    output_names=["out"],
    header="#include <metal_simdgroup_matrix>\n",
    source="""
    // Blocks of 64 rows and 32 columns, and of 32 rows and 64 columns; in the end the whole tile.
    threadgroup float memory[64 * 64];
    threadgroup float *left = memory, *right = memory + 64 * 32;
    uint m = uint(rows), n = uint(columns), depth = uint(inner);
    uint thread_index = thread_index_in_threadgroup;
    uint top = threadgroup_position_in_grid.y * 64, first = threadgroup_position_in_grid.x * 64;
    uint y = simdgroup_index_in_threadgroup / 2 * 32, x = simdgroup_index_in_threadgroup % 2 * 32;
    simdgroup_float8x8 sums[4][4];
    for (uint i = 0; i < 4; ++i)
      for (uint j = 0; j < 4; ++j) sums[i][j] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);

    for (uint start = 0; start < depth; start += 32) {
      for (uint i = thread_index; i < 64 * 32; i += 128) {
        uint r = i / 32, c = i % 32;
        left[i] = top + r < m && start + c < depth ? float(a[(top + r) * depth + start + c]) : 0.0f;
        r = i / 64, c = i % 64;
        right[i] = start + r < depth && first + c < n ? float(b[(start + r) * n + first + c]) : 0.0f;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint k = 0; k < 32; k += 8) {
        simdgroup_float8x8 l[4], r[4];
        #pragma unroll
        for (uint i = 0; i < 4; ++i) {
          simdgroup_load(l[i], left + (y + 8 * i) * 32 + k, 32);
          simdgroup_load(r[i], right + k * 64 + x + 8 * i, 64);
        }
        #pragma unroll
        for (uint i = 0; i < 4; ++i)
          #pragma unroll
          for (uint j = 0; j < 4; ++j) simdgroup_multiply_accumulate(sums[i][j], l[i], r[j], sums[i][j]);
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
    }

    // The tile goes through threadgroup memory too: only what lies inside the product is written.
    #pragma unroll
    for (uint i = 0; i < 4; ++i)
      #pragma unroll
      for (uint j = 0; j < 4; ++j) simdgroup_store(sums[i][j], memory + (y + 8 * i) * 64 + x + 8 * j, 64);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_index; i < 64 * 64; i += 128) {
      uint r = top + i / 64, c = first + i % 64;
      if (r < m && c < n) out[r * n + c] = T(memory[i]);
    }
    """,
)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    """One threadgroup of four simdgroups a tile."""
    rows, inner, columns = check_arguments(a, b)
    outputs = EXPERT(
        inputs={"a": a, "b": b, "rows": rows, "inner": inner, "columns": columns},
        template={"T": a.dtype},
        grid=(-(-columns // TILE) * 128, -(-rows // TILE), 1),
        threadgroup=(128, 1, 1),
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
    sizes=((1, 1, 1), (3, 40, 70), (33, 65, 31)),
    benchmark=((256, 256, 256), (301, 203, 257)),
    refusals=(
        Refusal("a", lambda: matmul(torch.zeros(3), torch.zeros(3, 3))),
        Refusal("b", lambda: matmul(torch.zeros(2, 3), torch.zeros(2, 3))),
        Refusal("b", lambda: matmul(torch.zeros(2, 3), torch.zeros(3, 2, dtype=torch.float16))),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
