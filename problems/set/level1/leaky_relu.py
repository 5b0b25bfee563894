"""x, or a tenth of x where that is negative."""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def leak(x: Tensor) -> Tensor:
    return torch.nn.functional.leaky_relu(x, 0.1)


SCRIPT = Script(
    summary="x, or a tenth of x where that is negative",
    kind=Kind.ELEMENTWISE,
    stages=(Stage("leaky_relu", to_answer, leak, ("x",)),),
    inputs=lambda case: {"x": case.normal(*case.size)},
    sizes=((1,), (1023,), (3, 4, 5)),
    benchmark=((1 << 20,),),
)
