"""The largest element of each row."""

from __future__ import annotations

from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def largest(x: Tensor) -> Tensor:
    return x.amax(-1)


SCRIPT = Script(
    summary="The largest element of each row",
    kind=Kind.ROW_WISE,
    stages=(Stage("max_rows", to_answer, largest, ("x",)),),
    inputs=lambda case: {"x": case.normal(*case.size)},
    sizes=((1, 1), (3, 33), (5, 257)),
    benchmark=((64, 1024),),
)
