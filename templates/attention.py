"""Attention with online softmax: each query keeps a running maximum, sum and output, so that no score is stored.

Simple: one thread a query. Expert: one simdgroup several queries, and eight simdgroups share blocks of 32 keys in
threadgroup memory.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import FLOATS, Case, Kind, Refusal, Script, Stage, Values, expect, run_script

WIDEST_HEAD = 128
SIMPLE = MetalKernel(
    "attention_simple",
    input_names=["query", "key", "value", "scale", "queries", "keys", "rows"],
    output_names=["out"],
    source="""
    uint row = thread_position_in_grid.x;
    if (row >= uint(rows)) return;
    uint head = row / uint(queries);
    float q[D], result[D];
    for (int d = 0; d < D; ++d) {
      q[d] = float(query[row * D + d]) * scale;
      result[d] = 0;
    }
    float top = -INFINITY, sum = 0;
    for (uint j = 0; j < uint(keys); ++j) {
      auto k = key + (head * uint(keys) + j) * D;
      auto v = value + (head * uint(keys) + j) * D;
      float score = 0;
      for (int d = 0; d < D; ++d) score += q[d] * float(k[d]);
      float higher = max(top, score);
      float keep = exp(top - higher), gain = exp(score - higher);
      for (int d = 0; d < D; ++d) result[d] = result[d] * keep + gain * float(v[d]);
      sum = sum * keep + gain;
      top = higher;
    }
    for (int d = 0; d < D; ++d) out[row * D + d] = T(result[d] / sum);
    """,
)
# Keys lie transposed in threadgroup memory, for the queries of eight simdgroups together, so that neighboring lanes
# read neighboring elements. A lane first is one of 32 keys, then every 32nd element of the output; either way what it
# loads serves EACH queries.
EXPERT = MetalKernel(
    "attention",
    input_names=["query", "key", "value", "scale", "queries", "keys"],
    output_names=["out"],
    source="""
    constexpr uint PARTS = (D + 31) / 32;
    threadgroup float block[D * 32], asked[8 * EACH * D], weights[8 * EACH * 32];
    uint lane = thread_position_in_threadgroup.x, mine = thread_position_in_threadgroup.y;
    uint index = mine * 32 + lane;
    uint head = threadgroup_position_in_grid.z;
    uint first = thread_position_in_grid.y * EACH, last = uint(queries) - 1;
    ulong from = ulong(head) * uint(keys) * D;
    ulong to = ulong(head) * uint(queries) * D;
    float top[EACH], sum[EACH], result[EACH][PARTS];
    #pragma unroll
    for (uint e = 0; e < EACH; ++e) {
      uint row = min(first + e, last);
      for (uint d = lane; d < D; d += 32) asked[(mine * EACH + e) * D + d] = float(query[to + row * D + d]) * scale;
      top[e] = LOWEST;
      sum[e] = 0;
      for (uint k = 0; k < PARTS; ++k) result[e][k] = 0;
    }
    for (uint begin = 0; begin < uint(keys); begin += 32) {
      uint count = min(32u, uint(keys) - begin);
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint i = index; i < 32 * D; i += 256) {
        uint j = i / D;
        block[(i % D) * 32 + j] = j < count ? float(key[from + begin * D + i]) : 0.0f;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float score[EACH] = {};
      #pragma unroll
      for (uint d = 0; d < D; ++d)
        for (uint e = 0; e < EACH; ++e) score[e] += asked[(mine * EACH + e) * D + d] * block[d * 32 + lane];
      #pragma unroll
      for (uint e = 0; e < EACH; ++e) {
        float higher = max(top[e], simd_max(lane < count ? score[e] : LOWEST));
        float gain = lane < count ? exp(score[e] - higher) : 0.0f;
        float keep = exp(top[e] - higher);
        sum[e] = sum[e] * keep + simd_sum(gain);
        top[e] = higher;
        weights[(mine * EACH + e) * 32 + lane] = gain;
        for (uint k = 0; k < PARTS; ++k) result[e][k] *= keep;
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
      #pragma unroll
      for (uint j = 0; j < 32; ++j) {
        // Keys past the end have weight 0: in their place the last one is read.
        ulong v = from + min(begin + j, uint(keys) - 1) * D;
        for (uint k = 0; k < PARTS; ++k) {
          uint d = D % 32 == 0 ? lane + 32 * k : min(lane + 32 * k, uint(D) - 1);
          float element = float(value[v + d]);
          for (uint e = 0; e < EACH; ++e) result[e][k] += weights[(mine * EACH + e) * 32 + j] * element;
        }
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
    }
    #pragma unroll
    for (uint e = 0; e < EACH; ++e)
      for (uint k = 0; k < PARTS; ++k) {
        uint d = lane + 32 * k;
        if (first + e <= last && d < D) out[to + (first + e) * D + d] = T(result[e][k] / sum[e]);
      }
    """,
    header="constant constexpr float LOWEST = -3.0e38f;  // finite: exp(LOWEST - LOWEST) is a number\n",
)


def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """One simdgroup for as many queries as fit threadgroup memory, eight simdgroups a threadgroup."""
    check_arguments(query, key, value)
    batch, heads, queries, width = query.shape
    each = 4 if width <= WIDEST_HEAD // 2 else 2
    inputs = {"query": query, "key": key, "value": value, "scale": 1 / math.sqrt(width)}
    outputs = EXPERT(
        inputs={**inputs, "queries": queries, "keys": key.shape[2]},
        template={"T": query.dtype, "D": width, "EACH": each},
        grid=(32, -(-queries // (8 * each)) * 8, batch * heads),
        threadgroup=(32, 8, 1),
        output_shapes={"out": query.shape},
        output_dtypes={"out": query.dtype},
    )
    return outputs["out"]


def attention_simple(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """One thread a query."""
    check_arguments(query, key, value)
    batch, heads, queries, width = query.shape
    rows = batch * heads * queries
    inputs = {"query": query, "key": key, "value": value, "scale": 1 / math.sqrt(width)}
    outputs = SIMPLE(
        inputs={**inputs, "queries": queries, "keys": key.shape[2], "rows": rows},
        template={"T": query.dtype, "D": width},
        grid=(rows, 1, 1),
        threadgroup=(32, 1, 1),
        output_shapes={"out": query.shape},
        output_dtypes={"out": query.dtype},
    )
    return outputs["out"]


def check_arguments(query: Tensor, key: Tensor, value: Tensor) -> None:
    expect(query.dtype in FLOATS, f"query has to be float, half or bfloat16, not {query.dtype}")
    expect(query.dim() == 4, f"query has to be (batch, heads, length, width), not {tuple(query.shape)}")
    width = query.shape[3]
    expect(0 < width <= WIDEST_HEAD, f"query has to have a width of 1 to {WIDEST_HEAD}, not {width}")
    for name, tensor in (("key", key), ("value", value)):
        expect(tensor.dtype == query.dtype, f"{name} has to be {query.dtype} as query is, not {tensor.dtype}")
        wanted = (*query.shape[:2], key.shape[-2] if key.dim() == 4 else -1, width)
        expect(tuple(tensor.shape) == wanted, f"{name} has to have shape {wanted}, not {tuple(tensor.shape)}")
    expect(key.shape[2] > 0, "key has no positions")


def make_inputs(case: Case) -> Values:
    batch, heads, queries, keys, width = case.size
    return {
        "query": case.normal(batch, heads, queries, width),
        "key": case.normal(batch, heads, keys, width, seed=1),
        "value": case.normal(batch, heads, keys, width, seed=2),
    }


SCRIPT = Script(
    summary="attention with online softmax, row by row",
    kind=Kind.ROW_WISE,
    stages=(
        Stage(
            "attention",
            attention,
            torch.nn.functional.scaled_dot_product_attention,
            ("query", "key", "value"),
            simple=attention_simple,
        ),
    ),
    inputs=make_inputs,
    sizes=((1, 1, 1, 1, 16), (2, 3, 5, 37, 16), (1, 2, 33, 70, 24)),
    benchmark=((1, 4, 256, 256, 64), (1, 2, 100, 1000, 64)),
    refusals=(
        Refusal("query", lambda: attention(*(torch.zeros(2, 3, 4) for _ in range(3)))),
        Refusal("query", lambda: attention(*(torch.zeros(1, 1, 2, 256) for _ in range(3)))),
        Refusal("key", lambda: attention(torch.zeros(1, 1, 2, 8), torch.zeros(1, 2, 2, 8), torch.zeros(1, 1, 2, 8))),
        Refusal("value", lambda: attention(torch.zeros(1, 1, 2, 8), torch.zeros(1, 1, 3, 8), torch.zeros(1, 1, 2, 8))),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
