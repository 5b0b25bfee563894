"""A matrix of packed 4-bit numbers times a vector, without the matrix ever being unpacked in memory.

A byte holds two columns, the even one in its low bits. Each group of 32 columns has a scale and an offset: a weight is
`code * scale + offset`. Simple: one thread a row, byte by byte. Expert: one simdgroup a row, four bytes a load, and
sums of codes and of inputs, so that scale and offset are applied once a load.
"""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import FLOATS, Case, Kind, Refusal, Script, Stage, Values, expect, run_script

GROUP = 32
NAMES = ["codes", "scales", "offsets", "x", "rows", "columns"]

SIMPLE = MetalKernel(
    "dequant_matvec_simple",
    input_names=NAMES,
    output_names=["out"],
    source="""
    uint row = thread_position_in_grid.x;
    if (row >= uint(rows)) return;
    uint bytes = uint(columns) / 2, groups = uint(columns) / 32;
    float sum = 0;
    for (uint b = 0; b < bytes; ++b) {
      uint code = codes[row * bytes + b];
      float scale = float(scales[row * groups + b / 16]), offset = float(offsets[row * groups + b / 16]);
      sum += (float(code & 15) * scale + offset) * float(x[2 * b]);
      sum += (float(code >> 4) * scale + offset) * float(x[2 * b + 1]);
    }
    out[row] = T(sum);
    """,
)
EXPERT = MetalKernel(
    "dequant_matvec",
    input_names=NAMES,
    output_names=["out"],
    source="""
    uint row = thread_position_in_grid.y;
    uint lane = thread_index_in_simdgroup;
    uint words = uint(columns) / 8, groups = uint(columns) / 32;
    float sum = 0;
    for (uint w = lane; w < words; w += 32) {
      uint code = codes[row * words + w];
      float products = 0, inputs = 0;
      for (uint k = 0; k < 8; ++k) {
        float v = float(x[8 * w + k]);
        products += float((code >> (4 * k)) & 15) * v;
        inputs += v;
      }
      sum += products * float(scales[row * groups + w / 4]) + inputs * float(offsets[row * groups + w / 4]);
    }
    sum = simd_sum(sum);
    if (lane == 0) out[row] = T(sum);
    """,
)


def dequant_matvec(codes: Tensor, scales: Tensor, offsets: Tensor, x: Tensor) -> Tensor:
    """One simdgroup a row."""
    rows, columns = check_arguments(codes, scales, offsets, x)
    words = codes.contiguous().view(torch.int32)
    inputs = {"codes": words, "scales": scales, "offsets": offsets, "x": x, "rows": rows, "columns": columns}
    outputs = EXPERT(
        inputs=inputs,
        template={"T": x.dtype},
        grid=(32, rows, 1),
        threadgroup=(32, 4, 1),
        output_shapes={"out": (rows,)},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


def dequant_matvec_simple(codes: Tensor, scales: Tensor, offsets: Tensor, x: Tensor) -> Tensor:
    """One thread a row."""
    rows, columns = check_arguments(codes, scales, offsets, x)
    inputs = {"codes": codes, "scales": scales, "offsets": offsets, "x": x, "rows": rows, "columns": columns}
    outputs = SIMPLE(
        inputs=inputs,
        template={"T": x.dtype},
        grid=(rows, 1, 1),
        threadgroup=(64, 1, 1),
        output_shapes={"out": (rows,)},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


def check_arguments(codes: Tensor, scales: Tensor, offsets: Tensor, x: Tensor) -> tuple[int, int]:
    """Rows and columns of the matrix."""
    expect(x.dtype in FLOATS, f"x has to be float, half or bfloat16, not {x.dtype}")
    expect(x.dim() == 1 and x.numel() > 0, f"x has to be a vector with elements, not of shape {tuple(x.shape)}")
    columns = x.numel()
    expect(columns % GROUP == 0, f"x has to have a multiple of {GROUP} elements, not {columns}")
    expect(codes.dtype == torch.uint8, f"codes has to be uint8, not {codes.dtype}")
    expect(codes.dim() == 2, f"codes has to be a matrix, not of shape {tuple(codes.shape)}")
    expect(codes.shape[1] * 2 == columns, f"codes has {codes.shape[1] * 2} columns, x has {columns}")
    shape = (codes.shape[0], columns // GROUP)
    for name, tensor in (("scales", scales), ("offsets", offsets)):
        expect(tensor.dtype == x.dtype, f"{name} has to be {x.dtype} as x is, not {tensor.dtype}")
        expect(tuple(tensor.shape) == shape, f"{name} has to have shape {shape}, not {tuple(tensor.shape)}")
    return codes.shape[0], columns


def reference(codes: Tensor, scales: Tensor, offsets: Tensor, x: Tensor) -> Tensor:
    wide = torch.promote_types(x.dtype, torch.float32)
    numbers = torch.stack((codes & 15, codes >> 4), -1).reshape(codes.shape[0], -1, GROUP).to(wide)
    weights = numbers * scales[..., None].to(wide) + offsets[..., None].to(wide)
    return (weights.reshape(codes.shape[0], -1) @ x.to(wide)).to(x.dtype)


def make_inputs(case: Case) -> Values:
    rows, columns = case.size
    return {
        "codes": case.integers(rows, columns // 2, below=256, dtype=torch.uint8),
        "scales": case.uniform(rows, columns // GROUP, low=0.01, high=0.1),
        "offsets": case.uniform(rows, columns // GROUP, low=-1, high=1, seed=1),
        "x": case.normal(columns),
    }


def try_codes(codes: Tensor, columns: int, groups: int = 1) -> Tensor:
    """A call with one row of zeros."""
    return dequant_matvec(codes, torch.zeros(1, groups), torch.zeros(1, groups), torch.zeros(columns))


SCRIPT = Script(
    summary="packed 4-bit matrix times a vector",
    kind=Kind.ROW_WISE,
    stages=(
        Stage(
            "dequant_matvec",
            dequant_matvec,
            reference,
            ("codes", "scales", "offsets", "x"),
            simple=dequant_matvec_simple,
        ),
    ),
    inputs=make_inputs,
    sizes=((1, 32), (7, 96), (3, 1056)),
    benchmark=((4096, 4096), (1001, 4064)),
    refusals=(
        Refusal("codes", lambda: try_codes(torch.zeros(1, 16), 32)),
        Refusal("codes", lambda: try_codes(torch.zeros(1, 17, dtype=torch.uint8), 32)),
        Refusal("x", lambda: try_codes(torch.zeros(1, 10, dtype=torch.uint8), 20)),
        Refusal("scales", lambda: try_codes(torch.zeros(1, 16, dtype=torch.uint8), 32, 2)),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
