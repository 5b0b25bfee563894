"""Recovers a number in a graph as a function of the operator's arguments, from several runs.

Host code feeds a scalar argument to the graph or bakes in a number computed from it; either way each run shows a value.
A form is accepted if it gives the value of every run, in the precision of the graph's dtype.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import permutations

from porter.core.dtypes import DType, Kind
from porter.mpsgraph.graph import Call, Constant, Expr, Literal, Scalar, UnknownValue, Value

Arguments = Mapping[str, Value]
_MIN_VALUES = 3  # distinct values needed to rule out a coincidence
_ONE = 1.0
_PLAIN = (-1, 0, 0.5, 1, 2)
_FUNCTIONS: Mapping[str, Callable[..., float]] = {
    "negative": lambda a: -a,
    "reciprocal": lambda a: 1 / a,
    "addition": lambda a, b: a + b,
    "subtraction": lambda a, b: a - b,
    "multiplication": lambda a, b: a * b,
    "division": lambda a, b: a / b,
    "exponent": math.exp,
    "logarithm": math.log,
    "squareRoot": math.sqrt,
    "minimum": min,
    "maximum": max,
}
# An operation on argument 0, argument 1 and numbers; simpler forms first.
_Form = tuple[str, tuple["int | float | _Form", ...]]
_FORMS: tuple[_Form, ...] = (
    ("negative", (0,)),
    ("reciprocal", (0,)),
    ("subtraction", (_ONE, 0)),
    ("subtraction", (0, _ONE)),
    ("addition", (_ONE, 0)),
    ("multiplication", (0, 0)),
    ("squareRoot", (0,)),
    ("exponent", (0,)),
    ("logarithm", (0,)),
    ("multiplication", (0, 0.5)),
    ("multiplication", (0, 2.0)),
    ("subtraction", (0, 1)),
    ("multiplication", (0, 1)),
    ("division", (0, 1)),
    ("addition", (0, 1)),
    ("minimum", (0, 1)),
    ("maximum", (0, 1)),
    ("multiplication", (("negative", (0,)), 1)),
    ("negative", (("division", (0, 1)),)),
)


def recover_expression(leaves: Sequence[Constant | Literal], calls: Sequence[Arguments]) -> Expr:
    """Expresses the leaves of all runs as one function of the arguments; unknown if no form matches all values."""
    first = leaves[0]
    values = [leaf.value for leaf in leaves]
    if all(_is_same(value, values[0]) for value in values):
        return (_find_equal_argument(first, calls) or first) if isinstance(first, Constant) else first
    recover = _recover_number if isinstance(first, Constant) else _recover_literal
    return recover(values, calls, first.dtype) or UnknownValue(tuple(dict.fromkeys(values)), first.dtype)


def _find_equal_argument(number: Constant, calls: Sequence[Arguments]) -> Expr | None:
    """The only argument equal to this number in every call. Simple numbers are assumed to be host code's own."""
    if number.value in _PLAIN:
        return None
    names = [
        name
        for name in _find_common_names(calls)
        if "." not in name and all(_equals(call[name], number) for call in calls)
    ]
    return Scalar(names[0], number.dtype) if len(names) == 1 else None


def _equals(value: Value, number: Constant) -> bool:
    return isinstance(value, (int, float)) and _is_close(value, float(number.value), number.dtype)


def _recover_literal(values: Sequence[Value], calls: Sequence[Arguments], dtype: DType) -> Expr | None:
    """The argument that a literal equals: directly, alone in a list, as a wrapped axis, or as the list of all axes."""
    ranks = [call.get("self.dim()", -1) for call in calls]
    if all(isinstance(v, tuple) and sorted(map(str, v)) == _axes(rank) for v, rank in zip(values, ranks, strict=True)):
        return Literal("every axis", dtype)
    for name in _find_common_names(calls):
        given = [call[name] for call in calls]
        if all(_matches(value, arg, rank) for value, arg, rank in zip(values, given, ranks, strict=True)):
            return Literal(name, dtype)
    return None


