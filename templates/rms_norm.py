"""RMSNorm over the last dimension: x / sqrt(mean(x * x) + eps) * weight.

Simple: one thread a row. Expert: one threadgroup a row, four elements a load, sums within simdgroups.
"""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import FLOATS, Case, Kind, Refusal, Script, Stage, Values, expect, run_script

SIMPLE = MetalKernel(
    "rms_norm_simple",
    input_names=["x", "weight", "eps", "rows", "columns"],
    output_names=["out"],
    source="""
    uint row = thread_position_in_grid.x;
    uint n = uint(columns);
    if (row >= uint(rows)) return;
    float squares = 0;
    for (uint i = 0; i < n; ++i) {
      float v = float(x[ulong(row) * n + i]);
      squares += v * v;
    }
    float scale = rsqrt(squares / float(n) + eps);
    for (uint i = 0; i < n; ++i) out[ulong(row) * n + i] = T(float(x[ulong(row) * n + i]) * scale * float(weight[i]));
    """,
)
EXPERT = MetalKernel(
    "rms_norm",
    input_names=["x", "weight", "eps", "columns"],
    output_names=["out"],
    source="""
    threadgroup float partial[32];
    uint n = uint(columns);
    ulong start = ulong(threadgroup_position_in_grid.x) * n;
    uint lane = thread_position_in_threadgroup.x, lanes = threads_per_threadgroup.x;
    float squares = 0;
    if (WIDE) {
      const device vec<T, 4>* row = (const device vec<T, 4>*)(x + start);
      for (uint i = lane; i < n / 4; i += lanes) {
        float4 v = float4(row[i]);
        squares += dot(v, v);
      }
    } else {
      for (uint i = lane; i < n; i += lanes) {
        float v = float(x[start + i]);
        squares += v * v;
      }
    }
    squares = simd_sum(squares);
    if (thread_index_in_simdgroup == 0) partial[simdgroup_index_in_threadgroup] = squares;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint other = thread_index_in_simdgroup;
    squares = simd_sum(other < simdgroups_per_threadgroup ? partial[other] : 0.0f);
    float scale = rsqrt(squares / float(n) + eps);
    if (WIDE) {
      const device vec<T, 4>* row = (const device vec<T, 4>*)(x + start);
      const device vec<T, 4>* gain = (const device vec<T, 4>*)weight;
      device vec<T, 4>* to = (device vec<T, 4>*)(out + start);
      for (uint i = lane; i < n / 4; i += lanes) to[i] = vec<T, 4>(float4(row[i]) * scale * float4(gain[i]));
    } else {
      for (uint i = lane; i < n; i += lanes) out[start + i] = T(float(x[start + i]) * scale * float(weight[i]));
    }
    """,
)


def rms_norm(x: Tensor, weight: Tensor, eps: float = 1e-5) -> Tensor:
    """One threadgroup a row, of one thread for every sixteen elements."""
    check_arguments(x, weight)
    x, weight = x.contiguous(), weight.contiguous()
    columns = x.shape[-1]
    rows = x.numel() // columns
    group = group_size(columns)
    outputs = EXPERT(
        inputs={"x": x, "weight": weight, "eps": eps, "columns": columns},
        template={"T": x.dtype, "WIDE": is_wide(x, columns) and is_wide(weight, columns)},
        grid=(rows * group, 1, 1),
        threadgroup=(group, 1, 1),
        output_shapes={"out": x.shape},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


def rms_norm_simple(x: Tensor, weight: Tensor, eps: float = 1e-5) -> Tensor:
    """One thread a row."""
    check_arguments(x, weight)
    columns = x.shape[-1]
    rows = x.numel() // columns
    outputs = SIMPLE(
        inputs={"x": x, "weight": weight, "eps": eps, "rows": rows, "columns": columns},
        template={"T": x.dtype},
        grid=(rows, 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes={"out": x.shape},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


def check_arguments(x: Tensor, weight: Tensor) -> None:
    expect(x.dtype in FLOATS, f"x has to be float, half or bfloat16, not {x.dtype}")
    expect(x.dim() > 0 and x.shape[-1] > 0, f"x has to have a last dimension with elements, not shape {tuple(x.shape)}")
    expect(weight.dtype == x.dtype, f"weight has to be {x.dtype} as x is, not {weight.dtype}")
    expect(weight.shape == x.shape[-1:], f"weight has to have {x.shape[-1]} elements, not shape {tuple(weight.shape)}")


def group_size(columns: int) -> int:
    """Whole simdgroups, at most eight of them."""
    return min(256, max(32, columns // 16 // 32 * 32))


def is_wide(x: Tensor, columns: int) -> bool:
    """Whether every row starts where four elements may be loaded at once."""
    return columns % 4 == 0 and x.numel() >= 8 and x.storage_offset() % 4 == 0


def reference(x: Tensor, weight: Tensor, eps: float = 1e-5) -> Tensor:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, eps)


def make_inputs(case: Case) -> Values:
    return {"x": case.normal(*case.size), "weight": case.normal(case.size[-1]), "eps": 1e-5}


SCRIPT = Script(
    summary="RMSNorm over the last dimension",
    kind=Kind.ROW_WISE,
    stages=(Stage("rms_norm", rms_norm, reference, ("x", "weight", "eps"), simple=rms_norm_simple),),
    inputs=make_inputs,
    sizes=((1, 1), (3, 33), (2, 2, 1028), (0, 8)),
    benchmark=((4096, 1024), (1024, 4095)),
    refusals=(
        Refusal("x", lambda: rms_norm(torch.zeros(2, 3, dtype=torch.int32), torch.zeros(3))),
        Refusal("x", lambda: rms_norm(torch.zeros(2, 0), torch.zeros(0))),
        Refusal("weight", lambda: rms_norm(torch.zeros(2, 3), torch.zeros(4))),
        Refusal("weight", lambda: rms_norm(torch.zeros(2, 3), torch.zeros(3, dtype=torch.float16))),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
