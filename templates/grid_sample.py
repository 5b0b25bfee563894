"""Bilinear grid sampling of channels-last images, forward and backward (align_corners off, zeros outside).

`x` is (batch, height, width, channels), `grid` is (batch, rows, columns, 2) with x before y. Backward needs
`init_value` and atomics, since several samples meet in one pixel. Simple: a thread for every channel, with an atomic
addition to the grid's gradient. Expert: a thread finds the pixels around a sample once for several channels, and
backward gives a sample to one simdgroup, so that `simd_sum` adds up its channels.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import FLOATS, Case, Kind, Refusal, Script, Stage, Values, expect, run_script

GROUP = 256
SIMD = 32

# The pixels around a sample and what each counts. A pixel outside of the image counts nothing and is not read.
CORNERS = """
struct Corners {
  int x, y;      // the pixel before the sample
  float fx, fy;  // how far the sample is from it
  int height, width;
  Corners(float gx, float gy, int h, int w) {
    float px = ((gx + 1) * w - 1) / 2, py = ((gy + 1) * h - 1) / 2;
    x = int(metal::floor(px));
    y = int(metal::floor(py));
    fx = px - x;
    fy = py - y;
    height = h;
    width = w;
  }
  bool has(int dx, int dy) const { return x + dx >= 0 && x + dx < width && y + dy >= 0 && y + dy < height; }
  int pixel(int dx, int dy) const { return (y + dy) * width + x + dx; }
  float across(int dx) const { return dx ? fx : 1 - fx; }
  float down(int dy) const { return dy ? fy : 1 - fy; }
};
"""
FORWARD_SIMPLE = MetalKernel(
    "grid_sample_simple",
    input_names=["x", "grid"],
    output_names=["out"],
    header=CORNERS,
    source="""
    uint i = thread_position_in_grid.x;
    int height = x_shape[1], width = x_shape[2], channels = x_shape[3];
    uint channel = i % uint(channels), point = i / uint(channels);
    uint image = point / uint(grid_shape[1] * grid_shape[2]);
    Corners at(float(grid[2 * point]), float(grid[2 * point + 1]), height, width);
    float sum = 0;
    for (int dy = 0; dy < 2; ++dy)
      for (int dx = 0; dx < 2; ++dx)
        if (at.has(dx, dy)) {
          ulong pixel = ulong(image) * height * width + at.pixel(dx, dy);
          sum += at.across(dx) * at.down(dy) * float(x[pixel * channels + channel]);
        }
    out[i] = T(sum);
    """,
)
# A thread computes where a sample lies once for every 16th channel of it or so, and neighboring threads read
# neighboring channels.
FORWARD = MetalKernel(
    "grid_sample",
    input_names=["x", "grid"],
    output_names=["out"],
    header=CORNERS,
    source="""
    uint begin = thread_position_in_grid.x, point = thread_position_in_grid.y, step = threads_per_grid.x;
    int height = x_shape[1], width = x_shape[2];
    uint channels = uint(x_shape[3]), image = point / uint(grid_shape[1] * grid_shape[2]);
    Corners at(float(grid[2 * point]), float(grid[2 * point + 1]), height, width);
    ulong from[4];
    float weight[4];
    bool inside[4];
    for (int corner = 0; corner < 4; ++corner) {
      int dx = corner & 1, dy = corner >> 1;
      inside[corner] = at.has(dx, dy);
      weight[corner] = at.across(dx) * at.down(dy);
      from[corner] = (ulong(image) * height * width + at.pixel(dx, dy)) * channels;
    }
    for (uint channel = begin; channel < channels; channel += step) {
      float sum = 0;
      for (int corner = 0; corner < 4; ++corner)
        if (inside[corner]) sum += weight[corner] * float(x[from[corner] + channel]);
      out[ulong(point) * channels + channel] = T(sum);
    }
    """,
)
# Where sample `point` lies.
START = """
    int height = x_shape[1], width = x_shape[2];
    uint point = thread_position_in_grid.y, channels = uint(x_shape[3]);
    uint image = point / uint(grid_shape[1] * grid_shape[2]);
    Corners at(float(grid[2 * point]), float(grid[2 * point + 1]), height, width);
    float gx = 0, gy = 0;
