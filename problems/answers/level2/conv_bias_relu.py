"""An answer to level2/conv_bias_relu."""

from __future__ import annotations

from torch import Tensor

from porter.kernels import MetalKernel

KERNEL = MetalKernel(
    "conv_bias_relu",
    ["x", "weight", "bias"],
    ["out"],
    """
    uint i = thread_position_in_grid.x;
    int column = i % W, row = i / W % H, out_channel = i / (W * H) % O, image = i / (W * H * O);
    float sum = float(bias[out_channel]);
    for (int c = 0; c < C; ++c)
        for (int dy = 0; dy < 3; ++dy)
            for (int dx = 0; dx < 3; ++dx) {
                int y = row + dy - 1, z = column + dx - 1;
                if (y < 0 || y >= H || z < 0 || z >= W) continue;
                float w = float(weight[((out_channel * C + c) * 3 + dy) * 3 + dx]);
                sum += float(x[((image * C + c) * H + y) * W + z]) * w;
            }
    out[i] = T(max(sum, 0.0f));
    """,
)


def conv_bias_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    (out,) = KERNEL(
        [x, weight, bias],
        template={"T": x.dtype, "C": x.shape[1], "O": weight.shape[0], "H": x.shape[2], "W": x.shape[3]},
        grid=(x.shape[0] * weight.shape[0] * x.shape[2] * x.shape[3], 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes=[(x.shape[0], weight.shape[0], *x.shape[2:])],
        output_dtypes=[x.dtype],
    )
    return out
