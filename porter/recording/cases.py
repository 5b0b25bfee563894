"""Groups the calls of an implementation into cases: what each computes, and under which condition.

A number of a graph is a function of the arguments. Host code feeds a scalar to the graph or bakes in a number computed
from it; either way each run shows a value. A form is accepted if it gives the value of every run, in the graph's type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby, permutations
from math import isfinite
from typing import TypeVar

from porter.aten.branches import Condition
from porter.core.dtypes import DType, Kind
from porter.mpsgraph.conditions import (
    UNKNOWN,
    Answered,
    Arguments,
    Compared,
    Flag,
    Present,
    Question,
    Undecided,
    answer,
)
from porter.mpsgraph.graph import (
    Call,
    Case,
    Constant,
    Expr,
    Literal,
    Scalar,
    UnknownValue,
    Value,
    leaves,
    nodes,
    replace_leaves,
    skeleton,
)
from porter.recording.expressions import merge_parts

T = TypeVar("T")
_MAX_CONDITIONS = 4
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
_MAX_DEPTH = 3  # splits of a group of calls


def find_distinguishing_conditions(group: Sequence[Arguments], others: Sequence[Arguments]) -> tuple[Answered, ...]:
    """Finds a small set of conditions that all hold for every call of a group, and for no other call.

    Prefers options, flags and strings to numbers. UNKNOWN if there is no such set.
    """
    matching: list[Answered] = []
    for question in _list_questions([*group, *others]):
        with suppress(Undecided):
            answers = {answer(question, call) for call in group}
            matching += [Answered(question, answers.pop())] if len(answers) == 1 else []
    plain = [each for each in matching if not _compares_number(each.question)]
    return _find_fewest(plain, others) or _find_fewest(matching, others) or (UNKNOWN,)


def _find_fewest(matching: Sequence[Answered], others: Sequence[Arguments]) -> tuple[Answered, ...]:
    """Answers that together exclude all other calls; empty if there are none."""
    chosen: list[Answered] = []
    rest = list(others)
    while rest and len(chosen) < _MAX_CONDITIONS:
        best = max(matching, key=lambda answered: sum(not answered.is_met(call) for call in rest), default=None)
        if best is None or all(best.is_met(call) for call in rest):
            return ()
        chosen.append(best)
        rest = [call for call in rest if best.is_met(call)]
    return () if rest else _simplify(chosen, matching, others)


def _simplify(
    chosen: Sequence[Answered], matching: Sequence[Answered], others: Sequence[Arguments]
) -> tuple[Answered, ...]:
    """Replaces each answer with the first on the same argument that still works: one with 0, if possible."""
    simplified = list(chosen)
    for at, answered in enumerate(chosen):
        met = [call for call in others if all(each.is_met(call) for i, each in enumerate(simplified) if i != at)]
        alike = (each for each in matching if _find_subject(each.question) == _find_subject(answered.question))
        simplified[at] = next(each for each in alike if not any(each.is_met(call) for call in met))
    return tuple(simplified)


def _find_subject(question: Question) -> tuple[bool, str]:
    """What a question is about: of an expression, its first operand."""
    return isinstance(question, Present), question.name.split(" ")[0]


def _compares_number(question: Question) -> bool:
    """Whether a question compares with a number, or is an expression that compares."""
    return " == " in question.name or (isinstance(question, Compared) and not isinstance(question.value, str))


def split_calls(items: Sequence[T], calls: Sequence[Arguments]) -> Iterator[tuple[list[T], list[T]]]:
    """Yields splits of the items (one per call) in two: by an optional argument, a flag or a string."""
    for question in (each for each in _list_questions(calls) if not _compares_number(each)):
        sides: dict[bool, list[T]] = {True: [], False: []}
        with suppress(Undecided):
            for item, call in zip(items, calls, strict=True):
                sides[answer(question, call)].append(item)
            if sides[True] and sides[False]:
                yield sides[True], sides[False]


def _list_questions(calls: Sequence[Arguments]) -> Iterator[Question]:
    """The questions to ask: on arguments first, then on tensor properties; of arguments, on flags first.

    Which tensors are given may follow from a flag.
    """
    flags = {name for call in calls for name, value in call.items() if isinstance(value, bool)}
    flags -= {name for call in calls for name, value in call.items() if value is None}
    names = sorted({name for call in calls for name in call}, key=lambda name: ("." in name, name not in flags, name))
    for name in names:
        values = list(dict.fromkeys(call.get(name) for call in calls))
        if len(values) < 2:
            continue
        if None in values and "." not in name:  # a tensor property is never optional
            yield Present(name)
        if any(isinstance(value, bool) for value in values):
            yield Flag(name)
        yield from (Compared(name, "==", value) for value in values if isinstance(value, str))
        numbers = sorted({v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)}, key=abs)
        yield from (Compared(name, "==", v) for v in numbers if v in numbers[:6] or not isfinite(v))
        yield from (Compared(name, sign, v) for v in numbers[:3] for sign in "<>")


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
    if all(value == values[0] or (value != value and values[0] != values[0]) for value in values):  # or all NaN
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
    names = [name for name in _find_common_names(calls) if all(isinstance(call[name], (int, float)) for call in calls)]
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
    inner = (_list_arguments(part) for part in form[1] if isinstance(part, tuple))
    return {part for part in form[1] if isinstance(part, int)}.union(*inner)


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


def _is_close(expected: float, actual: float, dtype: DType) -> bool:
    """Whether numbers are equal when rounded to the graph's dtype, or to float32, in which host code passes them."""
    if math.isnan(expected) or math.isinf(expected) or expected == actual:
        return expected == actual or (math.isnan(expected) and math.isnan(actual))
    if dtype.kind in (Kind.INTEGRAL, Kind.BOOL):
        return (math.trunc(expected) - int(actual)) % (1 << 8 * dtype.size) == 0
    return abs(expected - actual) <= 2.0 ** -min(dtype.digits, 23) * abs(actual)


