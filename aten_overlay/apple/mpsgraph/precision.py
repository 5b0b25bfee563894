"""The precision that a recorded graph runs in: as its types say, or in others, which tell rounding from meaning."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph.types import MPS

# Operations whose last argument is the type that they make, by how their selectors start.
_TYPED = ("castTensor:", "constantWithScalar:", "constantWithRealPart:")
_PLACES = 2  # as exact as Metal's library functions have to be, and more than a sum or a product may be off
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


def _scaled(places: int) -> Callable[[Tensor], Tensor]:
    """Every float larger in magnitude by so many last places, or smaller."""

    def scale(value: Tensor) -> Tensor:
        if not value.is_floating_point():
            return value
        return (value.double() * (1 + places * torch.finfo(value.dtype).eps)).to(value.dtype)

    return scale


def _as_they_are(_: str, arguments: list[Any]) -> list[Any]:
    return arguments


AS_WRITTEN = Precision(lambda value: value, _as_they_are)
# Constants and casts are of single precision at least: what still differs is not for the precision of the graph.
IN_DOUBLE = Precision(_doubled, _in_single)
# Every operation rounds in one direction: what lies between the two is within what rounding allows.
LARGER, SMALLER = (Precision(_scaled(places), _as_they_are) for places in (_PLACES, -_PLACES))