"""
BACKWARD_SIMPLE = MetalKernel(
    "grid_sample_backward_simple",
    input_names=["x", "grid", "cotangent"],
    output_names=["x_grad", "grid_grad"],
    atomic_outputs=True,
    header=CORNERS,
    source=f"""
    {START}
    uint channel = thread_position_in_grid.x;
    float given = float(cotangent[ulong(point) * channels + channel]);
    for (int dy = 0; dy < 2; ++dy)
      for (int dx = 0; dx < 2; ++dx)
        if (at.has(dx, dy)) {{
          ulong place = (ulong(image) * height * width + at.pixel(dx, dy)) * channels + channel;
          float part = at.across(dx) * at.down(dy) * given;
          atomic_fetch_add_explicit(&x_grad[place], part, memory_order_relaxed);
          float value = float(x[place]) * given;
          gx += (dx ? value : -value) * at.down(dy);
          gy += (dy ? value : -value) * at.across(dx);
        }}
    atomic_fetch_add_explicit(&grid_grad[2 * point], gx * 0.5f * width, memory_order_relaxed);
    atomic_fetch_add_explicit(&grid_grad[2 * point + 1], gy * 0.5f * height, memory_order_relaxed);
    """,
)
# Whether a pixel is inside is asked once for all channels, and the same for all threads of a simdgroup, which is a
# threadgroup: no other waits for it.
BACKWARD = MetalKernel(
    "grid_sample_backward",
    input_names=["x", "grid", "cotangent"],
    output_names=["x_grad", "grid_grad"],
    atomic_outputs=True,
    header=CORNERS,
    source=f"""
    {START}
    for (int dy = 0; dy < 2; ++dy)
      for (int dx = 0; dx < 2; ++dx)
        if (at.has(dx, dy)) {{
          ulong first = (ulong(image) * height * width + at.pixel(dx, dy)) * channels;
          float weight = at.across(dx) * at.down(dy), sum = 0;
          for (uint channel = thread_position_in_grid.x; channel < channels; channel += {SIMD}) {{
            float given = float(cotangent[ulong(point) * channels + channel]);
            atomic_fetch_add_explicit(&x_grad[first + channel], weight * given, memory_order_relaxed);
            sum += float(x[first + channel]) * given;
          }}
          gx += (dx ? sum : -sum) * at.down(dy);
          gy += (dy ? sum : -sum) * at.across(dx);
        }}
    gx = simd_sum(gx);
    gy = simd_sum(gy);
    // All of a sample's channels are one simdgroup's: nobody else adds to its gradient.
    if (thread_index_in_simdgroup == 0) {{
      atomic_store_explicit(&grid_grad[2 * point], gx * 0.5f * width, memory_order_relaxed);
      atomic_store_explicit(&grid_grad[2 * point + 1], gy * 0.5f * height, memory_order_relaxed);
    }}
    """,
)


class GridSample(torch.autograd.Function):
    """The forward kernel, and the backward kernel as its derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, grid: Tensor) -> Tensor:
        ctx.save_for_backward(x, grid)
        return sample(x, grid)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        x, grid = ctx.saved_tensors
        return sample_backward(x, grid, cotangents[0])


def grid_sample(x: Tensor, grid: Tensor) -> Tensor:
    """Samples of `x` at the points of `grid`; differentiable."""
    result: Tensor = GridSample.apply(x, grid)  # type: ignore[no-untyped-call]
    return result


