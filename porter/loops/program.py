"""Loop nests whose numbers are expressions of the call's arguments: what the kernels of a port compute, at any size.

The nests are those of one recorded call, the example. A number that varies between calls is a `Named` leaf: the
attribute of an INTEGER or a NUMBER, or `Loop.number`. Sizes of loops, bounds and stores stay those of the example.
`instantiate` gives the nests of one call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from porter.core.codec import store_as
from porter.core.dtypes import FLOAT, DType
from porter.core.errors import Place, PorterError, explained
from porter.loops import host_values as host
from porter.loops.expressions import Buffer, Expr, Loop, Op, Reduction, intern, walk
from porter.loops.fusion import LoopNest, Store
from porter.mpsgraph.conditions import Answered

_RESULT = "result0"


@dataclass(frozen=True)
class ArgumentBuffer:
    """The elements of a tensor argument, in row-major order."""

    name: str


@dataclass(frozen=True)
class ResultBuffer:
    """A result of the call, by its place among those."""

    index: int


@dataclass(frozen=True)
class Temporary:
    """Memory between kernels."""

    size: host.HostValue
    dtype: DType


@dataclass(frozen=True)
class Table:
    """Constant elements of the graph, the same in every call of the case."""

    elements: tuple[host.Number, ...]
    dtype: DType


Role = ArgumentBuffer | ResultBuffer | Temporary | Table


@dataclass(frozen=True)
class SymbolicNest:
    """A loop nest, and how many turns its row loops have together: threads of a map, else rows."""

    nest: LoopNest
    rows: host.HostValue


@dataclass(frozen=True)
class SymbolicProgram:
    """What calls of one case compute, kernel by kernel.

    `when` holds for the calls of the case and no others; `dtypes` are the element types of `key`, the first tensor
    argument, that share the program, of which the nests have the first. `calls` were all foretold. `conversions` are
    the types that a tensor of 64-bit integers may have instead, or a floating one besides that of `key`. `required` are
    optional tensors without which the old code raises.
    """

    name: str  # of the overload
    when: tuple[Answered, ...]
    key: str
    dtypes: tuple[DType, ...]
    nests: tuple[SymbolicNest, ...]
    roles: Mapping[Buffer, Role]
    numbers: tuple[host.Named, ...]
    example: host.Arguments
    calls: tuple[host.Arguments, ...]
    conversions: Mapping[str, tuple[DType, ...]] = field(default_factory=dict)
    required: tuple[str, ...] = ()

    @property
    def stores(self) -> list[Store]:
        """The stores of all kernels."""
        return [store for nest in self.nests for store in nest.nest.stores]


@dataclass(frozen=True)
class RequiredSize:
    """The size of a dimension, counted from the back, or the rank of a tensor (None), that the CPU asks for.

    `why` is what the old code says of others, if it refuses them.
    """

    tensor: str
    dim: int | None
    value: host.HostValue
    why: str = ""

    @property
    def actual(self) -> host.HostValue:
        """What has to be the value."""
        return host.Rank(self.tensor) if self.dim is None else host.Size(self.tensor, host.Constant(self.dim))


@dataclass(frozen=True)
class UnexplainedCall:
    """A call that nothing is known of, and why: its run raised, or no program computes it."""

    arguments: host.Arguments
    why: str


@dataclass(frozen=True)
class Programs:
    """The cases of an overload, the most general first, and why other calls have no program.

    Of calls that are `lost` there is one of each kind. What the CPU requires of `sizes`, it does in calls of some case.
    """

    name: str
    cases: tuple[SymbolicProgram, ...]
    left: tuple[PorterError, ...] = ()
    lost: tuple[UnexplainedCall, ...] = ()
    sizes: tuple[RequiredSize, ...] = ()

    @property
    def calls(self) -> tuple[host.Arguments, ...]:
        """The recorded calls that are computed."""
        return tuple(call for case in self.cases for call in case.calls)


def no_graph(name: str, place: Place | None) -> PorterError:
    """PTR375: of the calls of a row that are known, none runs a graph, and some may run kernels of the fork."""
    return explained("PTR375", f"no call of {name} ran a graph", place)


def list_loaded(program: SymbolicProgram) -> frozenset[str]:
    """The tensor arguments whose elements kernels read."""
    roles = (program.roles[buffer] for nest in program.nests for buffer in nest.nest.reads())
    return frozenset(role.name for role in roles if isinstance(role, ArgumentBuffer))


def list_read(programs: Programs) -> frozenset[str]:
    """The tensors that the kernels of all cases read, and the arguments that their numbers are computed from."""
    roles = (role for case in programs.cases for role in case.roles.values())
    tensors = frozenset(role.name for role in roles if isinstance(role, ArgumentBuffer))
    return tensors.union(*(host.list_names(number.value) for case in programs.cases for number in case.numbers))


Shape = tuple[int, ...]


def list_own_dims(own: Shape, shape: Shape, result: Shape) -> tuple[int, ...]:
    """How many of the last dimensions of an expanded argument may be its own, if the others are those of a result."""
    if len(shape) != len(result):
        return ()
    counts = range(min(len(own), len(shape)) + 1)
    return tuple(n for n in counts if shape == (*result[: len(result) - n], *own[len(own) - n :]))


def count_own_dims(calls: Sequence[host.Arguments]) -> dict[str, int]:
    """The arguments that calls expand, and how many of their last dimensions are their own.

    As many of each argument, if they can be; none of those of which all are in every call, so that the result says
    nothing of them. Raises PTR361 if these are not the same in all calls.
    """
    expanded = dict.fromkeys(name for call in calls for name, value in call.tensors.items() if value.own is not None)
    allowed = {
        name: _intersect(_list_allowed(name, call) for call in calls if name in call.tensors) for name in expanded
    }
    for name, counts in allowed.items():
        if not counts:
            raise explained("PTR361", f"the dimensions that `{name}` is expanded by differ between recorded calls")
    shared = _intersect(allowed.values())
    found = {name: min(shared or counts) for name, counts in allowed.items()}
    ranks = {name: max(len(call.tensors[name].shape) for call in calls if name in call.tensors) for name in found}
    return {name: own for name, own in found.items() if own < ranks[name]}


def _list_allowed(name: str, call: host.Arguments) -> tuple[int, ...]:
    value = call.tensors[name]
    result = call.tensors.get(_RESULT, host.TensorValue((), value.dtype))
    return list_own_dims(value.shape if value.own is None else value.own, value.shape, result.shape)


def _intersect(found: Iterable[Iterable[int]]) -> set[int]:
    sets = [set(each) for each in found]
    return set.intersection(*sets) if sets else set()


def instantiate(nests: Sequence[LoopNest], call: host.Arguments, in_single: bool = False) -> tuple[LoopNest, ...]:
    """The nests with the numbers of a call, and without stores that it does not ask for.

    Loops may have a size of 0 or 1. With `in_single`, numbers have the precision that kernels take them in. Raises
    PTR366 for one without value.
    """
    return tuple(_Instance(call, in_single).instantiate_nest(nest) for nest in nests)


class _Instance:
    def __init__(self, call: host.Arguments, in_single: bool) -> None:
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
        if isinstance(attribute, host.Named):
            attribute = self._number(attribute)
        elif isinstance(attribute, Loop):
            attribute = self._loop(attribute)
        elif isinstance(attribute, Reduction):
            attribute = Reduction(attribute.kind, tuple(map(self._loop, attribute.loops)))
        return intern(expr.op, args, expr.dtype, attribute)

    def _loop(self, loop: Loop) -> Loop:
        return Loop(loop.name, int(self._number(loop.number))) if loop.number else loop

    def _number(self, named: host.Named) -> host.Number:
        found = host.evaluate(named.value, self._call)
        if found is None:
            raise explained("PTR366", f"`{host.describe(named.value)}` has no value in a call of the case")
        if isinstance(named.example, int):
            return type(named.example)(found)
        return host.round_number(found, FLOAT) if self._in_single else float(found)


def find_flag(expr: Expr) -> host.Named | None:
    """What chooses by whether a tensor is given; None of another choice."""
    attribute = expr.args[0].attribute if expr.args else None
    return attribute if isinstance(attribute, host.Named) and isinstance(attribute.value, host.Given) else None


# Programs as JSON: the expressions of a nest, which share operands, are one list in which operands come first.


_Attribute = host.Named | Loop | Buffer | Reduction


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
    guard: host.Named | None


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
