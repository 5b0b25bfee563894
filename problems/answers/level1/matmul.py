"""An answer to level1/matmul."""

from __future__ import annotations

from torch import Tensor

from porter.kernels import MetalKernel

KERNEL = MetalKernel(
    "matmul",
    ["a", "b"],
    ["out"],
    """
    uint i = thread_position_in_grid.x;
    uint row = i / N, column = i % N;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += float(a[row * K + k]) * float(b[k * N + column]);
    out[i] = T(sum);
    """,
)


def matmul(a: Tensor, b: Tensor) -> Tensor:
    (out,) = KERNEL(
        [a, b],
        template={"T": a.dtype, "K": a.shape[1], "N": b.shape[1]},
        grid=(a.shape[0] * b.shape[1], 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[(a.shape[0], b.shape[1])],
        output_dtypes=[a.dtype],
    )
    return out