def sample(x: Tensor, grid: Tensor) -> Tensor:
    """Up to 16 threads a sample, as many as share its channels evenly."""
    check_arguments(x, grid)
    channels = x.shape[3]
    rounds = -(-channels // 16)
    outputs = FORWARD(
        inputs={"x": x, "grid": grid},
        template={"T": x.dtype},
        grid=(-(-channels // rounds), grid.shape[0] * grid.shape[1] * grid.shape[2], 1),
        threadgroup=(16, 16, 1),
        output_shapes={"out": (*grid.shape[:3], channels)},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


def sample_simple(x: Tensor, grid: Tensor) -> Tensor:
    """One thread a channel of a sample."""
    check_arguments(x, grid)
    shape = (*grid.shape[:3], x.shape[3])
    outputs = FORWARD_SIMPLE(
        inputs={"x": x, "grid": grid},
        template={"T": x.dtype},
        grid=(grid.shape[0] * grid.shape[1] * grid.shape[2] * x.shape[3], 1, 1),
        threadgroup=(GROUP, 1, 1),
        output_shapes={"out": shape},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


def sample_backward(x: Tensor, grid: Tensor, cotangent: Tensor, simple: bool = False) -> tuple[Tensor, Tensor]:
    """The gradients of `x` and `grid`, added up in float."""
    check_arguments(x, grid)
    shape = (*grid.shape[:3], x.shape[3])
    expect(cotangent.dtype == x.dtype, f"cotangent has to be {x.dtype} as x is, not {cotangent.dtype}")
    expect(tuple(cotangent.shape) == shape, f"cotangent has to have shape {shape}, not {tuple(cotangent.shape)}")
    outputs = (BACKWARD_SIMPLE if simple else BACKWARD)(
        inputs={"x": x, "grid": grid, "cotangent": cotangent},
        grid=(x.shape[3] if simple else SIMD, grid.shape[0] * grid.shape[1] * grid.shape[2], 1),
        threadgroup=(SIMD, GROUP // SIMD if simple else 1, 1),
        output_shapes={"x_grad": x.shape, "grid_grad": grid.shape},
        output_dtypes={"x_grad": torch.float32, "grid_grad": torch.float32},
        init_value=0,
    )
    return outputs["x_grad"].to(x.dtype), outputs["grid_grad"].to(grid.dtype)


def sample_backward_simple(x: Tensor, grid: Tensor, cotangent: Tensor) -> tuple[Tensor, Tensor]:
    return sample_backward(x, grid, cotangent, simple=True)


def check_arguments(x: Tensor, grid: Tensor) -> None:
    expect(x.dtype in FLOATS, f"x has to be float, half or bfloat16, not {x.dtype}")
    expect(x.dim() == 4 and x.numel() > 0, f"x has to be (batch, height, width, channels), not {tuple(x.shape)}")
    expect(grid.dtype == x.dtype, f"grid has to be {x.dtype} as x is, not {grid.dtype}")
    expect(grid.dim() == 4 and grid.shape[3] == 2, f"grid has to be (batch, rows, columns, 2), not {tuple(grid.shape)}")
    expect(grid.shape[0] == x.shape[0], f"grid has {grid.shape[0]} images, x has {x.shape[0]}")


def reference(x: Tensor, grid: Tensor) -> Tensor:
    wide = torch.promote_types(x.dtype, torch.float32)
    image = x.permute(0, 3, 1, 2).to(wide)
    found = torch.nn.functional.grid_sample(image, grid.to(wide), align_corners=False)
    return found.permute(0, 2, 3, 1).to(x.dtype)


def backward_reference(x: Tensor, grid: Tensor, cotangent: Tensor) -> tuple[Tensor, Tensor]:
    leaves = [x.detach().clone().requires_grad_(), grid.detach().clone().requires_grad_()]
    x_grad, grid_grad = torch.autograd.grad(reference(*leaves), leaves, cotangent)
    return x_grad, grid_grad


def sample_by_operators(x: Tensor, grid: Tensor) -> Tensor:
    """The same without a kernel, in operators of torch: each goes over memory again."""
    batch, height, width, _ = x.shape
    wide = torch.promote_types(x.dtype, torch.float32)
    image, at = torch.arange(batch, device=x.device).view(-1, 1, 1), grid.to(wide)
    px, py = ((at[..., 0] + 1) * width - 1) / 2, ((at[..., 1] + 1) * height - 1) / 2
    total = torch.zeros((), device=x.device)
    for dy in (0, 1):
        for dx in (0, 1):
            column, row = px.floor() + dx, py.floor() + dy
            inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
            weight = (1 - (px - column).abs()) * (1 - (py - row).abs()) * inside
            pixel = x[image, row.clamp(0, height - 1).long(), column.clamp(0, width - 1).long()]
            total = total + weight.unsqueeze(-1) * pixel
    return total.to(x.dtype)


def backward_by_operators(x: Tensor, grid: Tensor, cotangent: Tensor) -> tuple[Tensor, Tensor]:
    leaves = [x.detach().clone().requires_grad_(), grid.detach().clone().requires_grad_()]
    x_grad, grid_grad = torch.autograd.grad(sample_by_operators(*leaves), leaves, cotangent)
    return x_grad, grid_grad


def make_inputs(case: Case) -> Values:
    batch, height, width, channels, rows, columns = case.size
    return {
        "x": case.normal(batch, height, width, channels),
        "grid": case.uniform(batch, rows, columns, 2, low=-1.2, high=1.2),
        "cotangent": case.normal(batch, rows, columns, channels, seed=1),
    }


SCRIPT = Script(
    summary="bilinear grid_sample, forward and backward",
    kind=Kind.ATOMIC,
    stages=(
        Stage("forward", grid_sample, reference, ("x", "grid"), simple=sample_simple, operators=sample_by_operators),
        Stage(
            "backward",
            sample_backward,
            backward_reference,
            ("x", "grid", "cotangent"),
            ("x_grad", "grid_grad"),
            simple=sample_backward_simple,
            operators=backward_by_operators,
        ),
    ),
    inputs=make_inputs,
    sizes=((1, 2, 2, 1, 3, 3), (2, 5, 7, 35, 4, 3)),
    benchmark=((2, 64, 64, 64, 64, 64), (1, 63, 65, 33, 100, 101)),
    refusals=(
        Refusal("x", lambda: grid_sample(torch.zeros(2, 3, 4), torch.zeros(1, 2, 2, 2))),
        Refusal("grid", lambda: grid_sample(torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 2, 3))),
        Refusal("grid", lambda: grid_sample(torch.zeros(1, 2, 3, 4), torch.zeros(2, 2, 2, 2))),
        Refusal(
            "cotangent",
            lambda: sample_backward(torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 2, 2), torch.zeros(1, 2, 2, 3)),
        ),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
