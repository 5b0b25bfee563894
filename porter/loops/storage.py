"""Programs as JSON: the expressions of a nest, which share operands, are one list in which operands come first."""

from __future__ import annotations

from dataclasses import dataclass

from porter.core.codec import store_as
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.loops.expressions import Buffer, Expr, Loop, Op, Reduction, intern, walk
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import Named

_Attribute = Named | Loop | Buffer | Reduction


@dataclass(frozen=True)
class _StoredExpr:
    """An expression, with a `plain` attribute or another."""

    op: Op
    args: tuple[int, ...]
    dtype: DType | None
    plain: bool | int | float | str | None
    attribute: _Attribute | None


@dataclass(frozen=True)
class _StoredStore:
    buffer: Buffer
    dtype: DType
    size: int
    loops: tuple[Loop, ...]
    place: int
    value: int
    guard: Named | None


@dataclass(frozen=True)
class _StoredNest:
    exprs: tuple[_StoredExpr, ...]
    stores: tuple[_StoredStore, ...]
    rows: tuple[Loop, ...]


def register_programs() -> None:
    """Makes JSON of what programs hold that has no JSON of its own."""
    store_as(LoopNest, _StoredNest, _store_nest, _load_nest)
    store_as(PorterError, tuple[str, str], lambda error: (error.code, error.what), _load_error)


def _load_error(stored: tuple[str, str]) -> PorterError:
    code, what = stored
    return PorterError(code, what, hint=f"`porter explain {code}` says more.")


def _store_nest(nest: LoopNest) -> _StoredNest:
    exprs = list(walk(*(each for store in nest.stores for each in (store.place, store.value))))
    places = {each: i for i, each in enumerate(exprs)}
    stores = (
        _StoredStore(each.buffer, each.dtype, each.size, each.loops, places[each.place], places[each.value], each.guard)
        for each in nest.stores
    )
    stored = []
    for expr in exprs:
        args, attribute = tuple(places[arg] for arg in expr.args), expr.attribute
        is_plain = attribute is None or isinstance(attribute, (bool, int, float, str))
        assert is_plain or isinstance(attribute, _Attribute)
        parts = (attribute, None) if is_plain else (None, attribute)
        stored.append(_StoredExpr(expr.op, args, expr.dtype, *parts))
    return _StoredNest(tuple(stored), tuple(stores), nest.rows)


def _load_nest(stored: _StoredNest) -> LoopNest:
    made: list[Expr] = []
    for each in stored.exprs:
        attribute = each.plain if each.attribute is None else each.attribute
        made.append(intern(each.op, [made[i] for i in each.args], each.dtype, attribute))
    stores = (
        Store(each.buffer, each.dtype, each.size, each.loops, made[each.place], made[each.value], each.guard)
        for each in stored.stores
    )
    return LoopNest(tuple(stores), stored.rows)
