"""Counting sort, a pipeline of three launches: histogram, prefix sum, scatter.

Each stage has a reference, so that `porter kernel trace` finds the first one that is wrong. Simple: every thread adds
to counts in device memory, and the prefix sum starts anew for each bin. Expert: threadgroups count in their own memory
first, and simdgroups add up prefixes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import Case, Kind, Refusal, Script, Stage, Values, expect, run_script

BINS = 256
GROUP = 256
TYPES = (torch.int32, torch.uint8, torch.int64)

SIMPLE = MetalKernel(
    "histogram_simple",
    input_names=["keys"],
    output_names=["counts"],
    atomic_outputs=True,
    source="""
    uint key = uint(keys[thread_position_in_grid.x]);
    atomic_fetch_add_explicit(&counts[key], 1, memory_order_relaxed);
    """,
)
EXPERT = MetalKernel(
    "histogram",
    input_names=["keys", "length"],
    output_names=["counts"],
    atomic_outputs=True,
    source="""
    threadgroup atomic_int mine[256];
    uint lane = thread_position_in_threadgroup.x;
    atomic_store_explicit(&mine[lane], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = thread_position_in_grid.x; i < uint(length); i += threads_per_grid.x)
      atomic_fetch_add_explicit(&mine[uint(keys[i])], 1, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int found = atomic_load_explicit(&mine[lane], memory_order_relaxed);
    if (found > 0) atomic_fetch_add_explicit(&counts[lane], found, memory_order_relaxed);
    """,
)
SCAN = MetalKernel(
    "exclusive_sum",
    input_names=["counts"],
    output_names=["starts"],
    source="""
    threadgroup int totals[8];
    uint i = thread_position_in_threadgroup.x;
    int count = counts[i];
    int before = simd_prefix_exclusive_sum(count);
    if (thread_index_in_simdgroup == 31) totals[simdgroup_index_in_threadgroup] = before + count;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint s = 0; s < simdgroup_index_in_threadgroup; ++s) before += totals[s];
    starts[i] = before;
    """,
)
SCAN_SIMPLE = MetalKernel(
    "exclusive_sum_simple",
    input_names=["counts"],
    output_names=["starts"],
    source="""
    uint i = thread_position_in_grid.x;
    int before = 0;
    for (uint j = 0; j < i; ++j) before += counts[j];
    starts[i] = before;
    """,
)
# `taken` counts the places of each bin: threads of one key get them in any order, but their keys are equal.
SCATTER_SIMPLE = MetalKernel(
    "scatter_keys_simple",
    input_names=["keys", "starts"],
    output_names=["out", "taken"],
    atomic_outputs=True,
    source="""
    int key = int(keys[thread_position_in_grid.x]);
    int place = starts[key] + atomic_fetch_add_explicit(&taken[key], 1, memory_order_relaxed);
    atomic_store_explicit(&out[place], key, memory_order_relaxed);
    """,
)
# A threadgroup numbers the keys of each bin among its own, 16 of each thread, and then takes places for all of them.
SCATTER = MetalKernel(
    "scatter_keys",
    input_names=["keys", "starts", "length"],
    output_names=["out", "taken"],
    atomic_outputs=True,
    source="""
    constexpr uint EACH = 16;
    threadgroup atomic_int mine[256];
    threadgroup int first[256];
    uint lane = thread_position_in_threadgroup.x;
    uint begin = threadgroup_position_in_grid.x * 256 * EACH + lane;
    int number[EACH];
    atomic_store_explicit(&mine[lane], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < EACH; ++k) {
      uint i = begin + 256 * k;
      number[k] = i < uint(length) ? atomic_fetch_add_explicit(&mine[uint(keys[i])], 1, memory_order_relaxed) : 0;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    int found = atomic_load_explicit(&mine[lane], memory_order_relaxed);
    first[lane] = starts[lane] + (found > 0 ? atomic_fetch_add_explicit(&taken[lane], found, memory_order_relaxed) : 0);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 0; k < EACH; ++k) {
      uint i = begin + 256 * k;
      if (i >= uint(length)) break;
      int key = int(keys[i]);
      atomic_store_explicit(&out[first[key] + number[k]], key, memory_order_relaxed);
    }
    """,
)
EACH = 16


def histogram(keys: Tensor) -> Tensor:
    """How often each of 256 keys occurs."""
    check_keys(keys)
    outputs = EXPERT(
        inputs={"keys": keys, "length": keys.numel()},
        grid=(min(64, max(1, keys.numel() // 4096)) * GROUP, 1, 1),
        threadgroup=(GROUP, 1, 1),
        output_shapes={"counts": (BINS,)},
        output_dtypes={"counts": torch.int32},
        init_value=0,
    )
    return outputs["counts"]


def histogram_simple(keys: Tensor) -> Tensor:
    check_keys(keys)
    outputs = SIMPLE(
        inputs={"keys": keys},
        grid=(keys.numel(), 1, 1),
        threadgroup=(GROUP, 1, 1),
        output_shapes={"counts": (BINS,)},
        output_dtypes={"counts": torch.int32},
        init_value=0,
    )
    return outputs["counts"]


def exclusive_sum(counts: Tensor) -> Tensor:
    """Where the keys of each bin start: the sum of the counts before it."""
    check_counts(counts)
    outputs = SCAN(
        inputs={"counts": counts},
        grid=(BINS, 1, 1),
        threadgroup=(BINS, 1, 1),
        output_shapes={"starts": (BINS,)},
        output_dtypes={"starts": torch.int32},
    )
    return outputs["starts"]


def exclusive_sum_simple(counts: Tensor) -> Tensor:
    check_counts(counts)
    outputs = SCAN_SIMPLE(
        inputs={"counts": counts},
        grid=(BINS, 1, 1),
        threadgroup=(BINS, 1, 1),
        output_shapes={"starts": (BINS,)},
        output_dtypes={"starts": torch.int32},
    )
    return outputs["starts"]


def scatter(keys: Tensor, starts: Tensor) -> Tensor:
    """The keys in order; `starts` are the sums of the counts of `keys`."""
    check_keys(keys)
    check_starts(starts)
    outputs = SCATTER(
        inputs={"keys": keys, "starts": starts, "length": keys.numel()},
        grid=(-(-keys.numel() // (GROUP * EACH)) * GROUP, 1, 1),
        threadgroup=(GROUP, 1, 1),
        output_shapes={"out": keys.shape, "taken": (BINS,)},
        output_dtypes={"out": torch.int32, "taken": torch.int32},
        init_value=0,
    )
    return outputs["out"]


def scatter_simple(keys: Tensor, starts: Tensor) -> Tensor:
    check_keys(keys)
    check_starts(starts)
    outputs = SCATTER_SIMPLE(
        inputs={"keys": keys, "starts": starts},
        grid=(keys.numel(), 1, 1),
        threadgroup=(GROUP, 1, 1),
        output_shapes={"out": keys.shape, "taken": (BINS,)},
        output_dtypes={"out": torch.int32, "taken": torch.int32},
        init_value=0,
    )
    return outputs["out"]


def check_keys(keys: Tensor) -> None:
    expect(keys.dtype in TYPES, f"keys has to be int32, uint8 or int64, not {keys.dtype}")
    expect(keys.dim() == 1, f"keys has to have one dimension, not shape {tuple(keys.shape)}")


def check_counts(counts: Tensor) -> None:
    expect(counts.dtype == torch.int32, f"counts has to be int32, not {counts.dtype}")
    expect(tuple(counts.shape) == (BINS,), f"counts has to have {BINS} elements, not shape {tuple(counts.shape)}")


def check_starts(starts: Tensor) -> None:
    expect(starts.dtype == torch.int32, f"starts has to be int32, not {starts.dtype}")
    expect(tuple(starts.shape) == (BINS,), f"starts has to have {BINS} elements, not shape {tuple(starts.shape)}")


def histogram_reference(keys: Tensor) -> Tensor:
    return torch.bincount(keys.long(), minlength=BINS).int()


def exclusive_reference(counts: Tensor) -> Tensor:
    return (counts.cumsum(0) - counts).int()


def scatter_reference(keys: Tensor, starts: Tensor) -> Tensor:
    return keys.sort().values.int()


def make_inputs(case: Case) -> Values:
    return {"keys": case.integers(*case.size, below=BINS, dtype=case.dtype)}


SCRIPT = Script(
    summary="counting sort: histogram, prefix sum, scatter",
    kind=Kind.PIPELINE,
    stages=(
        Stage("histogram", histogram, histogram_reference, ("keys",), ("counts",), simple=histogram_simple),
        Stage(
            "exclusive_sum", exclusive_sum, exclusive_reference, ("counts",), ("starts",), simple=exclusive_sum_simple
        ),
        Stage("scatter", scatter, scatter_reference, ("keys", "starts"), simple=scatter_simple),
    ),
    inputs=make_inputs,
    sizes=((0,), (1,), (9001,)),
    benchmark=((1 << 20,), (100_003,)),
    dtypes=TYPES,
    refusals=(
        Refusal("keys", lambda: histogram(torch.zeros(3))),
        Refusal("keys", lambda: histogram(torch.zeros(3, 3, dtype=torch.int32))),
        Refusal("counts", lambda: exclusive_sum(torch.zeros(3, dtype=torch.int32))),
        Refusal("starts", lambda: scatter(torch.zeros(3, dtype=torch.int32), torch.zeros(BINS))),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
