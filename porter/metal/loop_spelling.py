"""The words of a kernel's text: operations, types, names of buffers and loops, and which reductions threads share."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from porter.core.dtypes import FLOAT, DType, Kind
from porter.core.errors import explained
from porter.loops.expressions import Buffer, Expr, Loop, Op, Reduction, ReductionKind, find_reductions, intern
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import Named
from porter.mpsgraph.operations import by_op

# How an element is better than the extreme one, and the reduction to that.
COMPARED = {ReductionKind.ARG_MAX: ">", ReductionKind.ARG_MIN: "<"}
VALUES_OF = {ReductionKind.ARG_MAX: ReductionKind.MAX_NAN, ReductionKind.ARG_MIN: ReductionKind.MIN_NAN}
_LEAST, _GREATEST = (ReductionKind.MAX, ReductionKind.MAX_NAN), (ReductionKind.MIN, ReductionKind.MIN_NAN)
_TURNS: Mapping[ReductionKind, str] = {
    ReductionKind.SUM: "{0} += {1};",
    ReductionKind.PRODUCT: "{0} *= {1};",
    ReductionKind.MAX: "{0} = ::metal::max({0}, {1});",
    ReductionKind.MIN: "{0} = ::metal::min({0}, {1});",
    ReductionKind.MAX_NAN: "{0} = c10::metal::max({0}, {1});",
    ReductionKind.MIN_NAN: "{0} = c10::metal::min({0}, {1});",
    ReductionKind.ANY: "{0} = {0} || {1};",
    ReductionKind.ALL: "{0} = {0} && {1};",
}

_FORMS = {
    "bitwiseAND": "{0} & {1}", "bitwiseOR": "{0} | {1}", "bitwiseXOR": "{0} ^ {1}", "bitwiseNOT": "~{0}",
    "bitwiseLeftShift": "{0} << {1}", "bitwiseRightShift": "{0} >> {1}",
    "floorModulo": "c10::metal::remainder({0}, {1})", "modulo": "c10::metal::fmod({0}, {1})",
    "log1p": "c10::metal::log1p({0})",
}  # fmt: skip
# What is not done to each part alone: comparisons, and products and quotients of two values.
_OF_BOTH_PARTS = ("notEqual", "equal", "multiplication", "division")
_SCALES = ("multiplication", "division")
STATIC_CAST = "static_cast"
COMPLEX_CAST = "c10::metal::cast_to"  # a real number becomes a complex one without an imaginary part
_LETTERS, _ROW, _COLUMN, _OUTER_INNER = ("i", "j", "k"), "row", "column", ("outer", "inner")  # of loops


@dataclass(frozen=True)
class Spelling:
    """The words of a kernel: the types of indices, of values and of the elements of buffers, and who shares a row.

    `join` gives the lines after which a variable of a type has, in each thread of a row, what all of them have reduced;
    None for a reduction that each thread does alone. `join_extreme` does so for the index (its name and its type) of an
    extreme value (its name and its type), which is the largest that an index can be in threads that have seen none.
    Threads take turns from `lane` on, in steps of `width`. `place` is where a buffer that is read has the element of an
    index, `stored` where one that is written has it. With
    `has_complex`, the text is a template for complex numbers too; with `is_mixed`, for floating types and integers. The
    numbers `scalars` have the type of values. `cast` is the function that converts to a type of the template. `widen`
    gives the type that elements of a parameter's are combined in. `loops` have variables of other names than their own.
    """

    buffers: Mapping[Buffer, str]
    elements: Mapping[Buffer, str]
    value: Callable[[DType], str]
    join: Callable[[ReductionKind, DType, str, str], tuple[str, ...] | None]
    index: str = "int"
    row: str = "row"
    lane: str = "lane"
    width: str = "32"
    join_extreme: Callable[[ReductionKind, str, str, str, str], tuple[str, ...]] | None = None
    place: Callable[[Buffer, str], str] = lambda buffer, index: index
    has_complex: bool = False
    cast: str = STATIC_CAST
    is_mixed: bool = False
    scalars: frozenset[Named] = frozenset()
    stored: Callable[[Buffer, str], str] = lambda buffer, index: index
    widen: Callable[[str], str] = lambda parameter: f"c10::metal::opmath_t<{parameter}>"
    loops: Mapping[Loop, str] = field(default_factory=dict)

    def loop(self, loop: Loop) -> str:
        """The variable of a loop: `r0` of an outermost reduction's that has no name, else with its height, `r2_0`."""
        name = f"r{loop.name[3:]}" if loop.name.startswith("r1.") else loop.name
        return self.loops.get(loop) or name.replace(".", "_").replace("'", "b")


