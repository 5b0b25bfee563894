"""An answer to level2/add_rms_norm."""

from __future__ import annotations

from torch import Tensor

from porter.kernels import MetalKernel

KERNEL = MetalKernel(
    "add_rms_norm",
    ["x", "residual", "weight"],
    ["out"],
    """
    uint i = thread_position_in_grid.x;
    float sum = 0;
    for (int j = 0; j < N; ++j) {
        float v = float(T(float(x[i * N + j]) + float(residual[i * N + j])));
        sum += v * v;
    }
    float scale = precise::rsqrt(sum / N + 1e-5f);
    for (int j = 0; j < N; ++j) {
        float v = float(T(float(x[i * N + j]) + float(residual[i * N + j])));
        out[i * N + j] = T(v * scale * float(weight[j]));
    }
    """,
)


def add_rms_norm(x: Tensor, residual: Tensor, weight: Tensor) -> Tensor:
    (out,) = KERNEL(
        [x, residual, weight],
        template={"T": x.dtype, "N": x.shape[-1]},
        grid=(x.shape[0], 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[x.dtype],
    )
    return out
