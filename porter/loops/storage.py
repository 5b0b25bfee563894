"""Symbolic programs as JSON: expressions, which share operands, as one list in which operands come first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.loops.expressions import Buffer, Expr, Loop, Op, Reduction, intern, walk
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import Arguments, HostValue, Named, Number
from porter.loops.program import Programs, Role, SymbolicNest, SymbolicProgram, UnexplainedCall
from porter.mpsgraph.conditions import Answered


@dataclass(frozen=True)
class _StoredExpr:
    """An expression; one of the others is its attribute, if it has one."""

    op: Op
    args: tuple[int, ...]
    dtype: DType | None
    plain: bool | int | float | str | None = None
    named: Named | None = None
    loop: Loop | None = None
    buffer: Buffer | None = None
    reduction: Reduction | None = None


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
    loops: tuple[Loop, ...]
    rows: HostValue


@dataclass(frozen=True)
class _StoredProgram:
    name: str
    when: tuple[Answered, ...]
    key: str
    dtypes: tuple[DType, ...]
    nests: tuple[_StoredNest, ...]
    buffers: tuple[Buffer, ...]
    roles: tuple[Role, ...]
    numbers: tuple[Named, ...]
    example: Arguments
    calls: tuple[Arguments, ...]
    conversions: Mapping[str, tuple[DType, ...]]
    required: tuple[str, ...]


# The fields that are stored as they are.
_SAME = tuple(item.name for item in fields(_StoredProgram) if item.name not in ("nests", "buffers", "roles"))


@dataclass(frozen=True)
class StoredPrograms:
    """The programs of an overload as JSON can hold them."""

    name: str
    cases: tuple[_StoredProgram, ...]
    codes: tuple[str, ...]
    reasons: tuple[str, ...]
    lost: tuple[UnexplainedCall, ...]


def store_programs(programs: Programs) -> StoredPrograms:
    """As JSON can hold them."""
    left = programs.left
    cases = tuple(map(_store_program, programs.cases))
    codes, reasons = tuple(each.code for each in left), tuple(each.what for each in left)
    return StoredPrograms(programs.name, cases, codes, reasons, programs.lost)


def load_programs(stored: StoredPrograms) -> Programs:
    """What `store_programs` was given."""
    refused = zip(stored.codes, stored.reasons, strict=True)
    left = tuple(PorterError(code, why, hint=f"`porter explain {code}` says more.") for code, why in refused)
    cases = tuple(map(_load_program, stored.cases))
    return Programs(stored.name, cases, left, stored.lost)


def _store_program(program: SymbolicProgram) -> _StoredProgram:
    same = {name: getattr(program, name) for name in _SAME}
    nests, roles = tuple(map(_store_nest, program.nests)), program.roles
    return _StoredProgram(nests=nests, buffers=tuple(roles), roles=tuple(roles.values()), **same)


def _load_program(stored: _StoredProgram) -> SymbolicProgram:
    same = {name: getattr(stored, name) for name in _SAME}
    roles = dict(zip(stored.buffers, stored.roles, strict=True))
    return SymbolicProgram(nests=tuple(map(_load_nest, stored.nests)), roles=roles, **same)


def _store_nest(symbolic: SymbolicNest) -> _StoredNest:
    nest = symbolic.nest
    exprs = list(walk(*(each for store in nest.stores for each in (store.place, store.value))))
    places = {each: i for i, each in enumerate(exprs)}
    stores = (
        _StoredStore(each.buffer, each.dtype, each.size, each.loops, places[each.place], places[each.value], each.guard)
        for each in nest.stores
    )
    stored = tuple(_store_expr(each, places) for each in exprs)
    return _StoredNest(stored, tuple(stores), nest.rows, symbolic.rows)


def _store_expr(expr: Expr, places: Mapping[Expr, int]) -> _StoredExpr:
    args = tuple(places[arg] for arg in expr.args)
    match expr.attribute:
        case None | bool() | int() | float() | str() as plain:
            return _StoredExpr(expr.op, args, expr.dtype, plain=plain)
        case Named() as named:
            return _StoredExpr(expr.op, args, expr.dtype, named=named)
        case Loop() as loop:
            return _StoredExpr(expr.op, args, expr.dtype, loop=loop)
        case Buffer() as buffer:
            return _StoredExpr(expr.op, args, expr.dtype, buffer=buffer)
        case Reduction() as reduction:
            return _StoredExpr(expr.op, args, expr.dtype, reduction=reduction)
    raise AssertionError(expr.attribute)


def _load_nest(stored: _StoredNest) -> SymbolicNest:
    made: list[Expr] = []
    for each in stored.exprs:
        given = (each.named, each.loop, each.buffer, each.reduction)
        attribute: Number | str | Named | Loop | Buffer | Reduction | None
        attribute = next((part for part in given if part is not None), each.plain)
        made.append(intern(each.op, [made[i] for i in each.args], each.dtype, attribute))
    stores = tuple(
        Store(each.buffer, each.dtype, each.size, each.loops, made[each.place], made[each.value], each.guard)
        for each in stored.stores
    )
    return SymbolicNest(LoopNest(stores, stored.loops), stored.rows)
