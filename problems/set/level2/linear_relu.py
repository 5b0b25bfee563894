"""A linear layer, then ReLU."""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def layer(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.relu(torch.nn.functional.linear(x, weight, bias))


SCRIPT = Script(
    summary="A linear layer, then ReLU",
    kind=Kind.MATRIX,
    stages=(Stage("linear_relu", to_answer, layer, ("x", "weight", "bias")),),
    inputs=lambda case: {
        "x": case.normal(case.size[0], case.size[1]),
        "weight": case.normal(case.size[2], case.size[1], seed=1),
        "bias": case.normal(case.size[2], seed=2),
    },
    sizes=((1, 1, 1), (5, 7, 3), (17, 33, 19)),
    benchmark=((128, 128, 128),),
)
