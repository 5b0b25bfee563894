"""The precision that a recorded graph runs in: as its types say, or in double, which tells rounding from meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph.types import MPS

# Operations whose last argument is the type that they make, by how their selectors start.
_TYPED = ("castTensor:", "constantWithScalar:", "constantWithRealPart:")
_SINGLE = {
    MPS[torch.float16]: MPS[torch.float32],
    MPS[torch.bfloat16]: MPS[torch.float32],
    MPS[torch.complex32]: MPS[torch.complex64],
}


@dataclass(frozen=True)
class Precision:
    """What becomes of every value that is fed or computed, and of the arguments of an operation, by its selector."""

    value: Callable[[Tensor], Tensor]
    arguments: Callable[[str, list[Any]], list[Any]]


def _doubled(value: Tensor) -> Tensor:
    if value.is_complex():
        return value.to(torch.complex128)
    return value.to(torch.float64) if value.is_floating_point() else value


def _in_single(selector: str, arguments: list[Any]) -> list[Any]:
    if not selector.startswith(_TYPED):
        return arguments
    return [*arguments[:-1], _SINGLE.get(arguments[-1], arguments[-1])]


AS_WRITTEN = Precision(lambda value: value, lambda _, arguments: arguments)
IN_DOUBLE = Precision(_doubled, _in_single)
