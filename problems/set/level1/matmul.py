"""The product of two matrices."""

from __future__ import annotations

import torch

from porter.kernels.script import Kind, Script, Stage, to_answer

SCRIPT = Script(
    summary="The product of two matrices",
    kind=Kind.MATRIX,
    stages=(Stage("matmul", to_answer, torch.matmul, ("a", "b")),),
    inputs=lambda case: {
        "a": case.normal(case.size[0], case.size[1]),
        "b": case.normal(case.size[1], case.size[2], seed=1),
    },
    sizes=((1, 1, 1), (5, 7, 3), (17, 33, 19)),
    benchmark=((128, 128, 128),),
)
