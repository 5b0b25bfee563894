"""The product of a matrix and a vector."""

from __future__ import annotations

import torch

from porter.kernels.script import Kind, Script, Stage, to_answer

SCRIPT = Script(
    summary="The product of a matrix and a vector",
    kind=Kind.MATRIX,
    stages=(Stage("matvec", to_answer, torch.mv, ("a", "v")),),
    inputs=lambda case: {"a": case.normal(*case.size), "v": case.normal(case.size[-1], seed=1)},
    sizes=((1, 1), (3, 33), (5, 257)),
    benchmark=((64, 1024),),
)
