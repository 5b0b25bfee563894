"""A convolution of 3 x 3 with zeros around, a bias, then ReLU."""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def convolved(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.relu(torch.nn.functional.conv2d(x, weight, bias, padding=1))


SCRIPT = Script(
    summary="A convolution of 3 x 3 with zeros around, a bias, then ReLU",
    kind=Kind.MATRIX,
    stages=(Stage("conv_bias_relu", to_answer, convolved, ("x", "weight", "bias")),),
    inputs=lambda case: {
        "x": case.normal(case.size[0], case.size[1], case.size[2], 7),
        "weight": case.normal(case.size[3], case.size[1], 3, 3, seed=1),
        "bias": case.normal(case.size[3], seed=2),
    },
    sizes=((1, 1, 1, 1), (2, 3, 6, 4)),
    benchmark=((4, 8, 32, 8),),
)
