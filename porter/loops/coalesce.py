"""Joins neighboring loops that walk memory as one, which frees most kernels of the rank of their tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from porter.loops.expressions import Expr, Loop, Op, Reduction, intern, substitute, walk
from porter.loops.fusion import LoopNest, Store, rebuild_if_changed
from porter.loops.indices import divide, loop, modulo
from porter.loops.lowering import as_loop, rebuild

Exprs = tuple[Expr, ...]


def coalesce(nest: LoopNest) -> LoopNest:
    """The loop nest with as few loops as address the same elements without division."""
    stores = [replace(store, value=_coalesce_reductions(store.value)) for store in nest.stores]
    rows, stores = _join_rows(nest.rows, stores)
    return LoopNest(tuple(_join_columns(store, rows) for store in stores), rows)


def _coalesce_reductions(root: Expr) -> Expr:
    made: dict[Expr, Expr] = {}
    for each in walk(root):
        new = rebuild_if_changed(each, made)
        made[each] = _coalesce_reduction(new) if new.op is Op.REDUCE else new
    return made[root]


def _coalesce_reduction(expr: Expr) -> Expr:
    loops, operands = _join_all(expr.reduction.loops, expr.args)
    if loops == expr.reduction.loops:
        return expr
    return intern(Op.REDUCE, operands, expr.dtype, Reduction(expr.reduction.kind, loops))


def _join_all(loops: tuple[Loop, ...], exprs: Exprs) -> tuple[tuple[Loop, ...], Exprs]:
    """Joins every pair of neighbors that can be; a joined loop has the name of its outer one."""
    at = 0
    while at + 1 < len(loops):
        joined = _join(loops[at], loops[at + 1], exprs)
        if joined is None:
            at += 1
        else:
            made, exprs = joined
            loops = (*loops[:at], made, *loops[at + 2 :])
            at = max(at - 1, 0)
    return loops, exprs


def _join(outer: Loop, inner: Loop, exprs: Exprs) -> tuple[Loop, Exprs] | None:
    """Expressions with one loop for two neighbors; None if an index would have to divide it."""
    joined = loop(outer.name, outer.size * inner.size)
    changes = {outer: divide(joined, inner.size), inner: modulo(joined, inner.size)}
    made = tuple(substitute(each, changes, rebuild) for each in exprs)
    return None if _divides(made, as_loop(joined)) else (as_loop(joined), made)


def _divides(exprs: Iterable[Expr], divided: Loop) -> bool:
    return any(each.op in (Op.QUOTIENT, Op.REMAINDER) and divided in each.loops for each in walk(*exprs))


def _join_rows(rows: tuple[Loop, ...], stores: Sequence[Store]) -> tuple[tuple[Loop, ...], list[Store]]:
    """Joins the row loops, which all stores share and which must be neighbors in each."""
    exprs = tuple(each for store in stores for each in (store.place, store.value))
    made, exprs = _join_all(rows, exprs)
    pairs = zip(exprs[::2], exprs[1::2], strict=True)
    columns = [tuple(each for each in store.loops if each not in rows) for store in stores]
    return made, [
        replace(store, loops=(*made, *own), place=place, value=value)
        for store, own, (place, value) in zip(stores, columns, pairs, strict=True)
    ]


def _join_columns(store: Store, rows: tuple[Loop, ...]) -> Store:
    """Joins a store's other loops."""
    columns = tuple(each for each in store.loops if each not in rows)
    made, (place, value) = _join_all(columns, (store.place, store.value))
    return replace(store, loops=(*rows, *made), place=place, value=value)
