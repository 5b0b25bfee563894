"""Rows as columns."""

from __future__ import annotations

from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def turned(x: Tensor) -> Tensor:
    return x.t().contiguous()


SCRIPT = Script(
    summary="Rows as columns",
    kind=Kind.ELEMENTWISE,
    stages=(Stage("transpose", to_answer, turned, ("x",)),),
    inputs=lambda case: {"x": case.normal(*case.size)},
    sizes=((1, 1), (3, 33), (5, 257)),
    benchmark=((64, 1024),),
)
