"""What the threads of a row compute alike of its reductions: a kernel has it in variables before its loops."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from porter.loops.expressions import Expr, Loop, Op, ReductionKind, walk


def find_uniform(root: Expr, rows: frozenset[Loop], bound: Collection[Expr]) -> Iterator[Expr]:
    """The largest values within one that depend on reductions and on no loop but those of rows; means come first."""
    stack = [root]
    while stack:
        each = stack.pop()
        if each in bound:
            continue
        if each.op is Op.CALL and each.loops <= rows and any(part in bound for part in walk(each)):
            yield from (part for part in walk(each) if name_uniform(part) != "value" and part is not each)
            yield each
        else:
            stack += each.args


def name_uniform(value: Expr) -> str:
    """What a value is called: the mean of a row, its variance, or any other."""
    total = value.args[0] if value.op is Op.CALL and value.attribute == "division" else None
    if total is None or total.op is not Op.REDUCE or total.reduction.kind is not ReductionKind.SUM:
        return "value"
    if value.args[1].op is not Op.NUMBER:
        return "value"
    return "variance" if total.args[0].attribute == "square" else "mean"
