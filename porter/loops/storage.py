"""Symbolic programs as JSON: expressions, which share operands, as one list in which operands come first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from porter.aten.condition import Condition
from porter.core import codec
from porter.core.dtypes import DType
from porter.core.errors import PorterError
from porter.loops.concatenation import Concatenation
from porter.loops.coordinates import CoordinateMap
from porter.loops.distinct import DistinctValues
from porter.loops.expressions import Buffer, Expr, Loop, Op, Reduction, intern, walk
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import Arguments, HostValue, Named, Number
from porter.loops.orders import RowOrder
from porter.loops.places import NonzeroPlaces
from porter.loops.program import LostCall, Programs, Role, SymbolicNest, SymbolicProgram
from porter.loops.resampling import Resampling
from porter.loops.windows import Window


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
    when: tuple[Condition, ...]
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


@dataclass(frozen=True)
class StoredPrograms:
    """The programs of an overload as JSON can hold them."""

    name: str
    cases: tuple[_StoredProgram, ...]
    codes: tuple[str, ...]
    reasons: tuple[str, ...]
    map: CoordinateMap | Concatenation | Resampling | Window | None
    order: RowOrder | None
    places: NonzeroPlaces | None
    distinct: DistinctValues | None
    seen: tuple[Arguments, ...]
    lost: tuple[LostCall, ...]


def encode_programs(programs: Sequence[Programs]) -> str:
    """One line of JSON."""
    return codec.encode(tuple(map(store_programs, programs)), tuple[StoredPrograms, ...])


def decode_programs(text: str | bytes) -> tuple[Programs, ...]:
    """What `encode_programs` wrote. Raises ValueError, KeyError or TypeError for other text."""
    stored: tuple[StoredPrograms, ...] = codec.decode(text, tuple[StoredPrograms, ...])
    return tuple(map(load_programs, stored))


def store_programs(programs: Programs) -> StoredPrograms:
    left = programs.left
    cases = tuple(map(_store_program, programs.cases))
    codes, reasons = tuple(each.code for each in left), tuple(each.what for each in left)
    forms = programs.map, programs.order, programs.places, programs.distinct
    return StoredPrograms(programs.name, cases, codes, reasons, *forms, programs.seen, programs.lost)


def load_programs(stored: StoredPrograms) -> Programs:
    left = tuple(_error(code, why) for code, why in zip(stored.codes, stored.reasons, strict=True))
    cases = tuple(map(_load_program, stored.cases))
    forms = stored.map, stored.order, stored.places, stored.distinct
    return Programs(stored.name, cases, left, *forms, stored.seen, stored.lost)


def _error(code: str, what: str) -> PorterError:
    return PorterError(code, what, hint=f"See docs/errors/{code}.md.")


def _store_program(program: SymbolicProgram) -> _StoredProgram:
    return _StoredProgram(
        program.name,
        program.when,
        program.key,
        program.dtypes,
        tuple(map(_store_nest, program.nests)),
        tuple(program.roles),
        tuple(program.roles.values()),
        program.numbers,
        program.example,
        program.calls,
        program.conversions,
        program.required,
    )


def _load_program(stored: _StoredProgram) -> SymbolicProgram:
    return SymbolicProgram(
        stored.name,
        stored.when,
        stored.key,
        stored.dtypes,
        tuple(map(_load_nest, stored.nests)),
        dict(zip(stored.buffers, stored.roles, strict=True)),
        stored.numbers,
        stored.example,
        stored.calls,
        stored.conversions,
        stored.required,
    )


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
