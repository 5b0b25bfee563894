"""What a program stores of rows without elements, as far as its arithmetic tells: of a sum 0, of a mean NaN."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

from porter.core.dtypes import Kind
from porter.loops.expressions import Buffer, Expr, Op, ReductionKind, find_reductions, walk
from porter.loops.fusion import Shape
from porter.loops.host_values import Apply, Constant, HostValue, Named, Number
from porter.loops.program import ArgumentBuffer, Programs, ResultBuffer, SymbolicProgram

_OF_NOTHING: Mapping[ReductionKind, Number] = {
    ReductionKind.SUM: 0, ReductionKind.PRODUCT: 1, ReductionKind.ANY: 0, ReductionKind.ALL: 1,
}  # fmt: skip
_ARITHMETIC: Mapping[str, Callable[..., float]] = {
    "addition": lambda a, b: a + b,
    "subtraction": lambda a, b: a - b,
    "multiplication": lambda a, b: a * b,
    "division": lambda a, b: _divide(a, b),
    "square": lambda a: a * a,
    "squareRoot": lambda a: math.sqrt(a) if a >= 0 else math.nan,
    "notEqual": lambda a, b: float(a != b),
}
_KEEPS_NAN = _ARITHMETIC.keys() - {"notEqual"}


def find_reduced(programs: Programs) -> str | None:
    """The argument that rows are of, if all that kernels read is its, and they make one element of each row.

    Of several that always have the same shape, the first.
    """
    nests = [nest.nest for case in programs.cases for nest in case.nests]
    read = [case.roles[buffer] for case in programs.cases for nest in case.nests for buffer in nest.nest.reads()]
    names = list(dict.fromkeys(role.name if isinstance(role, ArgumentBuffer) else "" for role in read))
    is_reduction = bool(nests) and all(nest.shape is Shape.REDUCTION for nest in nests)
    return names[0] if is_reduction and names and "" not in names and _are_alike(programs, names) else None


def _are_alike(programs: Programs, names: Sequence[str]) -> bool:
    """Whether arguments have the same shape in every call; so has one alone."""
    calls = [call.tensors for case in programs.cases for call in case.calls]
    shapes = [{call[name].shape if name in call else None for name in names} for call in calls]
    return len(names) == 1 or all(len(each) == 1 for each in shapes)


def compute_of_nothing(programs: Programs) -> dict[int, Number]:
    """What each result has of a row without elements: all of them, if no case differs and none is infinite."""
    values = [[(index, _compute(value)) for index, value in _list_stored(case)] for case in programs.cases]
    known = _keep_known(values)
    return known if len(known) == len({index for case in values for index, _ in case}) else {}


def compute_without(programs: Programs, tensor: str) -> dict[int, Number]:
    """What results have where a tensor has no elements, of those that are reductions of it: others are left out.

    A result that has elements then is of rows that have none. A reduction of other tensors alone may have some.
    """
    values = [
        [(index, _compute(value) if _reduces(case, value, tensor) else None) for index, value in _list_stored(case)]
        for case in programs.cases
    ]
    return _keep_known(values)


def _keep_known(cases: Sequence[Sequence[tuple[int, Number | None]]]) -> dict[int, Number]:
    """The values that results have in all cases alike, if they are known and finite, or NaN."""
    values: dict[int, set[str]] = {}
    last: dict[int, Number | None] = {}
    for index, value in (each for case in cases for each in case):
        values.setdefault(index, set()).add(repr(value))
        last[index] = value
    return {
        index: value
        for index, value in last.items()
        if len(values[index]) == 1 and value is not None and not math.isinf(value)
    }


def _reduces(case: SymbolicProgram, value: Expr, tensor: str) -> bool:
    """Whether all reductions of a value, and there are some, are of elements of a tensor."""
    reductions = find_reductions(value)
    memory = [{load.attribute for load in walk(each) if isinstance(load.attribute, Buffer)} for each in reductions]
    return bool(memory) and all(any(case.roles[b] == ArgumentBuffer(tensor) for b in each) for each in memory)


def _list_stored(case: SymbolicProgram) -> list[tuple[int, Expr]]:
    stores = case.stores
    roles = [(case.roles[store.buffer], store.value) for store in stores]
    return [(role.index, value) for role, value in roles if isinstance(role, ResultBuffer)]


def _compute(root: Expr) -> Number | None:
    """A value of rows without elements; None if it is not known."""
    loops = [each.reduction.loops for each in find_reductions(root)]
    zeros = {one[0].number.value for one in loops if len(one) == 1 and one[0].number}  # how many elements a row has
    made: dict[Expr, Number | None] = {}
    for each in walk(root):
        made[each] = _compute_one(each, [made[arg] for arg in each.args], zeros)
    return made[root]


def _compute_one(value: Expr, args: list[Number | None], zeros: Collection[HostValue]) -> Number | None:
    match value.op:
        case Op.NUMBER if isinstance(value.attribute, Named):
            return _evaluate(value.attribute.value, zeros)
        case Op.NUMBER if isinstance(value.attribute, (bool, int, float)):
            return value.attribute
        case Op.REDUCE:
            return _OF_NOTHING.get(value.reduction.kind)
        case Op.CAST if args[0] is not None and value.dtype is not None and not math.isnan(args[0]):
            return int(args[0] != 0) if value.dtype.kind is Kind.BOOL else args[0]
        case Op.CAST if value.dtype is not None and value.dtype.kind is Kind.FLOATING:
            return args[0]
        case Op.CALL:
            operation = str(value.attribute)
            known = [float(each) for each in args if each is not None]
            if operation in _KEEPS_NAN and any(map(math.isnan, known)):
                return math.nan
            if operation not in _ARITHMETIC or len(known) < len(args):
                return None
            return _ARITHMETIC[operation](*known)
    return None


def _evaluate(value: HostValue, zeros: Collection[HostValue]) -> float | None:
    """A number of host code where the sizes `zeros` are 0."""
    if value in zeros:
        return 0.0
    if isinstance(value, Constant):
        return float(value.value)
    if isinstance(value, Apply) and value.function == "/":
        left, right = (_evaluate(each, zeros) for each in value.arguments)
        return None if left is None or right is None else _divide(left, right)
    return None


def _divide(a: float, b: float) -> float:
    """A quotient as C++ has it."""
    if b:
        return a / b
    return math.nan if not a or math.isnan(a) else math.copysign(math.inf, a)
