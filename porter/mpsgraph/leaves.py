"""The numbers in an expression, which may differ between two runs of the same code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

from porter.core import dtypes
from porter.mpsgraph.graph import Call, Cast, Constant, Expr, Literal, nodes, parts
from porter.mpsgraph.printing import format_expr

_HOLE = Literal("_", dtypes.FLOAT)


def leaves(expr: Expr) -> tuple[Constant | Literal, ...]:
    """Returns the constants and literals of an expression, from left to right, shared ones once per use."""
    return tuple(node for node in nodes(expr) if isinstance(node, (Constant, Literal)))


def replace_leaves(expr: Expr, new: Iterator[Expr]) -> Expr:
    """Returns the expression with its constants and literals replaced by `new`, in the order of `leaves`."""
    if isinstance(expr, (Constant, Literal)):
        return next(new)
    if isinstance(expr, Cast):
        return replace(expr, arg=replace_leaves(expr.arg, new))
    if isinstance(expr, Call):
        return replace(expr, args=tuple(replace_leaves(arg, new) for arg in expr.args))
    return expr


def skeleton(expr: Expr) -> str:
    """Returns a text that is the same for two expressions that only differ in their numbers."""
    return format_expr(replace_leaves(expr, iter(lambda: _HOLE, None)))


def size(expr: Expr, at_most: int) -> int:
    """Returns the number of nodes when shared parts are written out, counted up to `at_most`."""
    known: dict[int, int] = {}

    def counted(node: Expr) -> int:
        if id(node) not in known:
            known[id(node)] = reduce(lambda total, part: min(at_most, total + counted(part)), parts(node), 1)
        return known[id(node)]

    return counted(expr)
