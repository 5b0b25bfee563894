"""Sums of each row up to each element."""

from __future__ import annotations

from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def sums(x: Tensor) -> Tensor:
    return x.cumsum(-1)


SCRIPT = Script(
    summary="Sums of each row up to each element",
    kind=Kind.ROW_WISE,
    stages=(Stage("cumsum", to_answer, sums, ("x",)),),
    inputs=lambda case: {"x": case.normal(*case.size)},
    sizes=((1, 1), (3, 33), (5, 65)),
    benchmark=((64, 1024),),
)
