"""GELU in its tanh form."""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def gelu_of(x: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x, approximate="tanh")


SCRIPT = Script(
    summary="GELU in its tanh form",
    kind=Kind.ELEMENTWISE,
    stages=(Stage("gelu", to_answer, gelu_of, ("x",)),),
    inputs=lambda case: {"x": case.normal(*case.size)},
    sizes=((1,), (1023,), (3, 4, 5)),
    benchmark=((1 << 20,),),
)
