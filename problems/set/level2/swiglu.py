"""SiLU of one half of each row, times the other half."""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def gated(x: Tensor) -> Tensor:
    gate, up = x.chunk(2, -1)
    return torch.nn.functional.silu(gate) * up


SCRIPT = Script(
    summary="SiLU of one half of each row, times the other half",
    kind=Kind.ELEMENTWISE,
    stages=(Stage("swiglu", to_answer, gated, ("x",)),),
    inputs=lambda case: {"x": case.normal(*case.size[:-1], 2 * case.size[-1])},
    sizes=((1, 1), (3, 33), (5, 257)),
    benchmark=((64, 1024),),
)
