"""Each row by its root mean square, times a weight."""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def normed(x: Tensor, weight: Tensor) -> Tensor:
    return torch.nn.functional.rms_norm(x, (x.shape[-1],), weight, 1e-5)


SCRIPT = Script(
    summary="Each row by its root mean square, times a weight",
    kind=Kind.ROW_WISE,
    stages=(Stage("rms_norm", to_answer, normed, ("x", "weight")),),
    inputs=lambda case: {"x": case.normal(*case.size), "weight": case.normal(case.size[-1], seed=1)},
    sizes=((1, 1), (3, 33), (5, 257)),
    benchmark=((64, 1024),),
)
