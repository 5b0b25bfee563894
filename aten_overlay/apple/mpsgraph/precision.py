"""How a recorded graph runs: as written, or in a way that tells rounding, or a lost NaN, from a real difference."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from aten_overlay.apple.mpsgraph import semantics
from aten_overlay.apple.mpsgraph.types import MPS, torch_type

_CAST = "castTensor:toType"
# Operations whose last argument is the type that they make, by how their selectors start.
_TYPED = (_CAST, "constantWithScalar:", "constantWithRealPart:")
# Selectors of operations that leave NaN out, and of those that do the same and keep it.
_KEEPING_NAN = (
    (re.compile(r"^(reductionM(?:ax|in)imum)(?=WithTensor:)"), r"\1PropagateNaN"),
    (re.compile(r"^(m(?:ax|in)imum)(?=WithPrimaryTensor:)"), r"\1WithNaNPropagation"),
)
_ULPS = 2  # more than a sum or a product may be off, and no more than a library function
_SINGLE = {
    MPS[torch.float16]: MPS[torch.float32],
    MPS[torch.bfloat16]: MPS[torch.float32],
    MPS[torch.complex32]: MPS[torch.complex64],
}


@dataclass(frozen=True)
class Precision:
    """How values that are fed are converted, and how an operation (its selector) computes its results."""

    convert: Callable[[Tensor], Tensor]
    compute: Callable[[str, list[Any]], tuple[Tensor, ...]]


def _as_it_is(value: Tensor) -> Tensor:
    return value


def _as_written(selector: str, arguments: list[Any]) -> tuple[Tensor, ...]:
    made = semantics.find(selector)(*arguments)
    return tuple(made) if isinstance(made, (tuple, list)) else (made,)


def _to_double(value: Tensor) -> Tensor:
    if value.is_complex():
        return value.to(torch.complex128)
    return value.to(torch.float64) if value.is_floating_point() else value


def _in_double(selector: str, arguments: list[Any]) -> tuple[Tensor, ...]:
    if selector == _CAST and torch_type(arguments[1]).is_floating_point and not arguments[0].is_complex():
        return (arguments[0].to(torch.float64),)
    if selector.startswith(_TYPED):
        arguments = [*arguments[:-1], _SINGLE.get(arguments[-1], arguments[-1])]
    return tuple(_to_double(value) for value in _as_written(selector, arguments))


def _tensors_to_double(value: Any) -> Any:
    if isinstance(value, list):
        return [_tensors_to_double(each) for each in value]
    return _to_double(value) if isinstance(value, Tensor) else value


def _round_away(ulps: int) -> Callable[[str, list[Any]], tuple[Tensor, ...]]:
    """Floats that an operation rounds grow in magnitude by `ulps` units in the last place; others stay exact."""

    def scaled(value: Tensor, exact: Tensor) -> Tensor:
        if not value.is_floating_point():
            return value
        moved = (value.double() * (1 + ulps * torch.finfo(value.dtype).eps)).to(value.dtype)
        return torch.where(value.double() == exact, value, moved)

    def made(selector: str, arguments: list[Any]) -> tuple[Tensor, ...]:
        exact = _in_double(selector, _tensors_to_double(arguments))
        return tuple(scaled(*both) for both in zip(_as_written(selector, arguments), exact, strict=True))

    return made


def _keeping_nan(selector: str, arguments: list[Any]) -> tuple[Tensor, ...]:
    for pattern, keeping in _KEEPING_NAN:
        selector = pattern.sub(keeping, selector)
    return _as_written(selector, arguments)


AS_WRITTEN = Precision(_as_it_is, _as_written)
# A cast to floats rounds nothing, and constants are of single precision at least: what still differs is not for the
# precision of the graph.
IN_DOUBLE = Precision(_to_double, _in_double)
# All rounding goes one way: what lies between the two is within what rounding allows.
LARGER, SMALLER = (Precision(_as_it_is, _round_away(ulps)) for ulps in (_ULPS, -_ULPS))
# Every maximum and minimum is NaN where an operand is.
KEEPING_NAN = Precision(_as_it_is, _keeping_nan)
