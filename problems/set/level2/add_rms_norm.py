"""A residual added, then each row by its root mean square."""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def normed(x: Tensor, residual: Tensor, weight: Tensor) -> Tensor:
    return torch.nn.functional.rms_norm(x + residual, (x.shape[-1],), weight, 1e-5)


SCRIPT = Script(
    summary="A residual added, then each row by its root mean square",
    kind=Kind.ROW_WISE,
    stages=(Stage("add_rms_norm", to_answer, normed, ("x", "residual", "weight")),),
    inputs=lambda case: {
        "x": case.normal(*case.size),
        "residual": case.normal(*case.size, seed=2),
        "weight": case.normal(case.size[-1], seed=1),
    },
    sizes=((1, 1), (3, 33), (5, 257)),
    benchmark=((64, 1024),),
)
