"""The mean of the squared differences of each row."""

from __future__ import annotations

from torch import Tensor

from porter.kernels.script import Kind, Script, Stage, to_answer


def error_of(x: Tensor, y: Tensor) -> Tensor:
    return (x - y).pow(2).mean(-1)


SCRIPT = Script(
    summary="The mean of the squared differences of each row",
    kind=Kind.ROW_WISE,
    stages=(Stage("squared_error", to_answer, error_of, ("x", "y")),),
    inputs=lambda case: {"x": case.normal(*case.size), "y": case.normal(*case.size, seed=1)},
    sizes=((1, 1), (3, 33), (5, 257)),
    benchmark=((64, 1024),),
)
