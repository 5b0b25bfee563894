"""The loop form: an element of a result as an expression over loop indices.

Expressions are interned: equal ones are one object, so that a value used twice is shared and `is` compares. There are
three sorts, by `dtype`:

- an index (`dtype` None) is an integer that addresses an element: its builders are in `indices.py`;
- a condition compares indices or joins conditions: `dtype` BOOL;
- a value is a number of an element type. Reduced floating types are computed in float (`DType.opmath`).

A reduction binds its loops. They are named by its height, which is one more than that of any reduction in its body:
nested reductions never share a name, and equal reductions are one object whatever made them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from weakref import WeakValueDictionary

from porter.core.dtypes import BOOL, FLOAT, DType, Kind
from porter.loops.host_values import Named, Number


class Op(Enum):
    """What an expression is. The attribute of each is in parentheses."""

    INTEGER = "integer"  # (int, or Named)
    LOOP = "loop"  # (Loop)
    SUM = "sum"
    PRODUCT = "product"  # of an index and an INTEGER
    QUOTIENT = "quotient"  # floor division of an index by a positive INTEGER
    REMAINDER = "remainder"  # never negative
    LEAST = "least"
    GREATEST = "greatest"
    DISTANCE = "distance"  # the absolute value
    READ_INDEX = "read index"  # an index that is an element of a tensor
    LESS = "less"  # conditions
    EQUAL = "equal"
    BOTH = "both"
    NUMBER = "number"  # (Number, or Named), values
    LOAD = "load"  # (Buffer) at a flat index
    CALL = "call"  # (str), an operation of porter.mpsgraph.operations
    CAST = "cast"
    SELECT = "select"  # by a condition; only the selected operand is evaluated
    INDEX_VALUE = "index value"  # an index as a number
    REDUCE = "reduce"  # (Reduction)


class ReductionKind(Enum):
    """How a reduction combines elements. ARG kinds reduce (value, index) to the index of the first extreme value.

    LAST takes (hit, value, otherwise): the value of the last turn where `hit` holds.
    """

    SUM = "sum"
    PRODUCT = "product"
    MAX = "max"
    MIN = "min"
    MAX_NAN = "max, with NaN"  # NaN if any element is
    MIN_NAN = "min, with NaN"
    ANY = "any"
    ALL = "all"
    ARG_MAX = "argmax"
    ARG_MIN = "argmin"
    LAST = "last"


@dataclass(frozen=True)
class Loop:
    """A loop variable, from 0 to `size` - 1; `size` is at least 2. With a `number`, it is that of one call only."""

    name: str
    size: int
    number: Named | None = None


@dataclass(frozen=True)
class Buffer:
    """Memory of a kernel: a tensor of the graph (`node`, `output`), or a temporary, numbered by `node`."""

    node: int
    output: int = 0
    is_temporary: bool = False


@dataclass(frozen=True)
class Reduction:
    """The kind and the loops of a reduction, outermost first."""

    kind: ReductionKind
    loops: tuple[Loop, ...]


@dataclass(frozen=True, eq=False)
class Expr:
    """An interned expression; made by `intern` alone. `order` sorts expressions the same in every process."""

    op: Op
    args: tuple[Expr, ...]
    dtype: DType | None
    attribute: Hashable
    order: bytes = field(repr=False)
    loops: frozenset[Loop] = field(repr=False)  # free ones
    height: int = field(repr=False)  # of nested reductions
    bounds: tuple[int, int] | None = field(repr=False)  # the least and the greatest value of an index, if known

    @property
    def integer(self) -> int | None:
        """The value of a constant index; None for any other expression."""
        return self.attribute if self.op is Op.INTEGER and isinstance(self.attribute, int) else None

    @property
    def reduction(self) -> Reduction:
        assert isinstance(self.attribute, Reduction)
        return self.attribute


_Key = tuple[Op, tuple[int, ...], DType | None, str]
_interned: WeakValueDictionary[_Key, Expr] = WeakValueDictionary()


def intern(op: Op, args: Sequence[Expr] = (), dtype: DType | None = None, attribute: Hashable = None) -> Expr:
    """The one expression with these parts. Builders simplify first: use them where there is one."""
    label = repr(attribute)  # 1, 1.0 and True are equal, but not one attribute
    key = (op, tuple(map(id, args)), dtype, label)
    found = _interned.get(key)
    if found is None:
        digest = blake2b(f"{op.value}|{label}|{dtype}".encode(), digest_size=12)
        for arg in args:
            digest.update(arg.order)
        loops: frozenset[Loop] = frozenset().union(*(arg.loops for arg in args))
        height = max((arg.height for arg in args), default=0)
        if isinstance(attribute, Loop):
            loops = frozenset((attribute,))
        if isinstance(attribute, Reduction):
            loops, height = loops.difference(attribute.loops), height + 1
        derived = (digest.digest(), loops, height)
        found = Expr(op, tuple(args), dtype, attribute, *derived, find_bounds(op, args, attribute))
        _interned[key] = found
    return found


def find_bounds(op: Op, args: Sequence[Expr], attribute: Hashable) -> tuple[int, int] | None:
    """The least and the greatest value of an index; None for an index that is read, and for values."""
    if op is Op.INTEGER and isinstance(attribute, int):
        return attribute, attribute
    if op is Op.INTEGER and isinstance(attribute, Named):
        return int(attribute.example), int(attribute.example)
    if isinstance(attribute, Loop):
        return 0, attribute.size - 1
    combine = _BOUNDS.get(op)
    known = [arg.bounds for arg in args if arg.bounds is not None]
    if combine is not None and len(known) == len(args):
        return combine(*known)
    if op is Op.REMAINDER and args[1].bounds is not None:
        return 0, args[1].bounds[0] - 1
    return None


_Bounds = tuple[int, int]


def _bound_product(a: _Bounds, b: _Bounds) -> _Bounds:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _bound_remainder(a: _Bounds, b: _Bounds) -> _Bounds:
    return a if a[0] // b[0] == a[1] // b[0] == 0 else (0, b[0] - 1)


def _bound_distance(a: _Bounds) -> _Bounds:
    return (a if a[0] >= 0 else (-a[1], -a[0])) if a[0] * a[1] >= 0 else (0, max(-a[0], a[1]))


_BOUNDS: Mapping[Op, Callable[..., _Bounds]] = {
    Op.SUM: lambda *each: (sum(low for low, _ in each), sum(high for _, high in each)),
    Op.PRODUCT: _bound_product,
    Op.QUOTIENT: lambda a, b: (a[0] // b[0], a[1] // b[0]),
    Op.REMAINDER: _bound_remainder,
    Op.LEAST: lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    Op.GREATEST: lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    Op.DISTANCE: _bound_distance,
}


def number(value: Number, dtype: DType) -> Expr:
    """A constant value, of the type that `dtype` is computed in."""
    dtype = dtype.opmath
    if dtype.kind is Kind.FLOATING:
        value = float(value)
    elif dtype.kind is Kind.BOOL:
        value = bool(value)
    else:
        value = int(value) if math.isfinite(value) else 0
    return intern(Op.NUMBER, (), dtype, value)


TRUE, FALSE = number(True, BOOL), number(False, BOOL)


def call(operation: str, args: Sequence[Expr], dtype: DType) -> Expr:
    """An operation of the table on values."""
    return intern(Op.CALL, args, dtype.opmath, operation)


def call_float(operation: str, *args: Expr) -> Expr:
    """An operation of the table whose result is a float."""
    return call(operation, args, FLOAT)


def cast(value: Expr, dtype: DType) -> Expr:
    """A value as another element type. Conversions between floating types are not values: only stores round."""
    dtype = dtype.opmath
    if value.dtype == dtype:
        return value
    if value.op is Op.NUMBER and isinstance(value.attribute, (bool, int, float)):
        return number(value.attribute, dtype)
    return intern(Op.CAST, (value,), dtype)


def load(buffer: Buffer, flat: Expr, dtype: DType) -> Expr:
    """An element of a buffer of type `dtype`, by its row-major index, as the type it is computed in."""
    return cast(intern(Op.LOAD, (flat,), dtype, buffer), dtype)


def select(condition: Expr, value: Expr, otherwise: Expr) -> Expr:
    """`value` where a condition holds. Its operand that is not selected is not evaluated."""
    if condition is TRUE or value is otherwise:
        return value
    return otherwise if condition is FALSE else intern(Op.SELECT, (condition, value, otherwise), value.dtype)


def index_value(index: Expr, dtype: DType) -> Expr:
    """An index as a number."""
    return number(index.integer, dtype) if index.integer is not None else intern(Op.INDEX_VALUE, (index,), dtype.opmath)


def walk(
    *roots: Expr,
    enters: Callable[[Expr], object] = lambda each: each.args,
    of: Callable[[Expr], Sequence[Expr]] = lambda each: each.args,
) -> Iterable[Expr]:
    """Yields every expression once, behind its operands, which `of` gives; one that is not entered, without these."""
    seen: set[Expr] = set()
    stack: list[Expr | None] = [*reversed(roots)]  # after None, one whose operands are done
    while stack:
        each = stack.pop()
        if each is None:
            done = stack.pop()
            assert done is not None
            yield done
        elif each not in seen:
            seen.add(each)
            if enters(each):
                stack += (each, None, *reversed(of(each)))
            else:
                yield each


def order_loops(loops: Iterable[Loop]) -> list[Loop]:
    """Loops in one order, whatever set they are of."""
    return sorted(loops, key=lambda loop: (loop.name, loop.size))


def find_reductions(*roots: Expr) -> list[Expr]:
    """Every reduction, inner ones first."""
    return [each for each in walk(*roots) if each.op is Op.REDUCE]


def find_buffers(*roots: Expr) -> list[Buffer]:
    """Every buffer that is read, in the order of first use."""
    found = (each.attribute for each in walk(*roots) if each.op is Op.LOAD)
    return list(dict.fromkeys(buffer for buffer in found if isinstance(buffer, Buffer)))


Rebuild = Callable[[Expr, Sequence[Expr]], Expr]


def substitute(root: Expr, loops: Mapping[Loop, Expr], rebuild: Rebuild) -> Expr:
    """The expression with free loops replaced; `rebuild` makes an expression from its new operands.

    What is put in must not have a loop that a reduction within binds.
    """
    changed = loops.keys()
    made: dict[Expr, Expr] = {}
    for each in walk(root, enters=lambda each: not changed.isdisjoint(each.loops)):
        if changed.isdisjoint(each.loops):
            made[each] = each
        elif isinstance(each.attribute, Loop):
            made[each] = loops[each.attribute]
        else:
            made[each] = rebuild(each, [made[arg] for arg in each.args])
    return made[root]
