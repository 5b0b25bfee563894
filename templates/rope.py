"""Rotary position embedding of (batch, heads, length, width): pair (i, i + width / 2) turns by p * base^(-2i / width).

Here p is the position. Simple: one pair a thread, wherever the strides say that it lies, as in a transposed (batch,
length, heads, width) tensor. Expert: dense input, so that neighboring threads read neighboring pairs.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import FLOATS, Case, Kind, Refusal, Script, Stage, Values, expect, run_script

NAMES = ["x", "first", "slope"]
ANGLE = """
    float half_turns = float(int(first) + int(position)) * (M_1_PI_F * exp(float(pair) * slope));
    float c = cospi(half_turns), s = sinpi(half_turns);
"""

SIMPLE = MetalKernel(
    "rope_simple",
    input_names=NAMES,
    output_names=["out"],
    ensure_row_contiguous=False,
    source=f"""
    uint pair = thread_position_in_grid.x;
    uint position = thread_position_in_grid.y;
    uint heads = uint(x_shape[1]), length = uint(x_shape[2]), half_width = uint(x_shape[3]) / 2;
    uint batch = thread_position_in_grid.z / heads, head = thread_position_in_grid.z % heads;
    {ANGLE}
    ulong from = batch * x_strides[0] + head * x_strides[1] + position * x_strides[2] + pair * x_strides[3];
    ulong to = ((ulong(batch) * heads + head) * length + position) * 2 * half_width + pair;
    float a = float(x[from]), b = float(x[from + half_width * x_strides[3]]);
    out[to] = T(a * c - b * s);
    out[to + half_width] = T(a * s + b * c);
    """,
)
EXPERT = MetalKernel(
    "rope",
    input_names=NAMES,
    output_names=["out"],
    source=f"""
    uint pair = thread_position_in_grid.x;
    uint position = thread_position_in_grid.y;
    ulong row = ulong(thread_position_in_grid.z) * threads_per_grid.y + position;
    {ANGLE}
    uint half_width = threads_per_grid.x;
    ulong at = row * (2 * half_width) + pair;
    float a = float(x[at]), b = float(x[at + half_width]);
    out[at] = T(a * c - b * s);
    out[at + half_width] = T(a * s + b * c);
    """,
)


def rope(x: Tensor, first: int = 0, base: float = 10000.0) -> Tensor:
    """Turns the pairs of `x`, whose first position is `first`; other strides than dense ones cost a copy."""
    check_arguments(x, base)
    return launch(EXPERT, x, first, base)


def rope_simple(x: Tensor, first: int = 0, base: float = 10000.0) -> Tensor:
    """The same, for any strides."""
    check_arguments(x, base)
    return launch(SIMPLE, x, first, base)


def launch(kernel: MetalKernel, x: Tensor, first: int, base: float) -> Tensor:
    """Runs a kernel over the pairs, positions, and heads of all batches."""
    width = x.shape[3]
    slope = -2 * math.log(base) / width
    outputs = kernel(
        inputs={"x": x, "first": first, "slope": slope},
        template={"T": x.dtype},
        grid=(width // 2, x.shape[2], x.shape[0] * x.shape[1]),
        threadgroup=(32, 4, 1),
        output_shapes={"out": x.shape},
        output_dtypes={"out": x.dtype},
    )
    result: Tensor = outputs["out"]
    return result


def check_arguments(x: Tensor, base: float) -> None:
    expect(x.dtype in FLOATS, "x has to be float, half or bfloat16, not {}", x.dtype)
    expect(x.dim() == 4, "x has to be (batch, heads, length, width), not {}", x.shape)
    expect(x.shape[3] > 0 and x.shape[3] % 2 == 0, "x has to have an even width, not {}", x.shape[3])
    expect(base > 1, "base has to be more than 1, not {}", base)


def reference(x: Tensor, first: int = 0, base: float = 10000.0) -> Tensor:
    wide = torch.promote_types(x.dtype, torch.float32)
    half_width = x.shape[3] // 2
    positions = torch.arange(first, first + x.shape[2], dtype=wide, device=x.device)
    pairs = torch.arange(half_width, dtype=wide, device=x.device)
    angles = positions[:, None] * base ** (-pairs / half_width)
    a, b = x[..., :half_width].to(wide), x[..., half_width:].to(wide)
    turned = torch.cat((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), -1)
    return turned.to(x.dtype)


def make_inputs(case: Case) -> Values:
    return {"x": case.normal(*case.size), "first": 3, "base": 10000.0}


SCRIPT = Script(
    summary="rotary position embedding of several heads",
    kind=Kind.ELEMENTWISE,
    stages=(Stage("rope", rope, reference, ("x", "first", "base"), simple=rope_simple),),
    inputs=make_inputs,
    sizes=((1, 1, 1, 2), (2, 3, 5, 34), (1, 2, 65, 16), (0, 2, 3, 4)),
    benchmark=((2, 8, 1024, 64), (1, 7, 1000, 66)),
    refusals=(
        Refusal("x", lambda: rope(torch.zeros(2, 3, 4))),
        Refusal("x", lambda: rope(torch.zeros(1, 1, 2, 3))),
        Refusal("base", lambda: rope(torch.zeros(1, 1, 2, 4), base=0.0)),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
