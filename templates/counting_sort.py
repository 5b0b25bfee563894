"""Counting sort, a pipeline of three launches: histogram, prefix sum, scatter.

Keys are counted by blocks, so that the prefix sum gives each block places of its own for each key. Each stage has a
reference, so that `porter kernel trace` finds the first one that is wrong. Simple: every thread adds to counts in
device memory, and the prefix sum starts anew for each key. Expert: threadgroups count in their own memory, no memory
of the device is updated by several threads, and simdgroups add up prefixes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import Case, Kind, Refusal, Script, Stage, Values, expect, run_script

BINS = 256
BLOCK = 4096  # keys
GROUP = 256
TYPES = (torch.int32, torch.uint8, torch.int64)

SIMPLE = MetalKernel(
    "histogram_simple",
    input_names=["keys"],
    output_names=["counts"],
    atomic_outputs=True,
    source="""
    uint i = thread_position_in_grid.x;
    atomic_fetch_add_explicit(&counts[i / 4096 * 256 + uint(keys[i])], 1, memory_order_relaxed);
    """,
)
EXPERT = MetalKernel(
    "histogram",
    input_names=["keys", "length"],
    output_names=["counts"],
    source="""
    threadgroup atomic_int mine[256];
    uint lane = thread_position_in_threadgroup.x;
    uint block = threadgroup_position_in_grid.x;
    atomic_store_explicit(&mine[lane], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = block * 4096; i < block * 4096 + 4096; i += 256)
      if (i + lane < uint(length)) atomic_fetch_add_explicit(&mine[uint(keys[i + lane])], 1, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    counts[block * 256 + lane] = atomic_load_explicit(&mine[lane], memory_order_relaxed);
    """,
)
SCAN = MetalKernel(
    "exclusive_sum",
    input_names=["counts", "blocks"],
    output_names=["starts"],
    source="""
    threadgroup int totals[8];
    uint key = thread_position_in_threadgroup.x;
    int count = 0;
    for (uint block = 0; block < uint(blocks); ++block) count += counts[block * 256 + key];
    int start = simd_prefix_exclusive_sum(count);
    if (thread_index_in_simdgroup == 31) totals[simdgroup_index_in_threadgroup] = start + count;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint s = 0; s < simdgroup_index_in_threadgroup; ++s) start += totals[s];
    for (uint block = 0; block < uint(blocks); ++block) {
      starts[block * 256 + key] = start;
      start += counts[block * 256 + key];
    }
    """,
)
SCAN_SIMPLE = MetalKernel(
    "exclusive_sum_simple",
    input_names=["counts", "blocks"],
    output_names=["starts"],
    source="""
    uint key = thread_position_in_grid.x;
    int start = 0;
    for (uint block = 0; block < uint(blocks); ++block)
      for (uint j = 0; j < key; ++j) start += counts[block * 256 + j];
    for (uint block = 0; block < uint(blocks); ++block) {
      starts[block * 256 + key] = start;
      start += counts[block * 256 + key];
    }
    """,
)
# `taken` counts the places of each key: threads of one key get them in any order, but their keys are equal.
SCATTER_SIMPLE = MetalKernel(
    "scatter_keys_simple",
    input_names=["keys", "starts"],
    output_names=["out", "taken"],
    atomic_outputs=True,
    source="""
    uint i = thread_position_in_grid.x;
    uint bin = i / 4096 * 256 + uint(keys[i]);
    int place = starts[bin] + atomic_fetch_add_explicit(&taken[bin], 1, memory_order_relaxed);
    atomic_store_explicit(&out[place], int(keys[i]), memory_order_relaxed);
    """,
)
SCATTER = MetalKernel(
    "scatter_keys",
    input_names=["keys", "starts", "length"],
    output_names=["out"],
    source="""
    threadgroup atomic_int next[256];
    uint lane = thread_position_in_threadgroup.x;
    uint block = threadgroup_position_in_grid.x;
    atomic_store_explicit(&next[lane], starts[block * 256 + lane], memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint i = block * 4096; i < block * 4096 + 4096; i += 256)
      if (i + lane < uint(length)) {
        int key = int(keys[i + lane]);
        out[atomic_fetch_add_explicit(&next[key], 1, memory_order_relaxed)] = key;
      }
    """,
)


def count_blocks(keys: Tensor) -> int:
    return max(1, -(-keys.numel() // BLOCK))


def histogram(keys: Tensor) -> Tensor:
    """How often each of 256 keys occurs in each block: (blocks, 256)."""
    check_keys(keys)
    outputs = EXPERT(
        inputs={"keys": keys, "length": keys.numel()},
        grid=(count_blocks(keys) * GROUP, 1, 1),
        threadgroup=(GROUP, 1, 1),
        output_shapes={"counts": (count_blocks(keys), BINS)},
        output_dtypes={"counts": torch.int32},
    )
    return outputs["counts"]


def histogram_simple(keys: Tensor) -> Tensor:
    check_keys(keys)
    outputs = SIMPLE(
        inputs={"keys": keys},
        grid=(keys.numel(), 1, 1),
        threadgroup=(GROUP, 1, 1),
        output_shapes={"counts": (count_blocks(keys), BINS)},
        output_dtypes={"counts": torch.int32},
        init_value=0,
    )
    return outputs["counts"]


def exclusive_sum(counts: Tensor) -> Tensor:
    """Where the keys of each block start: how many keys are smaller, or equal and in a block before."""
    check_counts(counts)
    outputs = SCAN(
        inputs={"counts": counts, "blocks": counts.shape[0]},
        grid=(BINS, 1, 1),
        threadgroup=(BINS, 1, 1),
        output_shapes={"starts": counts.shape},
        output_dtypes={"starts": torch.int32},
    )
    return outputs["starts"]


def exclusive_sum_simple(counts: Tensor) -> Tensor:
    check_counts(counts)
    outputs = SCAN_SIMPLE(
        inputs={"counts": counts, "blocks": counts.shape[0]},
        grid=(BINS, 1, 1),
        threadgroup=(BINS, 1, 1),
        output_shapes={"starts": counts.shape},
        output_dtypes={"starts": torch.int32},
    )
    return outputs["starts"]


def scatter(keys: Tensor, starts: Tensor) -> Tensor:
    """The keys in order; `starts` are the sums of the counts of `keys`."""
    check_keys(keys)
    check_starts(keys, starts)
    outputs = SCATTER(
        inputs={"keys": keys, "starts": starts, "length": keys.numel()},
        grid=(count_blocks(keys) * GROUP, 1, 1),
        threadgroup=(GROUP, 1, 1),
        output_shapes={"out": keys.shape},
        output_dtypes={"out": torch.int32},
    )
    return outputs["out"]


def scatter_simple(keys: Tensor, starts: Tensor) -> Tensor:
    check_keys(keys)
    check_starts(keys, starts)
    outputs = SCATTER_SIMPLE(
        inputs={"keys": keys, "starts": starts},
        grid=(keys.numel(), 1, 1),
        threadgroup=(GROUP, 1, 1),
        output_shapes={"out": keys.shape, "taken": starts.shape},
        output_dtypes={"out": torch.int32, "taken": torch.int32},
        init_value=0,
    )
    return outputs["out"]


def check_keys(keys: Tensor) -> None:
    expect(keys.dtype in TYPES, f"keys has to be int32, uint8 or int64, not {keys.dtype}")
    expect(keys.dim() == 1, f"keys has to have one dimension, not shape {tuple(keys.shape)}")


def check_counts(counts: Tensor) -> None:
    expect(counts.dtype == torch.int32, f"counts has to be int32, not {counts.dtype}")
    expect(counts.dim() == 2, f"counts has to have two dimensions, not shape {tuple(counts.shape)}")
    expect(counts.shape[1] == BINS, f"counts has to have {BINS} elements a block, not {counts.shape[1]}")


def check_starts(keys: Tensor, starts: Tensor) -> None:
    expect(starts.dtype == torch.int32, f"starts has to be int32, not {starts.dtype}")
    expect(starts.dim() == 2, f"starts has to have two dimensions, not shape {tuple(starts.shape)}")
    expect(starts.shape[1] == BINS, f"starts has to have {BINS} elements a block, not {starts.shape[1]}")
    blocks = count_blocks(keys)
    expect(starts.shape[0] == blocks, f"starts has to have {blocks} blocks, not {starts.shape[0]}")


def histogram_reference(keys: Tensor) -> Tensor:
    return torch.stack([torch.bincount(block.long(), minlength=BINS).int() for block in keys.split(BLOCK)])


def exclusive_reference(counts: Tensor) -> Tensor:
    sums = counts.t().flatten().cumsum(0).view(BINS, -1).t()
    return (sums - counts).int()


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
