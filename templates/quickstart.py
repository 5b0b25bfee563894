"""Fill a tensor, then a * x + y: the smallest kernels there are."""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import FLOATS, Case, Kind, Refusal, Script, Stage, Values, expect, run_script

GROUP = 256

FILL = MetalKernel(
    "fill",
    input_names=["value"],
    output_names=["out"],
    source="out[thread_position_in_grid.x] = T(value);",
)
AXPY = MetalKernel(
    "axpy",
    input_names=["a", "x", "y"],
    output_names=["out"],
    source="""
    uint i = thread_position_in_grid.x;
    out[i] = T(a * float(x[i]) + float(y[i]));
    """,
)


def fill(x: Tensor, a: float) -> Tensor:
    """A dense tensor like `x` with `a` in every element."""
    expect(x.dtype in FLOATS, "x has to be float, half or bfloat16, not {}", x.dtype)
    outputs = FILL(
        inputs={"value": float(a)},
        template={"T": x.dtype},
        grid=(x.numel(), 1, 1),
        threadgroup=(GROUP, 1, 1),
        output_shapes={"out": x.shape},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


def axpy(a: float, x: Tensor, y: Tensor) -> Tensor:
    """a * x + y, computed in float."""
    expect(x.dtype in FLOATS, "x has to be float, half or bfloat16, not {}", x.dtype)
    expect(y.dtype == x.dtype, "y has to be {} as x is, not {}", x.dtype, y.dtype)
    expect(y.shape == x.shape, "y has to have the shape {} of x, not {}", x.shape, y.shape)
    outputs = AXPY(
        inputs={"a": float(a), "x": x, "y": y},
        template={"T": x.dtype},
        grid=(x.numel(), 1, 1),
        threadgroup=(GROUP, 1, 1),
        output_shapes={"out": x.shape},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


def fill_reference(x: Tensor, a: float) -> Tensor:
    return torch.full(x.shape, a, dtype=x.dtype, device=x.device)


def axpy_reference(a: float, x: Tensor, y: Tensor) -> Tensor:
    return torch.add(y, x, alpha=a)


def make_inputs(case: Case) -> Values:
    return {"a": 0.75, "x": case.normal(*case.size), "y": case.normal(*case.size, seed=1)}


SCRIPT = Script(
    summary="fill, and a * x + y",
    kind=Kind.ELEMENTWISE,
    stages=(
        Stage("fill", fill, fill_reference, ("x", "a"), ("filled",)),
        Stage("axpy", axpy, axpy_reference, ("a", "x", "y")),
    ),
    inputs=make_inputs,
    sizes=((1,), (257,), (3, 5, 7), (0,)),
    benchmark=((1 << 22,), (1000, 1001)),
    refusals=(
        Refusal("x", lambda: fill(torch.zeros(3, dtype=torch.int32), 1.0)),
        Refusal("y", lambda: axpy(1.0, torch.zeros(3), torch.zeros(4))),
        Refusal("y", lambda: axpy(1.0, torch.zeros(3), torch.zeros(3, dtype=torch.float16))),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
