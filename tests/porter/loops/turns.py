"""Index expressions in one turn of their loops."""

from __future__ import annotations

from collections.abc import Mapping

from porter.loops.expressions import Expr, Loop, Op


def compute(index: Expr, turns: Mapping[Loop, int]) -> int:
    """The value of an index, or 0 or 1 for a condition, in one turn of the loops. Reads no tensor."""
    if isinstance(index.attribute, Loop):
        return turns[index.attribute]
    if index.op in (Op.INTEGER, Op.NUMBER):
        return int(index.attribute)  # type: ignore[call-overload, no-any-return]
    a, *rest = (compute(arg, turns) for arg in index.args)
    match index.op:
        case Op.SUM:
            return a + sum(rest)
        case Op.PRODUCT:
            return a * rest[0]
        case Op.QUOTIENT:
            return a // rest[0]
        case Op.REMAINDER:
            return a % rest[0]
        case Op.LEAST:
            return min(a, rest[0])
        case Op.GREATEST:
            return max(a, rest[0])
        case Op.DISTANCE:
            return abs(a)
        case Op.LESS:
            return int(a < rest[0])
        case Op.EQUAL:
            return int(a == rest[0])
        case Op.BOTH:
            return int(a and rest[0])
    raise AssertionError(index.op)
