"""What the kernel computes, in one line."""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels import MetalKernel
from porter.kernels.script import FLOATS, Case, Kind, Refusal, Script, Stage, Values, expect, run_script

# The body: what one thread does. `x` and `out` are pointers, `T` is the type that `template` gives.
KERNEL = MetalKernel(
    "blank",
    input_names=["x"],
    output_names=["out"],
    source="""
    uint i = thread_position_in_grid.x;
    out[i] = T(float(x[i]));
    """,
)


def blank(x: Tensor) -> Tensor:
    """What callers use: it checks its arguments, and says how many threads run and what they write."""
    expect(x.dtype in FLOATS, "x has to be float, half or bfloat16, not {}", x.dtype)
    outputs = KERNEL(
        inputs={"x": x},
        template={"T": x.dtype},
        grid=(x.numel(), 1, 1),
        threadgroup=(256, 1, 1),
        output_shapes={"out": x.shape},
        output_dtypes={"out": x.dtype},
    )
    return outputs["out"]


def blank_reference(x: Tensor) -> Tensor:
    """The same in torch: `check` compares with it, on the CPU and in float64 too."""
    return x.clone()


def make_inputs(case: Case) -> Values:
    """The arguments of a case, by name. `case` has the size, the type and the layout."""
    return {"x": case.normal(*case.size)}


SCRIPT = Script(
    summary="a kernel of your own, to fill in",
    kind=Kind.ELEMENTWISE,
    stages=(Stage("blank", blank, blank_reference, ("x",)),),
    inputs=make_inputs,
    sizes=((1,), (257,), (3, 5, 7), (0,)),
    benchmark=((1 << 22,),),
    refusals=(Refusal("x", lambda: blank(torch.zeros(3, dtype=torch.int32))),),
)

if __name__ == "__main__":
    run_script(__file__)
