"""Loops that an index walks backwards, written as such: `(n - 1 - i) * k` for `i * -k + (n - 1) * k`.

The constant of a flat index that walks several dimensions backwards is a sum of products of sizes. Its parts are
numbers of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from porter.loops.expressions import Expr, Loop, Op, intern, walk
from porter.loops.fusion import LoopNest, Store
from porter.loops.indices import integer


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
