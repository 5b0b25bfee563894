"""Printed expressions have the brackets that they need: the syntax tree is the same as with brackets everywhere."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from porter.core.dtypes import FLOAT
from porter.languages import cpp
from porter.languages.cpp_parser import parse_expression
from porter.loops.expressions import Expr, Loop, Op, intern
from porter.loops.fusion import Store
from porter.metal.codegen.kept_rows import KeptRows, RowWriter
from porter.metal.codegen.schedule import Family, choose_schedule
from porter.metal.expression import Binding, Printed, fill_form
from porter.metal.loop_spelling import Spelling, flatten_sum
from porter.metal.loop_text import ExpressionWriter
from porter.mpsgraph.operations import operations
from tests.porter.metal.test_parentheses import without_parentheses
from tests.porter.plan.recorded import fork

FORMS = {form for row in operations().values() for form in (row.msl, row.complex_msl) if "{0}" in form}
OPERANDS = (Printed("a + b", Binding.SUM), Printed("c ? d : e", Binding.CONDITION), Printed("-f", Binding.MINUS))


def tree(text: str) -> object:
    return without_parentheses(parse_expression("made up", text))


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_form_keeps_its_operands_and_is_one_itself(form: str) -> None:
    for at in range(len(OPERANDS)):
        operands = OPERANDS[at:] + OPERANDS[:at]
        printed = fill_form(form, operands)
        bracketed = form.format(*(f"({each})" for each in operands))
        assert tree(printed.text) == tree(bracketed)
        assert tree(f"{printed.within(Binding.PRODUCT)} * x") == tree(f"({bracketed}) * x")
        assert tree(f"{printed.within(Binding.MINUS)} + x") == tree(f"({bracketed}) + x")
        assert tree(f"x / {printed.operand}") == tree(f"x / ({bracketed})")


ROW, COLUMN = Loop("row", 9), Loop("column", 9)
SPELLING = Spelling({}, {}, lambda dtype: dtype.metal, lambda *each: None)
OPERATORS: Mapping[str, Callable[[int, int], int]] = {  # as in C++
    "+": operator.add, "-": operator.sub, "*": operator.mul,
    "/": lambda a, b: math.trunc(a / b), "%": lambda a, b: int(math.fmod(a, b)),
    "<": operator.lt, "==": operator.eq, "&&": lambda a, b: a and b,
}  # fmt: skip
VALUES: Mapping[Op, Callable[..., int]] = {  # of operands
    Op.SUM: lambda *terms: sum(terms), Op.PRODUCT: operator.mul, Op.QUOTIENT: operator.floordiv,
    Op.REMAINDER: operator.mod, Op.LEAST: min, Op.GREATEST: max, Op.LESS: operator.lt, Op.EQUAL: operator.eq,
    Op.BOTH: lambda a, b: a and b, Op.SELECT: lambda condition, yes, no: yes if condition else no,
}  # fmt: skip


def extend(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    def combine(op: Op, *args: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        return st.tuples(*args).map(lambda drawn: intern(op, drawn))

    factors, divisors = (st.integers(least, 7).map(fork.integer) for least in (-7, 1))
    compared = st.one_of(*(combine(op, inner, inner) for op in (Op.LESS, Op.EQUAL)))
    return st.one_of(
        st.lists(inner, min_size=2, max_size=4).map(lambda terms: intern(Op.SUM, terms)),
        combine(Op.PRODUCT, inner, factors),
        combine(Op.QUOTIENT, inner, divisors),
        combine(Op.REMAINDER, inner, divisors),
        combine(Op.SELECT, compared | combine(Op.BOTH, compared, compared), inner, inner),
    )


INDICES = st.recursive(
    st.sampled_from([fork.index(ROW), fork.index(COLUMN), fork.integer(3), fork.integer(-1)]), extend
)

CHOICE = intern(
    Op.SELECT,
    (intern(Op.LESS, (fork.index(ROW), fork.integer(3))), fork.index(COLUMN), fork.integer(0)),
)


def compute(expr: Expr, loops: dict[Loop, int]) -> int:
    """The value of an index."""
    if isinstance(expr.attribute, Loop):
        return loops[expr.attribute]
    return expr.integer if expr.integer is not None else VALUES[expr.op](*(compute(arg, loops) for arg in expr.args))


def read(text: cpp.Expr, variables: dict[str, int]) -> int:
    """The value of printed text."""
    match text:
        case cpp.Paren(value=value):
            return read(value, variables)
        case cpp.Name(path=path):
            return variables[path]
        case cpp.Literal(text=number):
            return int(number)
        case cpp.Unary(op="-", value=value):
            return -read(value, variables)
        case cpp.Ternary(test=test, yes=yes, no=no):
            return read(yes if read(test, variables) else no, variables)
        case cpp.Binary():
            return OPERATORS[text.op](read(text.left, variables), read(text.right, variables))
    raise AssertionError(text)


@given(INDICES, st.integers(0, 8), st.integers(0, 8))
def test_an_index_keeps_its_value(index: Expr, row: int, column: int) -> None:
    printed = ExpressionWriter(SPELLING, is_copy=False).text(index)
    variables = {"row": row, "column": column}
    assert read(parse_expression("made up", printed.text), variables) == compute(index, {ROW: row, COLUMN: column})


@example(CHOICE, 5, 7)
@given(INDICES, st.integers(0, 8), st.integers(0, 8))
def test_what_is_added_to_the_start_of_a_row_keeps_its_value(index: Expr, row: int, column: int) -> None:
    place = intern(Op.SUM, (fork.index(ROW), index))
    of_row = tuple(each for each in flatten_sum([place]) if each.loops == {ROW})
    writer = RowWriter(SPELLING, is_copy=False, rows=frozenset({ROW}), starts={of_row: "start"})
    loops = {ROW: row, COLUMN: column}
    variables = {"row": row, "column": column, "start": sum(compute(each, loops) for each in of_row)}
    text = writer.text(place).text
    assert text.startswith("start")
    assert read(parse_expression("made up", text), variables) == compute(place, loops)


def test_a_choice_of_neighbors_is_added_to_where_memory_starts() -> None:
    buffers = {fork.INPUT: "input", fork.OUTPUT: "output"}
    spelling = replace(SPELLING, buffers=buffers, elements=dict.fromkeys(buffers, "T"))
    kept = KeptRows(COLUMN, {}, ())
    schedule = choose_schedule(Family.KEPT_ROWS, neighbors=4)
    value = fork.read(CHOICE)
    writer = RowWriter(spelling, is_copy=False, kept=kept, schedule=schedule, current=(value,))
    writer.storing = Store(fork.OUTPUT, FLOAT, 81, (ROW, COLUMN), CHOICE, value)
    writer.write_strided((COLUMN,), lambda: None)
    pointers = [line.strip() for line in writer.lines if "reinterpret_cast" in line]
    assert pointers == [
        "const auto elements = *reinterpret_cast<constant neighbors<T, V>*>(input + ((row < 3) ? column : 0));",
        "*reinterpret_cast<device neighbors<T, V>*>(output + ((row < 3) ? column : 0)) = results;",
    ]
