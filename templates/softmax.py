"""Softmax over the last dimension: exp(x - max) / sum(exp(x - max)).

Simple: one thread a row. Expert: one threadgroup a row, maximum and sum within simdgroups, then between them. Its rows
may lie apart, so that a slice of columns needs no copy.
"""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import FLOATS, Case, Kind, Refusal, Script, Stage, Values, expect, run_script

SIMPLE = MetalKernel(
    "softmax_simple",
    input_names=["x", "rows", "columns"],
    output_names=["out"],
    source="""
    uint row = thread_position_in_grid.x;
    uint n = uint(columns);
    if (row >= uint(rows)) return;
    float top = -INFINITY;
    for (uint i = 0; i < n; ++i) top = max(top, float(x[ulong(row) * n + i]));
    float sum = 0;
    for (uint i = 0; i < n; ++i) sum += exp(float(x[ulong(row) * n + i]) - top);
    for (uint i = 0; i < n; ++i) out[ulong(row) * n + i] = T(exp(float(x[ulong(row) * n + i]) - top) / sum);
    """,
)
EXPERT = MetalKernel(
    "softmax",
    input_names=["x", "columns"],
    output_names=["out"],
    ensure_row_contiguous=False,
    source="""
    threadgroup float tops[32], sums[32];
    uint n = uint(columns);
    uint row = threadgroup_position_in_grid.x;
    auto from = x + long(row) * x_strides[0];
    device T* to = out + ulong(row) * n;
    uint first = thread_position_in_threadgroup.x, step = threads_per_threadgroup.x;
    uint lane = thread_index_in_simdgroup;

    float top = -INFINITY;
    for (uint i = first; i < n; i += step) top = max(top, float(from[i]));
    top = simd_max(top);
    if (lane == 0) tops[simdgroup_index_in_threadgroup] = top;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    top = simd_max(lane < simdgroups_per_threadgroup ? tops[lane] : -INFINITY);

    float sum = 0;
    for (uint i = first; i < n; i += step) sum += exp(float(from[i]) - top);
    sum = simd_sum(sum);
    if (lane == 0) sums[simdgroup_index_in_threadgroup] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    sum = simd_sum(lane < simdgroups_per_threadgroup ? sums[lane] : 0.0f);

    float scale = 1.0f / sum;
    for (uint i = first; i < n; i += step) to[i] = T(exp(float(from[i]) - top) * scale);
    """,
)


def softmax(x: Tensor) -> Tensor:
    """One threadgroup a row. Copies only where the rows of `x` are not evenly spaced stretches of memory."""
    check_arguments(x)
    rows = x if x.dim() == 2 and x.stride(1) == 1 else x.reshape(-1, x.shape[-1]).contiguous()
    columns = rows.shape[1]
    group = min(256, max(32, columns // 16 // 32 * 32))
    outputs = EXPERT(
        inputs={"x": rows, "columns": columns},
        template={"T": x.dtype},
        grid=(rows.shape[0] * group, 1, 1),
        threadgroup=(group, 1, 1),
        output_shapes={"out": x.shape},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


def softmax_simple(x: Tensor) -> Tensor:
    """One thread a row."""
    check_arguments(x)
    rows = x.numel() // x.shape[-1]
    outputs = SIMPLE(
        inputs={"x": x, "rows": rows, "columns": x.shape[-1]},
        template={"T": x.dtype},
        grid=(rows, 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes={"out": x.shape},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


def check_arguments(x: Tensor) -> None:
    expect(x.dtype in FLOATS, f"x has to be float, half or bfloat16, not {x.dtype}")
    expect(x.dim() > 0 and x.shape[-1] > 0, f"x has to have a last dimension with elements, not shape {tuple(x.shape)}")


def reference(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def make_inputs(case: Case) -> Values:
    return {"x": case.uniform(*case.size, low=-60, high=60)}


SCRIPT = Script(
    summary="softmax over the last dimension, safe for large values",
    kind=Kind.ROW_WISE,
    stages=(Stage("softmax", softmax, reference, ("x",), simple=softmax_simple),),
    inputs=make_inputs,
    sizes=((1, 1), (3, 33), (2, 2, 1030), (0, 8)),
    benchmark=((4096, 1024), (1024, 4095)),
    refusals=(
        Refusal("x", lambda: softmax(torch.zeros(2, 3, dtype=torch.int32))),
        Refusal("x", lambda: softmax(torch.zeros(3, 0))),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
