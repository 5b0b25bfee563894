"""Scaled softmax of each row up to the diagonal."""

from __future__ import annotations

import torch
from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def masked(x: Tensor) -> Tensor:
    hidden = torch.ones(x.shape, dtype=torch.bool, device=x.device).triu(1)
    return torch.softmax((x * 0.125).masked_fill(hidden, -float("inf")), -1)


SCRIPT = Script(
    summary="Scaled softmax of each row up to the diagonal",
    kind=Kind.ROW_WISE,
    stages=(Stage("masked_softmax", to_answer, masked, ("x",)),),
    inputs=lambda case: {"x": case.normal(case.size[-1], case.size[-1])},
    sizes=((1, 1), (2, 33), (2, 65)),
    benchmark=((64, 1024),),
)
