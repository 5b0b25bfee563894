"""The logarithm of the softmax of each row."""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def log_softmax_of(x: Tensor) -> Tensor:
    return torch.log_softmax(x, -1)


SCRIPT = Script(
    summary="The logarithm of the softmax of each row",
    kind=Kind.ROW_WISE,
    stages=(Stage("log_softmax", to_answer, log_softmax_of, ("x",)),),
    inputs=lambda case: {"x": case.normal(*case.size)},
    sizes=((1, 1), (3, 33), (5, 257)),
    benchmark=((64, 1024),),
)
