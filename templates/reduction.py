"""The sum of all elements, in two launches: a sum for each chunk, then the sum of those.

Simple: one thread a chunk. Expert: one threadgroup a chunk; lanes add up what they read, simdgroups reduce in
registers, and threadgroup memory holds one number a simdgroup.
"""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import FLOATS, Case, Kind, Refusal, Script, Stage, Values, expect, run_script

CHUNK = 4096
GROUP = 128

SIMPLE = MetalKernel(
    "sum_chunks_simple",
    input_names=["x", "count", "chunk"],
    output_names=["out"],
    source="""
    uint part = thread_position_in_grid.x;
    uint end = min(uint(count), (part + 1) * uint(chunk));
    float sum = 0;
    for (uint i = part * uint(chunk); i < end; ++i) sum += float(x[i]);
    out[part] = sum;
    """,
)
EXPERT = MetalKernel(
    "sum_chunks",
    input_names=["x", "count", "chunk"],
    output_names=["out"],
    source="""
    threadgroup float partial[32];
    uint part = threadgroup_position_in_grid.x;
    uint end = min(uint(count), (part + 1) * uint(chunk));
    float sum = 0;
    for (uint i = part * uint(chunk) + thread_position_in_threadgroup.x; i < end; i += threads_per_threadgroup.x)
      sum += float(x[i]);
    sum = simd_sum(sum);
    if (thread_index_in_simdgroup == 0) partial[simdgroup_index_in_threadgroup] = sum;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (simdgroup_index_in_threadgroup == 0) {
      sum = thread_index_in_simdgroup < simdgroups_per_threadgroup ? partial[thread_index_in_simdgroup] : 0.0f;
      sum = simd_sum(sum);
      if (thread_index_in_simdgroup == 0) out[part] = sum;
    }
    """,
)


def sum_chunks(x: Tensor, chunk: int = CHUNK, simple: bool = False) -> Tensor:
    """The sum of every `chunk` elements in float; the last chunk may hold fewer."""
    expect(x.dtype in FLOATS, f"x has to be float, half or bfloat16, not {x.dtype}")
    expect(x.numel() > 0, "x has no elements")
    expect(chunk > 0, f"chunk has to be positive, not {chunk}")
    parts = -(-x.numel() // chunk)
    outputs = (SIMPLE if simple else EXPERT)(
        inputs={"x": x, "count": x.numel(), "chunk": chunk},
        grid=(parts if simple else parts * GROUP, 1, 1),
        threadgroup=(GROUP, 1, 1),
        output_shapes={"out": (parts,)},
        output_dtypes={"out": torch.float32},
    )
    return outputs["out"]


def sum_chunks_simple(x: Tensor) -> Tensor:
    return sum_chunks(x, simple=True)


def sum_all(partial: Tensor, simple: bool = False) -> Tensor:
    """The sum of the chunks' sums, as a tensor without dimensions."""
    expect(partial.dtype == torch.float32, f"partial has to be float, not {partial.dtype}")
    return sum_chunks(partial, partial.numel(), simple).reshape(())


def sum_all_simple(partial: Tensor) -> Tensor:
    return sum_all(partial, simple=True)


def chunks_reference(x: Tensor) -> Tensor:
    dtype = torch.promote_types(x.dtype, torch.float32)
    if x.numel() % CHUNK == 0:
        return x.reshape(-1, CHUNK).sum(1, dtype=dtype)
    return torch.stack([part.sum(dtype=dtype) for part in x.flatten().split(CHUNK)])


def make_inputs(case: Case) -> Values:
    return {"x": case.normal(*case.size)}


SCRIPT = Script(
    summary="sum of all elements in two launches",
    kind=Kind.ROW_WISE,
    stages=(
        Stage("sum_chunks", sum_chunks, chunks_reference, ("x",), ("partial",), simple=sum_chunks_simple),
        Stage("sum_all", sum_all, torch.sum, ("partial",), simple=sum_all_simple),
    ),
    inputs=make_inputs,
    sizes=((1,), (33,), (3, 4097)),
    benchmark=((1 << 22,), (1 << 20,)),
    refusals=(
        Refusal("x", lambda: sum_chunks(torch.zeros(3, dtype=torch.int32))),
        Refusal("x", lambda: sum_chunks(torch.zeros(0))),
        Refusal("chunk", lambda: sum_chunks(torch.zeros(3), chunk=0)),
        Refusal("partial", lambda: sum_all(torch.zeros(3, dtype=torch.float16))),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
