"""Programs as kernels are to have them: what only the graph needed goes, and reductions keep NaN as ATen's do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from porter.core.dtypes import FLOAT
from porter.loops.expressions import Expr, Loop, Op, Reduction, ReductionKind, call, intern, walk
from porter.loops.fusion import LoopNest, Shape
from porter.loops.host_values import Apply, Constant, HostValue, Named, Scalar, list_scalars, substitute
from porter.loops.optional import drop_unread
from porter.loops.program import ArgumentBuffer, Programs, ResultBuffer, Role, SymbolicProgram
from porter.metal.codegen.reduced import with_strides, with_uniform
from porter.metal.codegen.scan import put_loop, with_scans

_KEEPS_NAN = {ReductionKind.MAX: ReductionKind.MAX_NAN, ReductionKind.MIN: ReductionKind.MIN_NAN}
_INDICES = (ReductionKind.ARG_MAX, ReductionKind.ARG_MIN)
_LAST = 2**31  # results
_MOST = 2**31  # no index is larger than what an index may be


def prepare(programs: Programs) -> Programs:
    """The programs as ports have them."""
    cases = _share_defaults(tuple(map(drop_unread, programs.cases)))
    simple = replace(programs, cases=tuple(_change(merge_nests(case), _simplify) for case in cases))
    return with_uniform(with_scans(with_strides(simple)))


def _share_defaults(cases: Sequence[SymbolicProgram]) -> tuple[SymbolicProgram, ...]:
    """The cases, with the default of a scalar that calls of one leave out for all: host code reads it once."""
    found = [each for case in cases for number in case.numbers for each in list_scalars(number.value)]
    shared: dict[HostValue, HostValue] = {Scalar(each.name): each for each in found if each.default is not None}
    return tuple(_change(case, partial(_change_number, shared)) for case in cases) if shared else tuple(cases)


def _change_number(shared: Mapping[HostValue, HostValue], value: Expr) -> Expr:
    if value.op is not Op.NUMBER or not isinstance(value.attribute, Named):
        return value
    number = replace(value.attribute, value=substitute(value.attribute.value, shared))
    return intern(value.op, (), value.dtype, number)


def _change(case: SymbolicProgram, change: Callable[[Expr], Expr]) -> SymbolicProgram:
    """A program with its values changed, operands first."""

    def rewrite(root: Expr) -> Expr:
        made: dict[Expr, Expr] = {}
        for each in walk(root):
            made[each] = change(intern(each.op, [made[arg] for arg in each.args], each.dtype, each.attribute))
        return made[root]

    nests = []
    for symbolic in case.nests:
        ordered = sorted(symbolic.nest.stores, key=lambda store: _order(case.roles[store.buffer]))
        stores = tuple(replace(store, value=rewrite(store.value)) for store in ordered)
        nests.append(replace(symbolic, nest=replace(symbolic.nest, stores=stores)))
    return replace(case, nests=tuple(nests))


def _order(role: Role) -> int:
    """Results in the order that the operator has them, after what is on the way to them; then arguments."""
    return role.index if isinstance(role, ResultBuffer) else _LAST if isinstance(role, ArgumentBuffer) else -1


def _simplify(value: Expr) -> Expr:
    if value.op is Op.REDUCE and value.reduction.kind in _KEEPS_NAN:
        kind = _KEEPS_NAN[value.reduction.kind]
        return intern(value.op, value.args, value.dtype, Reduction(kind, value.reduction.loops))
    if value.op is Op.CALL and value.attribute == "logarithm" and (more := _find_one_more(value.args[0])):
        return intern(value.op, (more,), value.dtype, "log1p")
    if value.op is Op.CALL and value.attribute == "select" and (condition := _find_condition(value.args[0])):
        return intern(Op.SELECT, (condition, *value.args[1:]), value.dtype)
    if value.op is Op.CAST and value.args[0].op is Op.INDEX_VALUE:  # also of indices that no int holds
        return intern(Op.INDEX_VALUE, value.args[0].args, value.dtype)
    return value.args[0] if _is_needless_clamp(value) or _is_needless_cast(value) else simplify_call(value)


def _find_one_more(value: Expr) -> Expr | None:
    """What a value is one more than, which rounds where it is small."""
    if value.op is not Op.CALL or value.attribute != "addition":
        return None
    ones = [each.op is Op.NUMBER and each.attribute == 1 for each in value.args]
    return value.args[ones.index(False)] if ones.count(True) == 1 else None


def _find_condition(value: Expr) -> Expr | None:
    """The condition on indices that a mask is one where it holds, and zero elsewhere."""
    if value.op is not Op.SELECT:
        return None
    condition, *chosen = value.args
    numbers = [each.attribute for each in chosen if each.op is Op.NUMBER]
    return condition if numbers == [1, 0] else None


def _is_needless_cast(value: Expr) -> bool:
    """Whether a value is converted to the type that it is computed in."""
    operand = value.args[0] if value.op is Op.CAST else None
    return operand is not None and operand.dtype is not None and operand.dtype.opmath == value.dtype


def _is_needless_clamp(value: Expr) -> bool:
    """Whether a value is the clamp of an index to what an index may be."""
    if value.op is not Op.CALL or value.attribute != "clamp":
        return False
    index, low, high = value.args
    while index.op is Op.CAST:
        index = index.args[0]
    is_index = index.op is Op.INDEX_VALUE or (index.op is Op.REDUCE and index.reduction.kind in _INDICES)
    first, last = low.attribute, high.attribute
    return is_index and isinstance(first, int) and first == 0 and isinstance(last, int) and last >= _MOST


def merge_nests(case: SymbolicProgram) -> SymbolicProgram:
    """A case with one kernel for its reductions, if all have the same rows and none reads what another writes."""
    nests = [symbolic.nest for symbolic in case.nests]
    written = {store.buffer for nest in nests for store in nest.stores}
    is_apart = not any(buffer in written for nest in nests for buffer in nest.reads())
    if len(nests) < 2 or not is_apart or any(each.shape is not Shape.REDUCTION for each in nests):
        return case
    first = case.nests[0]
    if any(each.rows != first.rows or each.nest.rows != first.nest.rows for each in case.nests):
        return case
    stores = tuple(store for nest in nests for store in nest.stores)
    return replace(case, nests=(replace(first, nest=LoopNest(stores, first.nest.rows)),))


def simplify_call(value: Expr) -> Expr:
    """A value without operations that change nothing but its rounding."""
    match value.op, value.attribute, value.args:
        case Op.CALL, "multiplication", (left, right) if 1 in (_constant(left), _constant(right)):
            return right if _constant(left) == 1 else left
        case Op.CALL, "addition", (left, right) if _undoes(left, right):
            return left.args[0]
        case Op.CALL, "reciprocal", (operand,) if (made := _inverse(operand)) is not None:
            return made
        case Op.CALL, "reciprocalSquareRoot", (square,) if (root := find_root(square)) is not None:
            assert value.dtype is not None
            if root.op is Op.CALL and root.attribute == "reciprocal":
                return call("absolute", root.args, value.dtype)
    return value


def _constant(value: Expr) -> float | None:
    is_number = value.op is Op.NUMBER and isinstance(value.attribute, (int, float))
    return float(value.attribute) if is_number and not isinstance(value.attribute, bool) else None  # type: ignore[arg-type]


def _undoes(left: Expr, right: Expr) -> bool:
    """Whether what is added was subtracted before."""
    is_subtraction = left.op is Op.CALL and left.attribute == "subtraction"
    return is_subtraction and right.op is Op.NUMBER and left.args[1] is right


def _inverse(operand: Expr) -> Expr | None:
    """The reciprocal of a number that host code computes."""
    number = operand.attribute
    if operand.op is not Op.NUMBER or not isinstance(number, Named) or not number.example:
        return None
    value = Apply("/", (Constant(1), number.value))
    return intern(Op.NUMBER, (), operand.dtype, Named(f"inverse_{number.name}", value, 1 / number.example))


# Means of rows, and sums of squared differences from them, that one pass finds together, as Welford's algorithm does.
#
# Source: c10/metal/reduction_utils.h (`welford_combine` of a mean, a sum of squares and a count).


TYPE = "float3"


@dataclass(frozen=True)
class Moments:
    """Of the elements of a row: their sum, the mean that is made of it, and the sum of squares around that."""

    total: Expr
    mean: Expr
    squares: Expr


def find_moments(nest: LoopNest) -> list[Moments]:
    """The moments of a nest whose sums nothing but the means uses."""
    values = [each for store in nest.stores for each in walk(store.value)]
    found = [moments for each in dict.fromkeys(values) if (moments := _read_squares(each))]
    return [each for each in found if _makes_mean_alone(each, values)]


def _makes_mean_alone(moments: Moments, values: list[Expr]) -> bool:
    return all(each is moments.mean for each in values if moments.total in each.args)


def _read_squares(squares: Expr) -> Moments | None:
    """What a sum of squared differences from a mean is made of; None for any other value."""
    if squares.op is not Op.REDUCE or squares.reduction.kind is not ReductionKind.SUM or squares.dtype != FLOAT:
        return None
    difference = find_root(squares.args[0])
    if difference is None or difference.attribute != "subtraction":
        return None
    element, mean = difference.args
    if mean.attribute != "division" or mean.args[0].op is not Op.REDUCE:
        return None
    total, count = mean.args
    loops, others = total.reduction.loops, squares.reduction.loops
    if total.reduction.kind is not ReductionKind.SUM or len(loops) != 1 or len(others) != 1:
        return None
    is_same = put_loop(element, others[0], loops[0]) is total.args[0]
    return Moments(total, mean, squares) if is_same and _counts(count, loops[0]) and _counts(count, others[0]) else None


def find_root(value: Expr) -> Expr | None:
    """What a value is the square of."""
    if value.attribute == "square":
        return value.args[0]
    is_product = value.attribute == "multiplication" and value.args[0] is value.args[1]
    return value.args[0] if is_product else None


def _counts(count: Expr, loop: Loop) -> bool:
    """Whether a number is how many turns a loop has."""
    if loop.number is None:
        return count.attribute == loop.size
    return isinstance(count.attribute, Named) and count.attribute.value == loop.number.value


def write_element(value: str) -> str:
    """The moments of one element; one that is not finite counts nothing and is added to the squares."""
    return f"isfinite({value}) ? {TYPE}({value}, 0, 1) : {TYPE}(0, {value}, 0)"


def write_end(name: str, count: str) -> Iterator[str]:
    """What moments are of all elements: those that are not finite decide the mean, and nothing is at a distance."""
    yield f"if (!isfinite({name}.y) && {name}.z != {count}) {{"
    yield f"  {name} = {TYPE}({name}.y, NAN, {name}.z);"
    yield "}"


def write_addition(name: str, moments: str) -> str:
    return f"{name} = c10::metal::welford_combine({name}, {moments});"


def write_sharing(name: str, shared: str, lane: str, width: str, first: str = "") -> Iterator[str]:
    """How threads combine their moments, where those of a row have theirs from the place `first` of memory on."""
    yield f"{shared}[{f'{first} + ' if first else ''}{lane}] = {name};"
    row = f"{shared}{f' + {first}' if first else ''}"
    yield f"{name} = c10::metal::threadgroup_welford_combine({row}, {lane}, {width});"
