"""What programs store of rows without elements."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from porter.core.dtypes import BOOL, FLOAT, INT
from porter.loops.empty_rows import compute_of_nothing, compute_without, find_reduced
from porter.loops.expressions import Buffer, Expr, Loop, Op, Reduction, ReductionKind, call, cast, intern, number
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import Apply, Arguments, Constant, HostValue, Named, Scalar, Size, TensorValue
from porter.loops.indices import integer
from porter.loops.program import ArgumentBuffer, Programs, ResultBuffer, Role, SymbolicNest, SymbolicProgram

SIZE = Size("self", Constant(1))
ROW = Loop("r", 4, Named("length", SIZE, 4))
ROWS = Loop("i", 3)
INPUT, OUTPUT = Buffer(0), Buffer(1)


def reduce(kind: ReductionKind, loop: Loop = ROW) -> Expr:
    element = intern(Op.LOAD, (intern(Op.LOOP, (), None, loop),), FLOAT, INPUT)
    return intern(Op.REDUCE, (element,), FLOAT, Reduction(kind, (loop,)))


def named(value: HostValue) -> Expr:
    return intern(Op.NUMBER, (), FLOAT, Named("n", value, 4))


def programs(*values: Expr, rows: tuple[Loop, ...] = (ROWS,), loops: tuple[Loop, ...] = (ROWS,)) -> Programs:
    """A case for each value that one result has."""
    call = Arguments({"self": TensorValue((3, 4), FLOAT), "result0": TensorValue((3,), FLOAT)}, {})
    made = []
    for value in values:
        nest = SymbolicNest(LoopNest((Store(OUTPUT, FLOAT, 3, loops, integer(0), value),), rows), Constant(3))
        roles: dict[Buffer, Role] = {INPUT: ArgumentBuffer("self"), OUTPUT: ResultBuffer(0)}
        made.append(SymbolicProgram("made_up", (), "self", (FLOAT,), (nest,), roles, (), call, (call,)))
    return Programs("made_up", tuple(made))


SUM = reduce(ReductionKind.SUM)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (SUM, 0),
        (reduce(ReductionKind.PRODUCT), 1),
        (reduce(ReductionKind.ANY), 0),
        (reduce(ReductionKind.ALL), 1),
        (cast(reduce(ReductionKind.ALL), BOOL), 1),
        (call("addition", (SUM, number(2, FLOAT)), FLOAT), 2),
        (call("division", (SUM, named(SIZE)), FLOAT), math.nan),
        (call("multiplication", (SUM, named(Apply("/", (Constant(1), SIZE)))), FLOAT), math.nan),
        (call("squareRoot", (call("division", (SUM, named(SIZE)), FLOAT),), FLOAT), math.nan),
        (call("multiplication", (call("division", (SUM, named(SIZE)), FLOAT), named(Scalar("s"))), FLOAT), math.nan),
    ],
)
def test_what_is_known(value: Expr, expected: float) -> None:
    [found] = compute_of_nothing(programs(value)).values()
    assert found == expected or (math.isnan(found) and math.isnan(expected))


@pytest.mark.parametrize(
    "value",
    [
        reduce(ReductionKind.MAX),
        call("multiplication", (SUM, named(Scalar("s"))), FLOAT),
        call("division", (reduce(ReductionKind.PRODUCT), named(SIZE)), FLOAT),
        call("exponent", (SUM,), FLOAT),
        cast(call("division", (SUM, named(SIZE)), FLOAT), INT),
        intern(Op.LOAD, (integer(0),), FLOAT, INPUT),
    ],
)
def test_what_is_not_known_is_none(value: Expr) -> None:
    assert compute_of_nothing(programs(value)) == {}


def test_cases_have_to_agree() -> None:
    total, mean = SUM, call("division", (SUM, named(SIZE)), FLOAT)
    assert compute_of_nothing(programs(total, total)) == {0: 0}
    assert compute_of_nothing(programs(total, mean)) == {}
    assert math.isnan(compute_of_nothing(programs(mean, mean))[0])


def test_the_argument_that_rows_are_of() -> None:
    assert find_reduced(programs(SUM)) == "self"
    assert find_reduced(programs(SUM, loops=(ROWS, ROW))) is None  # a result has elements within rows
    assert find_reduced(Programs("made_up", ())) is None
    found = programs(SUM)
    other = replace(found.cases[0], roles={**found.cases[0].roles, INPUT: ArgumentBuffer("weight")})
    assert find_reduced(replace(found, cases=(*found.cases, other))) is None  # not in every call


@pytest.mark.parametrize(("shape", "reduced"), [((3, 4), "self"), ((4, 3), None)])
def test_the_first_of_arguments_of_one_shape(shape: tuple[int, ...], reduced: str | None) -> None:
    def take_two(case: SymbolicProgram) -> SymbolicProgram:
        calls = [replace(each, tensors={**each.tensors, "weight": TensorValue(shape, FLOAT)}) for each in case.calls]
        return replace(case, calls=tuple(calls))

    found = programs(SUM)
    other = replace(found.cases[0], roles={**found.cases[0].roles, INPUT: ArgumentBuffer("weight")})
    assert find_reduced(replace(found, cases=tuple(map(take_two, (*found.cases, other))))) == reduced


def test_rows_of_what_is_written_are_not_known() -> None:
    found = programs(SUM)
    written = replace(found.cases[0], roles={**found.cases[0].roles, INPUT: ResultBuffer(1)})
    assert find_reduced(replace(found, cases=(written,))) is None


def test_what_reductions_of_a_tensor_without_elements_are() -> None:
    assert compute_without(programs(SUM), "self") == {0: 0}
    assert compute_without(programs(SUM), "other") == {}  # which may have elements
    assert compute_without(programs(SUM, reduce(ReductionKind.PRODUCT)), "self") == {}  # cases differ
    element = intern(Op.LOAD, (integer(0),), FLOAT, INPUT)
    assert compute_without(programs(element), "self") == {}  # no reduction: there is none of it
    assert compute_without(programs(reduce(ReductionKind.MAX)), "self") == {}
