"""Softmax of each row."""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def softmax_of(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


SCRIPT = Script(
    summary="Softmax of each row",
    kind=Kind.ROW_WISE,
    stages=(Stage("softmax", to_answer, softmax_of, ("x",)),),
    inputs=lambda case: {"x": case.uniform(*case.size, low=-100.0, high=100.0)},  # exp(100) is no float
    sizes=((1, 1), (3, 33), (5, 257)),
    benchmark=((64, 1024),),
)