def drop_conversion(store: Store) -> Expr:
    """What a store converts to the type of its buffer."""
    is_converted = store.value.op is Op.CAST and store.value.dtype == store.dtype
    return store.value.args[0] if is_converted else store.value


def copies(store: Store) -> bool:
    """Whether a store moves elements and computes nothing of them."""
    pending = [store.value]
    while pending:
        each = pending.pop()
        if each.op is Op.SELECT:
            pending += each.args[1:]
        elif each.op not in (Op.LOAD, Op.NUMBER):
            return False
    return True


def runs_alone(nest: LoopNest, spelling: Spelling) -> bool:
    """Whether no reduction of a nest is shared, so that a thread can have each row for itself."""
    found = [each for store in nest.stores for each in find_reductions(store.value)]
    is_column = any(set(store.loops) - set(nest.rows) for store in nest.stores)
    return not is_column and not any(is_shared(each, spelling) for each in found)


def is_shared(reduction: Expr, spelling: Spelling) -> bool:
    """Whether the threads of a row share a reduction."""
    kind = reduction.reduction.kind
    if kind in COMPARED:
        return spelling.join_extreme is not None
    return spelling.join(kind, reduction.dtype or FLOAT, "", "") is not None


def find_indexed(expr: Expr, nest: LoopNest) -> Expr | None:
    """The reduction of a nest that finds where the extreme value is that an expression is, or is where."""
    if expr.reduction.kind in COMPARED:
        return expr
    for each in (each for store in nest.stores for each in find_reductions(store.value)):
        is_same = each.args[0] is expr.args[0] and each.reduction.loops == expr.reduction.loops
        if is_same and VALUES_OF.get(each.reduction.kind) is expr.reduction.kind:
            return each
    return None


def find_value(indexed: Expr) -> Expr:
    """The reduction to the extreme value of which another one finds the index."""
    value, reduction = indexed.args[0], indexed.reduction
    assert value.dtype is not None
    return intern(Op.REDUCE, (value,), value.dtype.opmath, Reduction(VALUES_OF[reduction.kind], reduction.loops))


def write_size(loop: Loop) -> str:
    return loop.number.name if loop.number else str(loop.size)


def name_reduction(reduction: Reduction) -> str:
    """The name of a reduction's variable, which must not hide a function."""
    first = reduction.kind.name.split("_")[0].lower()
    return {"max": "largest", "min": "smallest", "any": "is_any", "all": "is_all", "arg": "best"}.get(first, first)


def name_loops(nest: LoopNest, shares: bool, others: Collection[str]) -> dict[Loop, str]:
    """Variables of a kernel's loops, as a person calls them where there are few, unlike the names of `others`.

    If it `shares`, threads have a row together, and a loop of its reductions or its stores is of columns.
    """
    columns = list(dict.fromkeys(each for store in nest.stores for each in store.loops if each not in nest.rows))
    reductions = [each for store in nest.stores for each in find_reductions(store.value)]
    reduced = list(dict.fromkeys(loop for each in reductions for loop in each.reduction.loops))
    names: dict[Loop, str] = {}
    if any(each.name == _ROW for each in nest.rows):  # of which strides say where it is
        return names
    if not shares and len(nest.rows) + len(reduced) <= len(_LETTERS):
        words = (_ROW, _COLUMN, "k") if len(nest.rows) == len((_ROW, _COLUMN)) else _LETTERS
        names = dict(zip((*nest.rows, *reduced), words, strict=False))
    elif shares:
        looped = {*columns, *reduced}
        is_nested = any(len(one.reduction.loops) > 1 or not one.loops.isdisjoint(looped) for one in reductions)
        if len(columns) < 2 and not is_nested:  # the loops stand one behind the other
            names = dict.fromkeys((*reduced, *columns), _COLUMN if nest.rows else "at")
        if len(nest.rows) <= len(_OUTER_INNER):
            names |= zip(nest.rows, _OUTER_INNER if len(nest.rows) > 1 else (_ROW,), strict=False)
    return names if set(names.values()).isdisjoint(others) else {}


