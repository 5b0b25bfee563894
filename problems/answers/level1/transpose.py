"""An answer to level1/transpose."""

from __future__ import annotations

from torch import Tensor

from porter.kernels import MetalKernel

KERNEL = MetalKernel(
    "transpose",
    ["x"],
    ["out"],
    """
    uint i = thread_position_in_grid.x;
    uint row = i / N, column = i % N;
    out[column * M + row] = x[i];
    """,
)


def transpose(x: Tensor) -> Tensor:
    (out,) = KERNEL(
        [x],
        template={"T": x.dtype, "M": x.shape[0], "N": x.shape[1]},
        grid=(x.numel(), 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[(x.shape[1], x.shape[0])],
        output_dtypes=[x.dtype],
    )
    return out
