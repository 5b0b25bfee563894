"""MLX's complex example: grid_sample and its gradient as two kernels, against torch's own.

Its document cut the calls that make the kernels; array calls of MLX are calls of torch.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from porter.kernels import MetalKernel, custom_function


def grid_sample_ref(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    _, height, width, _ = x.shape
    ix = ((grid[..., 0] + 1) * width - 1) / 2
    iy = ((grid[..., 1] + 1) * height - 1) / 2
    left, top = torch.floor(ix).to(torch.int32), torch.floor(iy).to(torch.int32)
    total = torch.zeros(*grid.shape[:3], x.shape[3], device=x.device)
    batch = torch.arange(x.shape[0], device=x.device)[:, None, None]
    for row in (top, top + 1):
        for column in (left, left + 1):
            weight = (1 - (ix - column).abs()) * (1 - (iy - row).abs())
            inside = (row >= 0) & (row <= height - 1) & (column >= 0) & (column <= width - 1)
            value = x[batch, row.clamp(0, height - 1), column.clamp(0, width - 1), :]
            total = total + (weight * inside)[..., None] * value
    return total


GRID_SAMPLE = """
        uint elem = thread_position_in_grid.x;
        int H = x_shape[1];
        int W = x_shape[2];
        int C = x_shape[3];
        int gH = grid_shape[1];
        int gW = grid_shape[2];

        int w_stride = C;
        int h_stride = W * w_stride;
        int b_stride = H * h_stride;

        uint grid_idx = elem / C * 2;
        float ix = ((grid[grid_idx] + 1) * W - 1) / 2;
        float iy = ((grid[grid_idx + 1] + 1) * H - 1) / 2;

        int ix_nw = floor(ix);
        int iy_nw = floor(iy);

        int ix_ne = ix_nw + 1;
        int iy_ne = iy_nw;

        int ix_sw = ix_nw;
        int iy_sw = iy_nw + 1;

        int ix_se = ix_nw + 1;
        int iy_se = iy_nw + 1;

        T nw = (ix_se - ix)    * (iy_se - iy);
        T ne = (ix    - ix_sw) * (iy_sw - iy);
        T sw = (ix_ne - ix)    * (iy    - iy_ne);
        T se = (ix    - ix_nw) * (iy    - iy_nw);

        int batch_idx = elem / C / gH / gW * b_stride;
        int channel_idx = elem % C;
        int base_idx = batch_idx + channel_idx;

        T I_nw = x[base_idx + iy_nw * h_stride + ix_nw * w_stride];
        T I_ne = x[base_idx + iy_ne * h_stride + ix_ne * w_stride];
        T I_sw = x[base_idx + iy_sw * h_stride + ix_sw * w_stride];
        T I_se = x[base_idx + iy_se * h_stride + ix_se * w_stride];

        I_nw = iy_nw >= 0 && iy_nw <= H - 1 && ix_nw >= 0 && ix_nw <= W - 1 ? I_nw : 0;
        I_ne = iy_ne >= 0 && iy_ne <= H - 1 && ix_ne >= 0 && ix_ne <= W - 1 ? I_ne : 0;
        I_sw = iy_sw >= 0 && iy_sw <= H - 1 && ix_sw >= 0 && ix_sw <= W - 1 ? I_sw : 0;
        I_se = iy_se >= 0 && iy_se <= H - 1 && ix_se >= 0 && ix_se <= W - 1 ? I_se : 0;

        out[elem] = nw * I_nw + ne * I_ne + sw * I_sw + se * I_se;
"""

# One corner of the backward pass: its index, its weight, and the signs and factors of the derivatives of that weight.
_CORNER = """
            if ({y} >= 0 && {y} <= H - 1 && {x} >= 0 && {x} <= W - 1) {{
                int offset = base_idx + {y} * h_stride + {x} * w_stride;
                atomic_fetch_add_explicit(&x_grad[offset], {weight} * cot, memory_order_relaxed);
                T I = x[offset];
                gix {sx}= I * {fx} * cot;
                giy {sy}= I * {fy} * cot;
            }}