def strip_index(value: Expr) -> Expr:
    """An index, without its conversion to a number."""
    return value.args[0] if value.op is Op.INDEX_VALUE else value


def may_be_nan(dtype: DType | None, spelling: Spelling) -> bool:
    """Whether a value of a type, or of what instances have in its place, can be NaN."""
    if dtype is None:
        return False
    return dtype.kind is Kind.FLOATING or (spelling.is_mixed and spelling.value(dtype.opmath) != dtype.opmath.metal)


def write_nan(text: str, spelling: Spelling, holds: bool = True) -> str:
    """The condition that a value is NaN, or is not: `isnan` takes no integers."""
    if spelling.is_mixed:
        return f"{text} {'!=' if holds else '=='} {text}"
    return f"{'' if holds else '!'}isnan({text})"


def flatten_sum(terms: Sequence[Expr]) -> list[Expr]:
    """The terms of nested sums."""
    return [each for term in terms for each in (flatten_sum(term.args) if term.op is Op.SUM else [term])]


def write_turn(kind: ReductionKind, name: str, addend: str, spelling: Spelling) -> str:
    """What one turn of a reduction does to its variable."""
    if kind is ReductionKind.PRODUCT and spelling.has_complex:
        return f"{name} = c10::metal::mul({name}, {addend});"
    return _TURNS[kind].format(name, addend)


def write_start(kind: ReductionKind, dtype: DType, type_: str, spelling: Spelling) -> str:
    """What a reduction in a variable of `type_` starts from. A maximum without NaN is NaN only of NaN alone."""
    if kind is ReductionKind.PRODUCT and spelling.has_complex:
        return f"{spelling.cast}<{type_}>(1)"
    if kind in (ReductionKind.MAX, ReductionKind.MIN) and dtype.kind is Kind.FLOATING:
        return "NAN"
    if kind in (*_LEAST, *_GREATEST):
        value = spelling.value(dtype)
        if value == FLOAT.metal:
            return f"{'-' if kind in _LEAST else ''}INFINITY"
        if value != dtype.metal:  # a type that instances choose, which may have infinities
            return f"{'least' if kind in _LEAST else 'greatest'}_value<{value}>()"
        limits = f"::metal::numeric_limits<{value}>"
        return f"{limits}::lowest()" if kind in _LEAST else f"{limits}::max()"
    return "1" if kind in (ReductionKind.PRODUCT, ReductionKind.ALL) else "0"


def find_form(operation: str, of_complex: bool = False) -> str:
    """The MSL form of an operation, also `of_complex` numbers where it differs. Raises PTR345 if there is none."""
    row = by_op().get(operation)
    form = row.msl if row and row.msl else _FORMS.get(operation)
    if of_complex and row and operation in _OF_BOTH_PARTS:
        form = row.complex_msl
    if form is None:
        raise explained("PTR345", f"the operation `{operation}` has no loop form")
    return form


def find_form_of(expr: Expr, has_complex: bool) -> str:
    """The form of an operation in a kernel that may have complex numbers: a constant scales both parts."""
    scales = expr.attribute in _SCALES and any(arg.op is Op.NUMBER for arg in expr.args)
    return find_form(str(expr.attribute), has_complex and not scales)


def list_operands(expr: Expr) -> list[Expr]:
    """The operands of an expression. Conditions have the value that an index is read from, which may be wider."""
    if expr.op not in (Op.LESS, Op.EQUAL):
        return list(expr.args)
    return [arg.args[0] if arg.op is Op.READ_INDEX and _is_integral(arg.args[0]) else arg for arg in expr.args]


def _is_integral(value: Expr) -> bool:
    return value.dtype is not None and value.dtype.kind is Kind.INTEGRAL


def list_uses(expr: Expr) -> list[Expr]:
    """The operands of an expression, as often as its form has them."""
    if expr.op is not Op.CALL:
        return list_operands(expr)
    form = find_form(str(expr.attribute))
    return [arg for i, arg in enumerate(expr.args) for _ in range(form.count(f"{{{i}}}"))]
