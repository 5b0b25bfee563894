"""Joins neighboring loops that walk memory as one, which frees most kernels of the rank of their tensors.

Loops that an index walks backwards are written as such: `(n - 1 - i) * k` for `i * -k + (n - 1) * k`. The constant of
a flat index that walks several dimensions backwards is a sum of products of sizes: its parts are numbers of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from porter.loops.expressions import Expr, Loop, Op, Reduction, intern, substitute, walk
from porter.loops.fusion import LoopNest, Store, rebuild_if_changed
from porter.loops.indices import divide, integer, loop, modulo
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
    divided = (each.loops for each in walk(*made) if each.op in (Op.QUOTIENT, Op.REMAINDER))
    return None if any(as_loop(joined) in loops for loops in divided) else (as_loop(joined), made)


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


def reverse_loops(nest: LoopNest) -> LoopNest:
    """The loop nest with such loops reversed; nothing else is simplified."""
    roots = [each for store in nest.stores for each in (store.place, store.value)]
    made: dict[Expr, Expr] = {}
    for each in walk(*roots):
        args = [made[arg] for arg in each.args]
        made[each] = _reverse(args) if each.op is Op.SUM else intern(each.op, args, each.dtype, each.attribute)

    def change(store: Store) -> Store:
        return replace(store, place=made[store.place], value=made[store.value])

    return LoopNest(tuple(map(change, nest.stores)), nest.rows)


def _reverse(terms: Sequence[Expr]) -> Expr:
    """The sum of terms; with those that go backwards reversed, if its constant allows for all of them."""
    constant = terms[-1].integer or 0
    backward = {term: found for term in terms if (found := _find_backward(term))}
    rest = constant - sum((loop.size - 1) * stride for loop, stride in backward.values())
    if not backward or rest < 0:
        return intern(Op.SUM, terms)
    kept = terms if terms[-1].integer is None else terms[:-1]
    made = [_make_reversed(*backward[each]) if each in backward else each for each in kept]
    made += [integer(rest)] if rest else []
    return made[0] if len(made) == 1 else intern(Op.SUM, made)


def _find_backward(term: Expr) -> tuple[Loop, int] | None:
    """The loop of a term that falls as it turns, and by how much."""
    if term.op is not Op.PRODUCT or not isinstance(term.args[0].attribute, Loop):
        return None
    stride = term.args[1].integer
    return (term.args[0].attribute, -stride) if stride is not None and stride < 0 else None


def _make_reversed(loop: Loop, stride: int) -> Expr:
    falling = intern(Op.PRODUCT, (intern(Op.LOOP, (), None, loop), integer(-1)))
    from_end = intern(Op.SUM, (falling, integer(loop.size - 1)))
    return from_end if stride == 1 else intern(Op.PRODUCT, (from_end, integer(stride)))
