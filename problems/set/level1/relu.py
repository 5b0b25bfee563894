"""The greater of x and 0."""

from __future__ import annotations

import torch

from porter.kernels.script import Kind, Script, Stage, to_answer

SCRIPT = Script(
    summary="The greater of x and 0",
    kind=Kind.ELEMENTWISE,
    stages=(Stage("relu", to_answer, torch.relu, ("x",)),),
    inputs=lambda case: {"x": case.normal(*case.size)},
    sizes=((1,), (1023,), (3, 4, 5)),
    benchmark=((1 << 20,),),
)
