"""SiLU, x / (1 + exp(-x)), with the threadgroup size found by measuring.

Simple: one element a thread, wherever the strides say that it lies. Expert: dense input, four elements a thread.
"""

from __future__ import annotations

import time

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import FLOATS, Case, Kind, Refusal, Script, Stage, Values, expect, run_script

GROUPS = (64, 128, 256, 512, 1024)
SILU = "inline float silu(float v) { return v / (1.0f + metal::fast::exp(-v)); }\n"

SIMPLE = MetalKernel(
    "silu_strided",
    input_names=["x"],
    output_names=["out"],
    header=SILU,
    source="""
    uint i = thread_position_in_grid.x;
    out[i] = T(silu(float(x[elem_to_loc(i, x_shape, x_strides, x_ndim)])));
    """,
    ensure_row_contiguous=False,
)
EXPERT = MetalKernel(
    "silu_by_four",
    input_names=["x", "count"],
    output_names=["out"],
    header=SILU,
    source="""
    // Neighboring threads read neighboring elements, so that every load of a simdgroup is one stretch of memory.
    uint threads = threads_per_grid.x;
    uint i = thread_position_in_grid.x;
    for (int k = 0; k < EACH; ++k, i += threads) out[i] = T(silu(float(x[i])));
    if (i < uint(count)) out[i] = T(silu(float(x[i])));  // the last one of some threads
    """,
)
_best: dict[tuple[int, torch.dtype], int] = {}  # the fastest threadgroup, by number of elements and their type


def silu_simple(x: Tensor) -> Tensor:
    """SiLU of a tensor of any strides."""
    check_arguments(x)
    outputs = SIMPLE(
        inputs={"x": x},
        template={"T": x.dtype},
        grid=(x.numel(), 1, 1),
        threadgroup=(256, 1, 1),
        output_shapes={"out": x.shape},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


def silu(x: Tensor, group: int | None = None) -> Tensor:
    """SiLU; other strides than dense ones cost a copy. `group` is the threadgroup size: the best known unless given."""
    check_arguments(x)
    each = 3 if x.numel() >= 16 else 0  # and one more that may lie past the end
    outputs = EXPERT(
        inputs={"x": x, "count": x.numel()},
        template={"T": x.dtype, "EACH": each},
        grid=(-(-x.numel() // (each + 1)), 1, 1),
        threadgroup=(group or _best.get((x.numel(), x.dtype), 256), 1, 1),
        output_shapes={"out": x.shape},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


def tune(x: Tensor, repeats: int = 5) -> int:
    """Measures every threadgroup size on `x`, and remembers the best for tensors of its size and type."""
    check_arguments(x)
    times = {group: min(measure(x, group) for _ in range(repeats + 1)) for group in GROUPS}
    best = min(times, key=lambda group: times[group])
    _best[x.numel(), x.dtype] = best
    return best


def measure(x: Tensor, group: int) -> float:
    """Seconds of one call, with the device idle before and after."""
    synchronize(x)
    start = time.perf_counter()
    silu(x, group)
    synchronize(x)
    return time.perf_counter() - start


def synchronize(x: Tensor) -> None:
    if x.device.type == "mps":
        torch.mps.synchronize()


def check_arguments(x: Tensor) -> None:
    expect(x.dtype in FLOATS, "x has to be float, half or bfloat16, not {}", x.dtype)


def make_inputs(case: Case) -> Values:
    return {"x": case.normal(*case.size)}


SCRIPT = Script(
    summary="SiLU with a threadgroup size found by measuring",
    kind=Kind.ELEMENTWISE,
    stages=(Stage("silu", silu, torch.nn.functional.silu, ("x",), simple=silu_simple),),
    inputs=make_inputs,
    sizes=((1,), (1023,), (3, 4, 5), (0, 3)),
    benchmark=((1 << 22,), (999, 1001)),
    refusals=(Refusal("x", lambda: silu(torch.zeros(3, dtype=torch.int64))),),
)

if __name__ == "__main__":
    run_script(__file__)
