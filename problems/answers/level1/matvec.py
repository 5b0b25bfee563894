"""An answer to level1/matvec."""

from __future__ import annotations

from torch import Tensor

from porter.kernels import MetalKernel

KERNEL = MetalKernel(
    "matvec",
    ["a", "v"],
    ["out"],
    """
    uint row = thread_position_in_grid.x;
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += float(a[row * K + k]) * float(v[k]);
    out[row] = T(sum);
    """,
)


def matvec(a: Tensor, v: Tensor) -> Tensor:
    (out,) = KERNEL(
        [a, v],
        template={"T": a.dtype, "K": a.shape[1]},
        grid=(a.shape[0], 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[(a.shape[0],)],
        output_dtypes=[a.dtype],
    )
    return out
