"""Programs as kernels are to have them: what only the graph needed goes, and reductions keep NaN as ATen's do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from porter.loops.expressions import Expr, Op, Reduction, ReductionKind, intern, walk
from porter.loops.host_values import HostValue, Named, Scalar, list_scalars, substitute
from porter.loops.optional import drop_unread
from porter.loops.program import ArgumentBuffer, Programs, ResultBuffer, Role, SymbolicProgram
from porter.metal.native.algebra import simplify_call
from porter.metal.native.merging import merge_nests
from porter.metal.native.reduced import with_strides
from porter.metal.native.scan import with_scans
from porter.metal.native.uniform import with_uniform

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
    bounds = (low.attribute, high.attribute)
    return is_index and all(isinstance(each, int) for each in bounds) and low.attribute == 0 and _is_large(high)


def _is_large(number: Expr) -> bool:
    return isinstance(number.attribute, int) and number.attribute >= _MOST
