"""Causal, sliding-window and grouped-query attention: one kernel in which the variants are template parameters.

A causal query at position i sees the keys up to `keys - queries + i`: with as many keys as queries those up to itself,
and with more, as when tokens follow a cache, all of the cache too. Each key and value head serves several query heads.

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

# CAUSAL leaves out keys after the query, WINDOW (0: none) those before its last WINDOW ones; SHARED query heads have
# one key head. One simdgroup EACH queries: eight simdgroups share blocks of 32 keys, from the first that one of their
# queries sees to the last. A lane first is one of these keys, then every 32nd element of the output.
KERNEL = MetalKernel(
    "attention_variant",
    input_names=["query", "key", "value", "scale", "queries", "keys"],
    output_names=["out"],
    source="""
    constexpr uint PARTS = (D + 31) / 32;
    threadgroup float block[D * 32], asked[8 * EACH * D], weights[8 * EACH * 32];
    uint lane = thread_position_in_threadgroup.x, mine = thread_position_in_threadgroup.y;
    uint index = mine * 32 + lane;
    uint head = threadgroup_position_in_grid.z;
    uint first = thread_position_in_grid.y * EACH, last = uint(queries) - 1;
    ulong from = ulong(head / SHARED) * uint(keys) * D;
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

    int before = int(keys) - int(queries), position = int(first) + before;
    int oldest = int(threadgroup_position_in_grid.y) * 8 * EACH + before;
    int newest = min(oldest + 8 * EACH - 1, int(keys) - 1);
    int begin = WINDOW > 0 ? max(0, oldest + 1 - WINDOW) : 0;
    int end = CAUSAL ? newest + 1 : int(keys);
    for (; begin < end; begin += 32) {
      threadgroup_barrier(mem_flags::mem_threadgroup);
      for (uint i = index; i < 32 * D; i += 256) {
        uint j = i / D;
        block[(i % D) * 32 + j] = begin + int(j) < end ? float(key[from + ulong(begin) * D + i]) : 0.0f;
      }
      threadgroup_barrier(mem_flags::mem_threadgroup);
      float score[EACH] = {};
      #pragma unroll
      for (uint d = 0; d < D; ++d)
        for (uint e = 0; e < EACH; ++e) score[e] += asked[(mine * EACH + e) * D + d] * block[d * 32 + lane];
      int at = begin + int(lane);
      #pragma unroll
      for (uint e = 0; e < EACH; ++e) {
        int own = position + int(e);
        bool seen = at < end && (!CAUSAL || at <= own) && (WINDOW == 0 || at > own - WINDOW);
        float higher = max(top[e], simd_max(seen ? score[e] : LOWEST));
        float gain = seen ? exp(score[e] - higher) : 0.0f;
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
        ulong v = from + min(uint(begin) + j, uint(keys) - 1) * D;
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


# The same in one thread a query, which goes over the keys that it sees.
SIMPLE = MetalKernel(
    "attention_variant_simple",
    input_names=["query", "key", "value", "scale", "queries", "keys", "rows"],
    output_names=["out"],
    source="""
    uint row = thread_position_in_grid.x;
    if (row >= uint(rows)) return;
    ulong from = ulong(row / uint(queries) / SHARED) * uint(keys);
    int own = int(row % uint(queries)) + int(keys) - int(queries);
    int begin = WINDOW > 0 ? max(0, own + 1 - WINDOW) : 0, end = CAUSAL ? own + 1 : int(keys);
    float q[D], result[D];
    for (int d = 0; d < D; ++d) {
      q[d] = float(query[ulong(row) * D + d]) * scale;
      result[d] = 0;
    }
    float top = -INFINITY, sum = 0;
    for (int j = begin; j < end; ++j) {
      auto k = key + (from + j) * D;
      auto v = value + (from + j) * D;
      float score = 0;
      for (int d = 0; d < D; ++d) score += q[d] * float(k[d]);
      float higher = max(top, score);
      float keep = exp(top - higher), gain = exp(score - higher);
      for (int d = 0; d < D; ++d) result[d] = result[d] * keep + gain * float(v[d]);
      sum = sum * keep + gain;
      top = higher;
    }
    for (int d = 0; d < D; ++d) out[ulong(row) * D + d] = T(result[d] / sum);
    """,
)


def causal(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """No query sees a key after it."""
    return attend(query, key, value, causal=True)


def sliding_window(query: Tensor, key: Tensor, value: Tensor, window: int) -> Tensor:
    """A query sees itself and the `window - 1` keys before it."""
    expect(window > 0, f"window has to be positive, not {window}")
    return attend(query, key, value, causal=True, window=window)


def grouped_query(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Neighboring query heads share a key head; every query sees every key."""
    return attend(query, key, value)


def attend(query: Tensor, key: Tensor, value: Tensor, causal: bool = False, window: int = 0) -> Tensor:
    """Attention in any combination of the variants."""
    check_arguments(query, key, value, causal)
    batch, heads, queries, width = query.shape
    shared = heads // key.shape[1]
    each = 4 if width <= WIDEST_HEAD // 2 else 2
    inputs = {"query": query, "key": key, "value": value, "scale": 1 / math.sqrt(width)}
    outputs = KERNEL(
        inputs={**inputs, "queries": queries, "keys": key.shape[2]},
        template={"T": query.dtype, "D": width, "EACH": each, "SHARED": shared, "CAUSAL": causal, "WINDOW": window},
        grid=(32, -(-queries // (8 * each)) * 8, batch * heads),
        threadgroup=(32, 8, 1),
        output_shapes={"out": query.shape},
        output_dtypes={"out": query.dtype},
    )
    return outputs["out"]


def causal_simple(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return attend_simple(query, key, value, causal=True)


def sliding_window_simple(query: Tensor, key: Tensor, value: Tensor, window: int) -> Tensor:
    expect(window > 0, f"window has to be positive, not {window}")
    return attend_simple(query, key, value, causal=True, window=window)


def grouped_query_simple(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return attend_simple(query, key, value)


def attend_simple(query: Tensor, key: Tensor, value: Tensor, causal: bool = False, window: int = 0) -> Tensor:
    """Attention in any combination of the variants, one thread a query."""
    check_arguments(query, key, value, causal)
    batch, heads, queries, width = query.shape
    rows, shared = batch * heads * queries, heads // key.shape[1]
    inputs = {"query": query, "key": key, "value": value, "scale": 1 / math.sqrt(width)}
    outputs = SIMPLE(
        inputs={**inputs, "queries": queries, "keys": key.shape[2], "rows": rows},
        template={"T": query.dtype, "D": width, "SHARED": shared, "CAUSAL": causal, "WINDOW": window},
        grid=(rows, 1, 1),
        threadgroup=(32, 1, 1),
        output_shapes={"out": query.shape},
        output_dtypes={"out": query.dtype},
    )
    return outputs["out"]


def check_arguments(query: Tensor, key: Tensor, value: Tensor, causal: bool) -> None:
    expect(query.dtype in FLOATS, f"query has to be float, half or bfloat16, not {query.dtype}")
    expect(query.dim() == 4, f"query has to be (batch, heads, length, width), not {tuple(query.shape)}")
    batch, heads, queries, width = query.shape
    expect(0 < width <= WIDEST_HEAD, f"query has to have a width of 1 to {WIDEST_HEAD}, not {width}")
    for name, tensor in (("key", key), ("value", value)):
        expect(tensor.dtype == query.dtype, f"{name} has to be {query.dtype} as query is, not {tensor.dtype}")
        fits = tensor.dim() == 4 and tensor.shape[0] == batch and tensor.shape[3] == width
        expect(fits, f"{name} has to be ({batch}, heads, length, {width}), not {tuple(tensor.shape)}")
    expect(value.shape == key.shape, f"value has to have the shape {tuple(key.shape)} of key, not {tuple(value.shape)}")
    expect(key.shape[1] > 0 and heads % key.shape[1] == 0, f"key has {key.shape[1]} heads, which do not divide {heads}")
    fewest = queries if causal else 1
    expect(key.shape[2] >= fewest, f"key has {key.shape[2]} positions, fewer than the {fewest} that queries need")


def see(query: Tensor, key: Tensor, window: int = 0) -> Tensor:
    """Which key each query sees: those up to its own position, and of them the last `window`."""
    position = torch.arange(query.shape[2])[:, None] + key.shape[2] - query.shape[2]
    behind = position - torch.arange(key.shape[2])[None, :]
    return (behind >= 0) & (behind < window) if window else behind >= 0


def causal_reference(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    seen = see(query, key).to(query.device)
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, seen, enable_gqa=True)


def window_reference(query: Tensor, key: Tensor, value: Tensor, window: int) -> Tensor:
    seen = see(query, key, window).to(query.device)
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, seen, enable_gqa=True)


def grouped_reference(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    return torch.nn.functional.scaled_dot_product_attention(query, key, value, enable_gqa=True)


def make_inputs(case: Case) -> Values:
    heads, key_heads, queries, keys, width = case.size
    return {
        "query": case.normal(2, heads, queries, width),
        "key": case.normal(2, key_heads, keys, width, seed=1),
        "value": case.normal(2, key_heads, keys, width, seed=2),
        "window": 5,
    }


def try_window(window: int) -> Tensor:
    """A sliding window over zeros."""
    query = torch.zeros(1, 1, 2, 8)
    return sliding_window(query, query, query, window)


def try_heads(heads: int, key_heads: int, queries: int, keys: int) -> Tensor:
    """A causal call on zeros."""
    key = torch.zeros(1, key_heads, keys, 8)
    return causal(torch.zeros(1, heads, queries, 8), key, key)


TENSORS = ("query", "key", "value")
SCRIPT = Script(
    summary="causal, sliding-window and grouped-query attention",
    kind=Kind.ROW_WISE,
    stages=(
        Stage("causal", causal, causal_reference, TENSORS, ("causal",), simple=causal_simple),
        Stage(
            "sliding_window",
            sliding_window,
            window_reference,
            (*TENSORS, "window"),
            ("windowed",),
            simple=sliding_window_simple,
        ),
        Stage("grouped_query", grouped_query, grouped_reference, TENSORS, ("grouped",), simple=grouped_query_simple),
    ),
    inputs=make_inputs,
    sizes=((1, 1, 1, 1, 16), (4, 2, 7, 39, 16), (6, 2, 35, 35, 16)),
    benchmark=((8, 2, 128, 256, 64),),
    refusals=(
        Refusal("key", lambda: try_heads(4, 3, 2, 2)),
        Refusal("key", lambda: try_heads(4, 2, 3, 2)),
        Refusal("window", lambda: try_window(0)),
        Refusal("query", lambda: causal(*(torch.zeros(1, 1, 2, 8, dtype=torch.int32) for _ in range(3)))),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
