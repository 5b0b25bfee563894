"""A symbolic program at the numbers of one call: loop nests that can be evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from porter.core.dtypes import FLOAT
from porter.core.errors import PorterError
from porter.loops.expressions import Expr, Loop, Op, Reduction, intern, walk
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import Arguments, Given, Named, Number, describe, evaluate
from porter.loops.rounding import round_number


def instantiate(nests: Sequence[LoopNest], call: Arguments, in_single: bool = False) -> tuple[LoopNest, ...]:
    """The nests with the numbers of a call, and without stores that it does not ask for.

    Loops may have a size of 0 or 1. With `in_single`, numbers have the precision that kernels take them in. Raises
    PTR366 for one without value.
    """
    return tuple(_Instance(call, in_single).instantiate_nest(nest) for nest in nests)


class _Instance:
    def __init__(self, call: Arguments, in_single: bool) -> None:
        self._call, self._in_single = call, in_single

    def instantiate_nest(self, nest: LoopNest) -> LoopNest:
        rows = tuple(map(self._loop, nest.rows))
        stores = (each for each in nest.stores if each.guard is None or self._number(each.guard))
        return LoopNest(tuple(map(self._store, stores)), rows)

    def _store(self, store: Store) -> Store:
        made: dict[Expr, Expr] = {}
        for each in walk(store.place, store.value):
            made[each] = self._rebuild(each, [made[arg] for arg in each.args])
        loops = tuple(map(self._loop, store.loops))
        size = prod(each.size for each in loops)
        return replace(store, guard=None, size=size, loops=loops, place=made[store.place], value=made[store.value])

    def _rebuild(self, expr: Expr, args: Sequence[Expr]) -> Expr:
        attribute = expr.attribute
        if expr.op is Op.SELECT and (flag := find_flag(expr)):
            return args[1 if self._number(flag) else 2]
        if isinstance(attribute, Named):
            attribute = self._number(attribute)
        elif isinstance(attribute, Loop):
            attribute = self._loop(attribute)
        elif isinstance(attribute, Reduction):
            attribute = Reduction(attribute.kind, tuple(map(self._loop, attribute.loops)))
        return intern(expr.op, args, expr.dtype, attribute)

    def _loop(self, loop: Loop) -> Loop:
        return Loop(loop.name, int(self._number(loop.number))) if loop.number else loop

    def _number(self, named: Named) -> Number:
        found = evaluate(named.value, self._call)
        if found is None:
            what = f"`{describe(named.value)}` has no value in a call of the case"
            raise PorterError("PTR366", what, hint="See docs/errors/PTR366.md.")
        if isinstance(named.example, int):
            return type(named.example)(found)
        return round_number(found, FLOAT) if self._in_single else float(found)


def find_flag(expr: Expr) -> Named | None:
    """What chooses by whether a tensor is given; None of another choice."""
    attribute = expr.args[0].attribute if expr.args else None
    return attribute if isinstance(attribute, Named) and isinstance(attribute.value, Given) else None
