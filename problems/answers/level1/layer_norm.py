"""An answer to level1/layer_norm."""

from __future__ import annotations

from torch import Tensor

from porter.kernels import MetalKernel

KERNEL = MetalKernel(
    "layer_norm",
    ["x", "weight"],
    ["out"],
    """
    uint i = thread_position_in_grid.x;
    float first = float(x[i * N]);  // rows of nearly equal numbers lose nothing
    float mean = 0, spread = 0;
    for (int j = 0; j < N; ++j) mean += (float(x[i * N + j]) - first) / N;
    for (int j = 0; j < N; ++j) {
        float v = float(x[i * N + j]) - first - mean;
        spread += v * v / N;
    }
    float scale = precise::rsqrt(spread + 1e-5f);
    for (int j = 0; j < N; ++j) {
        float v = float(x[i * N + j]) - first - mean;
        out[i * N + j] = T(v * scale * float(weight[j]));
    }
    """,
)


def layer_norm(x: Tensor, weight: Tensor) -> Tensor:
    (out,) = KERNEL(
        [x, weight],
        template={"T": x.dtype, "N": x.shape[-1]},
        grid=(x.shape[0], 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[x.dtype],
    )
    return out
