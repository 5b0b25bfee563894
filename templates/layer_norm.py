"""LayerNorm over the last dimension: (x - mean) / sqrt(variance + eps) * weight + bias.

The variance is the mean square of what is left of the mean, which keeps it exact where the mean is large. Simple: one
thread a row. Expert: one threadgroup a row, and sums that every lane gets.
"""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import FLOATS, Case, Kind, Refusal, Script, Stage, Values, expect, run_script

NAMES = ["x", "weight", "bias", "eps", "rows", "columns"]

SIMPLE = MetalKernel(
    "layer_norm_simple",
    input_names=NAMES,
    output_names=["out"],
    source="""
    uint row = thread_position_in_grid.x;
    uint n = uint(columns);
    if (row >= uint(rows)) return;
    float sum = 0;
    for (uint i = 0; i < n; ++i) sum += float(x[ulong(row) * n + i]);
    float mean = sum / float(n);
    float squares = 0;
    for (uint i = 0; i < n; ++i) {
      float centered = float(x[ulong(row) * n + i]) - mean;
      squares += centered * centered;
    }
    float scale = rsqrt(squares / float(n) + eps);
    for (uint i = 0; i < n; ++i)
      out[ulong(row) * n + i] = T((float(x[ulong(row) * n + i]) - mean) * scale * float(weight[i]) + float(bias[i]));
    """,
)
EXPERT = MetalKernel(
    "layer_norm",
    input_names=NAMES,
    output_names=["out"],
    header="""
    // The sum over a threadgroup, in every lane of it. `partial` holds one number a simdgroup, and no other sum's.
    inline float sum_group(float v, threadgroup float* partial, uint lane, uint simdgroup, uint simdgroups) {
      v = metal::simd_sum(v);
      if (lane == 0) partial[simdgroup] = v;
      metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
      return metal::simd_sum(lane < simdgroups ? partial[lane] : 0.0f);
    }
    """,
    source="""
    threadgroup float partial[2 * 32];
    uint n = uint(columns);
    uint row = threadgroup_position_in_grid.x;
    if (row >= uint(rows)) return;
    auto from = x + ulong(row) * n;
    device T* to = out + ulong(row) * n;
    uint first = thread_position_in_threadgroup.x, step = threads_per_threadgroup.x;
    uint lane = thread_index_in_simdgroup;
    uint simdgroup = simdgroup_index_in_threadgroup, simdgroups = simdgroups_per_threadgroup;

    float sum = 0;
    for (uint i = first; i < n; i += step) sum += float(from[i]);
    float mean = sum_group(sum, partial, lane, simdgroup, simdgroups) / float(n);
    float squares = 0;
    for (uint i = first; i < n; i += step) {
      float centered = float(from[i]) - mean;
      squares += centered * centered;
    }
    float scale = rsqrt(sum_group(squares, partial + 32, lane, simdgroup, simdgroups) / float(n) + eps);
    for (uint i = first; i < n; i += step)
      to[i] = T((float(from[i]) - mean) * scale * float(weight[i]) + float(bias[i]));
    """,
)


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """One threadgroup a row."""
    return launch(EXPERT, x, weight, bias, eps, min(256, max(32, x.shape[-1] // 16 // 32 * 32)) if x.dim() else 1)


def layer_norm_simple(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    """One thread a row."""
    return launch(SIMPLE, x, weight, bias, eps, None)


def launch(kernel: MetalKernel, x: Tensor, weight: Tensor, bias: Tensor, eps: float, group: int | None) -> Tensor:
    """Runs a kernel with a threadgroup of `group` lanes a row, or one thread a row."""
    check_arguments(x, weight, bias)
    columns = x.shape[-1]
    rows = x.numel() // columns
    outputs = kernel(
        inputs={"x": x, "weight": weight, "bias": bias, "eps": eps, "rows": rows, "columns": columns},
        template={"T": x.dtype},
        grid=(rows * (group or 1), 1, 1),
        threadgroup=(group or 64, 1, 1),
        output_shapes={"out": x.shape},
        output_dtypes={"out": x.dtype},
    )
    result: Tensor = outputs["out"]
    return result


def check_arguments(x: Tensor, weight: Tensor, bias: Tensor) -> None:
    expect(x.dtype in FLOATS, f"x has to be float, half or bfloat16, not {x.dtype}")
    expect(x.dim() > 0 and x.shape[-1] > 0, f"x has to have a last dimension with elements, not shape {tuple(x.shape)}")
    for name, parameter in (("weight", weight), ("bias", bias)):
        expect(parameter.dtype == x.dtype, f"{name} has to be {x.dtype} as x is, not {parameter.dtype}")
        shape = tuple(parameter.shape)
        expect(shape == tuple(x.shape[-1:]), f"{name} has to have {x.shape[-1]} elements, not shape {shape}")


def reference(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-5) -> Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, eps)


def make_inputs(case: Case) -> Values:
    columns = case.size[-1]
    weight, bias = case.normal(columns), case.normal(columns, seed=1)
    return {"x": case.normal(*case.size), "weight": weight, "bias": bias, "eps": 1e-5}


SCRIPT = Script(
    summary="LayerNorm over the last dimension",
    kind=Kind.ROW_WISE,
    stages=(Stage("layer_norm", layer_norm, reference, ("x", "weight", "bias", "eps"), simple=layer_norm_simple),),
    inputs=make_inputs,
    sizes=((1, 2), (3, 33), (2, 2, 1030), (0, 8)),
    benchmark=((4096, 1024), (1024, 4095)),
    refusals=(
        Refusal("x", lambda: layer_norm(torch.zeros(()), torch.zeros(1), torch.zeros(1))),
        Refusal("weight", lambda: layer_norm(torch.zeros(2, 3), torch.zeros(4), torch.zeros(3))),
        Refusal("bias", lambda: layer_norm(torch.zeros(2, 3), torch.zeros(3), torch.zeros(3, dtype=torch.float16))),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