@dataclass(frozen=True)
class RecordedCall:
    """One recorded call: its arguments by name, and the expression it computed, with its own numbers."""

    dtype: DType
    arguments: Mapping[str, Value]
    expr: Expr


def build_cases(observed: Sequence[RecordedCall]) -> tuple[tuple[Case, ...], tuple[int, ...]]:
    """The cases of calls (ordered by dtype), and the index of each call's case."""
    cases: list[Case] = []
    taken: dict[int, int] = {}
    for dtype, found in groupby(observed, key=lambda each: each.dtype):
        groups = [part for group in _group_by_operations(list(found)) for part in _split_group(group, _MAX_DEPTH)]
        for group in groups:
            others = [each.arguments for other in groups if other is not group for each in other]
            when = find_distinguishing_conditions([each.arguments for each in group], others) if others else ()
            taken |= {id(each): len(cases) for each in group}
            conditions = tuple(Condition(str(each.question), each.holds) for each in when)
            cases.append(Case(dtype, conditions, _merge_calls(group)))
    return tuple(cases), tuple(taken[id(each)] for each in observed)


def find_unknown_numbers(expr: Expr) -> Iterator[UnknownValue]:
    """The unknown numbers of an expression."""
    return (node for node in nodes(expr) if isinstance(node, UnknownValue))


def _group_by_operations(observed: Sequence[RecordedCall]) -> list[list[RecordedCall]]:
    """Groups calls by the operations they ran, the largest group first."""
    groups: dict[str, list[RecordedCall]] = {}
    for each in observed:
        groups.setdefault(skeleton(each.expr), []).append(each)
    return sorted(groups.values(), key=len, reverse=True)


def _split_group(group: list[RecordedCall], depth: int) -> list[list[RecordedCall]]:
    """Splits a group by an option or a flag if that leaves fewer unknown numbers."""
    missing = _count_unknown(group)
    if not missing or not depth:
        return [group]
    for halves in split_calls(group, [each.arguments for each in group]):
        if sum(map(_count_unknown, halves)) < 2 * missing and max(map(_count_unknown, halves)) < missing:
            return [part for half in halves for part in _split_group(half, depth - 1)]
    return [group]


def _count_unknown(group: Sequence[RecordedCall]) -> int:
    return sum(1 for _ in find_unknown_numbers(_merge_calls(group)))


def _merge_calls(group: Sequence[RecordedCall]) -> Expr:
    """The expression the calls share, with numbers as functions of the arguments."""
    columns = zip(*(leaves(each.expr) for each in group), strict=True)
    arguments = [each.arguments for each in group]
    return merge_parts(replace_leaves(group[0].expr, (recover_expression(column, arguments) for column in columns)))