"""
_CORNERS = "".join(
    _CORNER.format(weight=w, x=f"ix_{w}", y=f"iy_{w}", sx=sx, fx=fx, sy=sy, fy=fy)
    for w, sx, fx, sy, fy in (
        ("nw", "-", "(iy_se - iy)", "-", "(ix_se - ix)"),
        ("ne", "+", "(iy_sw - iy)", "-", "(ix - ix_sw)"),
        ("sw", "-", "(iy - iy_ne)", "+", "(ix_ne - ix)"),
        ("se", "+", "(iy - iy_nw)", "+", "(ix - ix_nw)"),
    )
)
_HEAD = GRID_SAMPLE[: GRID_SAMPLE.index("        T I_nw")]
GRID_SAMPLE_VJP = (
    _HEAD.replace(
        "        int gH",
        "        // Pad C to the nearest larger simdgroup size multiple\n"
        "        int C_padded = ceildiv(C, threads_per_simdgroup) * threads_per_simdgroup;\n        int gH",
        1,
    )
    .replace("elem / C", "elem / C_padded")
    .replace("elem % C", "elem % C_padded")
    + """
        T gix = T(0);
        T giy = T(0);
        if (channel_idx < C) {
            int cot_index = elem / C_padded * C + channel_idx;
            T cot = cotangent[cot_index];
"""
    + _CORNERS
    + """
        }
        T gix_mult = W / 2;
        T giy_mult = H / 2;

        // Reduce across each simdgroup first.
        // This is much faster than relying purely on atomics.
        gix = simd_sum(gix);
        giy = simd_sum(giy);

        if (thread_index_in_simdgroup == 0) {
            atomic_fetch_add_explicit(&grid_grad[grid_idx], gix * gix_mult, memory_order_relaxed);
            atomic_fetch_add_explicit(&grid_grad[grid_idx + 1], giy * giy_mult, memory_order_relaxed);
        }
"""
)


@custom_function
def grid_sample(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    assert x.ndim == 4, "`x` must be 4D."
    assert grid.ndim == 4, "`grid` must be 4D."
    B, _, _, C = x.shape
    _, gN, gM, D = grid.shape
    out_shape = (B, gN, gM, C)
    assert D == 2, "Last dim of `grid` must be size 2."
    kernel = MetalKernel(name="grid_sample", source=GRID_SAMPLE)
    outputs = kernel(
        inputs={"x": x, "grid": grid},
        template={"T": x.dtype},
        output_shapes={"out": out_shape},
        output_dtypes={"out": x.dtype},
        grid=(B * gN * gM * C, 1, 1),
        threadgroup=(256, 1, 1),
    )
    assert isinstance(outputs, dict)
    return outputs["out"]


@grid_sample.vjp
def grid_sample_vjp(primals: Any, cotangent: torch.Tensor, _: Any) -> tuple[torch.Tensor, torch.Tensor]:
    x, grid = primals
    B, _, _, C = x.shape
    _, gN, gM, D = grid.shape
    assert D == 2, "Last dim of `grid` must be size 2."
    kernel = MetalKernel(name="grid_sample_grad", source=GRID_SAMPLE_VJP, atomic_outputs=True)
    # pad the output channels to simd group size
    # so that our `simd_sum`s don't overlap.
    simdgroup_size = 32
    C_padded = (C + simdgroup_size - 1) // simdgroup_size * simdgroup_size
    grid_size = B * gN * gM * C_padded
    outputs = kernel(
        inputs={"x": x, "grid": grid, "cotangent": cotangent},
        template={"T": x.dtype},
        output_shapes={"x_grad": x.shape, "grid_grad": grid.shape},
        output_dtypes={"x_grad": x.dtype, "grid_grad": x.dtype},
        grid=(grid_size, 1, 1),
        threadgroup=(256, 1, 1),
        init_value=0,
    )
    assert isinstance(outputs, dict)
    return outputs["x_grad"], outputs["grid_grad"]


def sampled(channels: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(channels)
    return torch.randn(2, 6, 8, channels), torch.rand(2, 5, 7, 2) * 2.4 - 1.2, torch.randn(2, 5, 7, channels)


def of_torch(x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
    found = torch.nn.functional.grid_sample(x.permute(0, 3, 1, 2), grid, align_corners=False)
    return found.permute(0, 2, 3, 1)


@pytest.mark.parametrize("channels", [1, 5, 32, 45])
def test_003_grid_sample(channels: int) -> None:
    x, grid, _ = sampled(channels)
    got = grid_sample(x.to("mps"), grid.to("mps")).cpu()
    assert torch.allclose(got, of_torch(x, grid), atol=1e-5)
    assert torch.allclose(got, grid_sample_ref(x, grid), atol=1e-5)


@pytest.mark.parametrize("channels", [1, 5, 32, 45])
def test_003_grid_sample_vjp(channels: int) -> None:
    x, grid, cotangent = sampled(channels)
    expected = [t.double().requires_grad_() for t in (x, grid)]
    of_torch(*expected).backward(cotangent.double())
    given = [t.to("mps").requires_grad_() for t in (x, grid)]
    grid_sample(*given).backward(cotangent.to("mps"))
    for ours, theirs in zip(given, expected, strict=True):
        assert ours.grad is not None and theirs.grad is not None
        assert torch.allclose(ours.grad.cpu().double(), theirs.grad, rtol=1e-4, atol=1e-4)
