"""The sum of each row."""

from __future__ import annotations

from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def sum_of(x: Tensor) -> Tensor:
    return x.sum(-1)


SCRIPT = Script(
    summary="The sum of each row",
    kind=Kind.ROW_WISE,
    stages=(Stage("sum_rows", to_answer, sum_of, ("x",)),),
    inputs=lambda case: {"x": case.normal(*case.size)},
    sizes=((1, 1), (3, 33), (5, 257)),
    benchmark=((64, 1024),),
)
