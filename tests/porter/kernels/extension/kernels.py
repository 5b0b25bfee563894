"""Kernels that a test makes an extension of: strides, a number, atomics, a tensor of two indices."""

import torch
from torch import Tensor

from porter.kernels import MetalKernel, MetalParameter, TorchMetalKernel


def scaled_silu(x: Tensor, scale: Tensor) -> Tensor:
    return torch.nn.functional.silu(x) * scale


def twice(x: Tensor) -> Tensor:
    return x.t() * 2


SCALED_SILU = MetalKernel(
    "scaled_silu", ["x", "scale"], ["out"],
    header="inline float silu(float v) { return v / (1.0f + metal::precise::exp(-v)); }\n",
    source="""
    uint i = thread_position_in_grid.x;
    out[i] = T(silu(float(x[elem_to_loc(i, x_shape, x_strides, x_ndim)])) * float(scale));
    """,
    ensure_row_contiguous=False, reference=scaled_silu,
)  # fmt: skip
COUNT_BELOW = MetalKernel(
    "count_below", ["x"], ["counts"],
    "if (x[thread_position_in_grid.x] < LIMIT) atomic_fetch_add_explicit(&counts[0], 1, memory_order_relaxed);",
    atomic_outputs=True,
)  # fmt: skip
TWICE = TorchMetalKernel(
    "twice_transposed", ["x"], ["out"], "out[at.y, at.x] = TYPE(2) * x[at.x, at.y];", twice,
    metal_params=[MetalParameter("at", "uint2", "thread_position_in_grid")], template_dtypes={"x": "TYPE"},
)  # fmt: skip
