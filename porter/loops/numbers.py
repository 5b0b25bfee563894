"""The numbers of loop nests apart from their structure: what calls of one case share, and what varies between them.

Every number has a place in one order of visits. Terms of a sum are visited by their structure, since their strides,
by which sums are sorted, vary.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from hashlib import blake2b

from porter.core.dtypes import DType, Kind
from porter.loops.expressions import Buffer, Expr, Loop, Op, Reduction, intern
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import Named, Number

Leaf = Number | Named | Expr  # what stands for a number: for a loop's size and a constant value, no expression
Label = Callable[[DType | None, bool], str]  # of an element type, in memory or as it is computed
_FLOORED = (Op.QUOTIENT, Op.REMAINDER)
_CONDITIONS = (Op.LESS, Op.EQUAL, Op.BOTH)


class Use(Enum):
    """What a number is to a loop nest."""

    INDEX = "index"  # a stride, an offset, a bound
    LOOP = "size of a loop"
    VALUE = "value"


@dataclass(frozen=True)
class Occurrence:
    """A number in a loop nest."""

    value: Number
    use: Use


def list_numbers(nests: Sequence[LoopNest]) -> tuple[Occurrence, ...]:
    """Every number, in the order of visits."""
    found: list[Occurrence] = []

    def visit(each: Occurrence) -> Leaf:
        found.append(each)
        return each.value

    replace_numbers(nests, visit)
    return tuple(found)


def digest_sharing(nests: Sequence[LoopNest]) -> str:
    """Which values are visited again: equal numbers within make values one, which then have one of each."""
    replacement = _Replacement(lambda each: each.value)
    for nest in nests:
        replacement.replace_nest(nest)
    return _digest(*("again" if each else "first" for each in replacement.visits))


def replace_numbers(nests: Sequence[LoopNest], visit: Callable[[Occurrence], Leaf]) -> tuple[LoopNest, ...]:
    """The nests with each number replaced, loops named by their place, nothing simplified."""
    return tuple(_Replacement(visit).replace_nest(nest) for nest in nests)


def digest_structure(nests: Sequence[LoopNest], buffers: Mapping[Buffer, str], label: Label) -> str:
    """A digest of all but numbers; `buffers` and `label` name memory and element types.

    Conversion of what is loaded to the type that it is computed in is left out, if `label` calls them the same.
    """
    return _digest(*(_Structure(buffers, label).digest_nest(nest) for nest in nests))


Names = Mapping[Loop, Loop]


def _name_loops(prefix: str, loops: Sequence[Loop], named: Names) -> dict[Loop, Loop]:
    return {**named, **{loop: Loop(f"{prefix}{i}", loop.size) for i, loop in enumerate(loops)}}


def _reduction_prefix(expr: Expr) -> str:
    return f"r{expr.height}."


def _column_loops(store: Store, nest: LoopNest) -> list[Loop]:
    return [each for each in store.loops if each not in nest.rows]


def _digest(*parts: str) -> str:
    return blake2b("|".join(parts).encode(), digest_size=12).hexdigest()


def _is_number(expr: Expr) -> bool:
    """Whether a constant value can vary: not a flag, and not infinite."""
    if expr.op is not Op.NUMBER or expr.dtype is None or expr.dtype.kind is Kind.BOOL:
        return False
    return isinstance(expr.attribute, Named) or math.isfinite(expr.attribute)  # type: ignore[arg-type]


class _Structure:
    """Digests expressions without their numbers, each once for the same names of its free loops."""

    def __init__(self, buffers: Mapping[Buffer, str], label: Label) -> None:
        self._buffers, self._label = buffers, label
        self._known: dict[tuple[Expr, frozenset[tuple[Loop, str]]], str] = {}

    def digest_nest(self, nest: LoopNest) -> str:
        rows = _name_loops("i", nest.rows, {})
        return _digest(
            nest.shape.value, str(len(nest.rows)), *(self._store(store, nest, rows) for store in nest.stores)
        )

    def _store(self, store: Store, nest: LoopNest, rows: Names) -> str:
        columns = _column_loops(store, nest)
        names = _name_loops("j", columns, rows)
        parts = self._buffers[store.buffer], self._label(store.dtype, True), str(len(columns))
        return _digest(*parts, self.digest(store.place, names), self.digest(store.value, names))

    def digest(self, expr: Expr, names: Names) -> str:
        if expr.op is Op.CAST and self._label(expr.dtype, False) == self._label(expr.args[0].dtype, True):
            return self.digest(expr.args[0], names)
        key = (expr, frozenset((loop, names[loop].name) for loop in expr.loops))
        if key not in self._known:
            inner = _name_loops(_reduction_prefix(expr), expr.reduction.loops, names) if expr.op is Op.REDUCE else names
            args = [self.digest(arg, inner) for arg in expr.args]
            is_sum = expr.op is Op.SUM
            self._known[key] = _digest(expr.op.value, self._detail(expr, names), *(sorted(args) if is_sum else args))
        return self._known[key]

    def _detail(self, expr: Expr, names: Names) -> str:
        dtype = self._label(expr.dtype, expr.op is Op.LOAD)
        match expr.attribute:
            case Loop() as loop:
                return names[loop].name
            case Buffer() as buffer:
                return f"{self._buffers[buffer]} {dtype}"
            case Reduction(kind, loops):
                return f"{kind.value} {len(loops)} {dtype}"
        if expr.op in _FLOORED:
            bounds = expr.args[0].bounds
            return "floor" if bounds is None or bounds[0] < 0 else "truncate"
        if expr.op is Op.INTEGER or _is_number(expr):
            return dtype
        return f"{expr.attribute} {dtype}"


def order_terms(expr: Expr, names: Names, structure: _Structure) -> tuple[Expr, ...]:
    """The operands of an expression in the order of visits."""
    if expr.op is not Op.SUM:
        return expr.args
    return tuple(sorted(expr.args, key=lambda arg: (arg.op is Op.INTEGER, structure.digest(arg, names))))


class _AnyBuffer(dict[Buffer, str]):
    """Names that do not matter: the order of terms is by their loops."""

    def __missing__(self, key: Buffer) -> str:
        return ""


class _Replacement:
    """Rebuilds one nest. Values are rebuilt once, so that what is shared stays shared; indices at every place.

    So are numbers: two that are equal in one call may differ in another.
    """

    def __init__(self, visit: Callable[[Occurrence], Leaf]) -> None:
        self._visit = visit
        self._structure = _Structure(_AnyBuffer(), lambda dtype, is_memory: "" if is_memory else str(dtype))
        self._made: dict[tuple[Expr, frozenset[tuple[Loop, str]]], Expr] = {}
        self.visits: list[bool] = []  # of values: whether they were visited before

    def replace_nest(self, nest: LoopNest) -> LoopNest:
        rows = self._bind("i", nest.rows, {})
        stores = tuple(self._store(store, nest, rows) for store in nest.stores)
        return LoopNest(stores, tuple(rows.values()))

    def _store(self, store: Store, nest: LoopNest, rows: dict[Loop, Loop]) -> Store:
        names = self._bind("j", _column_loops(store, nest), rows)
        place, value = self._rebuild(store.place, names), self._rebuild(store.value, names)
        return replace(store, loops=tuple(names[each] for each in store.loops), place=place, value=value)

    def _bind(self, prefix: str, loops: Sequence[Loop], outer: Names) -> dict[Loop, Loop]:
        made = dict(outer)
        for i, each in enumerate(loops):
            leaf = self._visit(Occurrence(each.size, Use.LOOP))
            number = leaf if isinstance(leaf, Named) else None
            size = leaf.example if isinstance(leaf, Named) else leaf
            assert isinstance(size, int)
            made[each] = Loop(f"{prefix}{i}", size, number)
        return made

    def _rebuild(self, expr: Expr, names: Mapping[Loop, Loop]) -> Expr:
        if expr.dtype is None or expr.op in _CONDITIONS or _is_number(expr):
            return self._make(expr, names)
        key = (expr, frozenset((loop, names[loop].name) for loop in expr.loops))
        self.visits.append(key in self._made)
        if key not in self._made:
            self._made[key] = self._make(expr, names)
        return self._made[key]

    def _make(self, expr: Expr, names: Mapping[Loop, Loop]) -> Expr:
        if isinstance(expr.attribute, Loop):
            return intern(Op.LOOP, (), None, names[expr.attribute])
        if expr.op is Op.INTEGER or _is_number(expr):
            value = expr.attribute.example if isinstance(expr.attribute, Named) else expr.attribute
            assert isinstance(value, (bool, int, float))
            leaf = self._visit(Occurrence(value, Use.INDEX if expr.op is Op.INTEGER else Use.VALUE))
            return leaf if isinstance(leaf, Expr) else intern(expr.op, (), expr.dtype, leaf)
        attribute = expr.attribute
        inner = names
        if isinstance(attribute, Reduction):
            inner = self._bind(_reduction_prefix(expr), attribute.loops, names)
            attribute = Reduction(attribute.kind, tuple(inner[each] for each in attribute.loops))
        made = {arg: self._rebuild(arg, inner) for arg in order_terms(expr, inner, self._structure)}
        return intern(expr.op, [made[arg] for arg in expr.args], expr.dtype, attribute)