def _axes(rank: Value) -> list[str]:
    return sorted(map(str, range(rank))) if isinstance(rank, int) else []


def _matches(value: Value, arg: Value, rank: Value) -> bool:
    if (value, arg) == ((1,), ()):  # host code passes a 0-d shape as [1]
        return True
    if isinstance(value, tuple):
        items = arg if isinstance(arg, tuple) else (arg,)
        return len(items) == len(value) and all(_matches(v, a, rank) for v, a in zip(value, items, strict=True))
    wrapped = isinstance(value, int) and isinstance(arg, int) and isinstance(rank, int) and value == arg + rank
    return wrapped or (type(value) is type(arg) and value == arg)


def _recover_number(values: Sequence[Value], calls: Sequence[Arguments], dtype: DType) -> Expr | None:
    numbers = [float(value) for value in values if isinstance(value, (int, float))]
    names = [name for name in _find_common_names(calls) if all(_is_number(call[name]) for call in calls)]
    columns = {name: [float(call[name]) for call in calls] for name in names}  # type: ignore[arg-type]
    for name in names:
        if all(_is_close(given, number, dtype) for given, number in zip(columns[name], numbers, strict=True)):
            return Scalar(name, dtype)
    if len(set(numbers)) < _MIN_VALUES:
        return None
    for form in _FORMS:
        arity = 1 + max(_list_arguments(form))
        for chosen in permutations(names, arity):
            rows = zip(*(columns[name] for name in chosen), strict=True)
            if all(_is_close(_evaluate(form, row), number, dtype) for row, number in zip(rows, numbers, strict=True)):
                return _expression(form, chosen, dtype)
    return None


def _find_common_names(calls: Sequence[Arguments]) -> list[str]:
    """The names common to all runs: arguments first, then tensor properties."""
    names = [name for name in calls[0] if all(name in call for call in calls)]
    return sorted(names, key=lambda name: "." in name)


def _list_arguments(form: _Form) -> set[int]:
    return {i for part in form[1] for i in ({part} if isinstance(part, int) else _list_arguments_in(part))}


def _list_arguments_in(part: float | _Form) -> set[int]:
    return _list_arguments(part) if isinstance(part, tuple) else set()


def _evaluate(form: _Form, row: Sequence[float]) -> float:
    def value(part: int | float | _Form) -> float:
        if isinstance(part, tuple):
            return _evaluate(part, row)
        return row[part] if isinstance(part, int) else part

    try:
        return _FUNCTIONS[form[0]](*map(value, form[1]))
    except (ArithmeticError, ValueError):
        return math.nan


def _expression(form: _Form, names: Sequence[str], dtype: DType) -> Expr:
    def part_of(part: int | float | _Form) -> Expr:
        if isinstance(part, tuple):
            return _expression(part, names, dtype)
        return Scalar(names[part], dtype) if isinstance(part, int) else Constant(part, dtype)

    return Call(form[0], tuple(map(part_of, form[1])), dtype)


def _is_number(value: Value) -> bool:
    return isinstance(value, (int, float))


def _is_same(a: Value, b: Value) -> bool:
    return a == b or (a != a and b != b)  # NaN alone differs from itself


def _is_close(expected: float, actual: float, dtype: DType) -> bool:
    """Whether numbers are equal when rounded to the graph's dtype, or to float32, in which host code passes them."""
    if math.isnan(expected) or math.isinf(expected) or expected == actual:
        return expected == actual or (math.isnan(expected) and math.isnan(actual))
    if dtype.kind in (Kind.INTEGRAL, Kind.BOOL):
        return (math.trunc(expected) - int(actual)) % (1 << 8 * dtype.size) == 0
    return abs(expected - actual) <= 2.0 ** -min(dtype.digits, 23) * abs(actual)
