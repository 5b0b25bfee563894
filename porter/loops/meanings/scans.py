"""Cumulative operations, as reductions of what comes before. Source: Apple's documentation of MPSGraph."""

from __future__ import annotations

import math

from porter.core.dtypes import Kind
from porter.loops.expressions import Expr, ReductionKind, cast, select
from porter.loops.graph import Argument
from porter.loops.host_values import Number
from porter.loops.indices import add, less
from porter.loops.lowering import Element, Indices, as_int, means
from porter.loops.meanings.views import replace

_KINDS = {
    "Sum": ReductionKind.SUM, "Product": ReductionKind.PRODUCT, "Maximum": ReductionKind.MAX_NAN,
    "Minimum": ReductionKind.MIN_NAN,
}  # fmt: skip


def neutral(element: Element, kind: ReductionKind) -> Number:
    """What a reduction of this element's type starts from."""
    if kind in (ReductionKind.SUM, ReductionKind.ANY):
        return 0
    if kind in (ReductionKind.PRODUCT, ReductionKind.ALL):
        return 1
    is_max = kind in (ReductionKind.MAX, ReductionKind.MAX_NAN)
    if element.dtype.kind is Kind.FLOATING:
        return -math.inf if is_max else math.inf
    least, greatest = integer_range(element)
    return least if is_max else greatest


def integer_range(element: Element) -> tuple[int, int]:
    """The least and the greatest value of this element's type."""
    if element.dtype.kind is Kind.BOOL:
        return 0, 1
    bits = 8 * element.dtype.size
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if element.dtype.is_signed else (0, (1 << bits) - 1)


@means(*(f"cumulative{name}WithTensor:axis{more}" for name in _KINDS for more in ("", ":exclusive:reverse")))
def scan(element: Element, x: Argument, axis: Argument, exclusive: Argument = 0, reverse: Argument = 0) -> Expr:
    if not element.shape:
        return element.read(x)
    at = as_int(axis) % len(element.shape)
    kind = _KINDS[element.node.selector.removeprefix("cumulative").split("With")[0]]
    last, otherwise = element.indices[at], element.number(neutral(element, kind))

    def take(turn: Indices) -> Expr:
        own = 0 if exclusive else 1
        is_before = less(last, add(turn[0], own)) if reverse else less(turn[0], add(last, own))
        return select(is_before, cast(element.read(x, replace(element.indices, at, turn[0])), element.dtype), otherwise)

    return element.reduce(kind, [element.shape[at]], take)
