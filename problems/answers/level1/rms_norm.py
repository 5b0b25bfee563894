"""An answer to level1/rms_norm."""

from __future__ import annotations

from torch import Tensor

from porter.kernels import MetalKernel

KERNEL = MetalKernel(
    "rms_norm",
    ["x", "weight"],
    ["out"],
    """
    uint i = thread_position_in_grid.x;
    float sum = 0;
    for (int j = 0; j < N; ++j) sum += float(x[i * N + j]) * float(x[i * N + j]);
    float scale = precise::rsqrt(sum / N + 1e-5f);
    for (int j = 0; j < N; ++j) out[i * N + j] = T(float(x[i * N + j]) * scale * float(weight[j]));
    """,
)


def rms_norm(x: Tensor, weight: Tensor) -> Tensor:
    (out,) = KERNEL(
        [x, weight],
        template={"T": x.dtype, "N": x.shape[-1]},
        grid=(x.shape[0], 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[x.shape],
        output_dtypes=[x.dtype],
    )
    return out
