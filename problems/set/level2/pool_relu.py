"""ReLU, then means of squares of 2 x 2."""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def pooled(x: Tensor) -> Tensor:
    return torch.nn.functional.avg_pool2d(torch.relu(x), 2)


SCRIPT = Script(
    summary="ReLU, then means of squares of 2 x 2",
    kind=Kind.ELEMENTWISE,
    stages=(Stage("pool_relu", to_answer, pooled, ("x",)),),
    inputs=lambda case: {"x": case.normal(case.size[0], case.size[1], 2 * case.size[2] + 1, 2 * case.size[3])},
    sizes=((1, 1, 1, 1), (2, 3, 4, 5)),
    benchmark=((8, 16, 32, 32),),
)
