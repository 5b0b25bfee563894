"""Cases whose kernels, as templates, compute the same in the types of one of them become one."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from porter.core.dtypes import BOOL, FLOAT, INT, LONG, DType
from porter.loops.expressions import Buffer, Expr, Loop, Op, Reduction, ReductionKind, intern
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import Arguments, Constant, SizeProduct, TensorValue
from porter.loops.program import ArgumentBuffer, ResultBuffer, Role, SymbolicNest, SymbolicProgram
from porter.metal.codegen.cases import computes_alike, join_cases
from tests.porter.metal.codegen.test_kernel_values import STYLES
from tests.porter.plan.recorded import fork

LOOP = Loop("r1.0", 42, fork.named("numel", SizeProduct("self"), 42))


def total(dtype: DType, summed: DType, value: Callable[[Expr], Expr], kind: ReductionKind) -> SymbolicProgram:
    """A program of tensors of one type that combines values of their elements in another, for a 64-bit result."""
    element = intern(Op.LOAD, (fork.index(LOOP),), dtype, fork.INPUT)
    found = intern(Op.REDUCE, (value(element),), summed, Reduction(kind, (LOOP,)))
    store = Store(fork.OUTPUT, LONG, 1, (), fork.integer(0), intern(Op.CAST, (found,), LONG))
    call = Arguments({"self": TensorValue((6, 7), dtype), "result0": TensorValue((), LONG)}, {})
    roles: dict[Buffer, Role] = {fork.INPUT: ArgumentBuffer("self"), fork.OUTPUT: ResultBuffer(0)}
    nest = SymbolicNest(LoopNest((store,), ()), Constant(1))
    return SymbolicProgram("tested", (), "self", (dtype,), (nest,), roles, (), call, (call,))


def is_nonzero(element: Expr, computed: DType) -> Expr:
    converted = element if element.dtype == computed else intern(Op.CAST, (element,), computed)
    zero = intern(Op.NUMBER, (), computed, 0.0 if computed == FLOAT else 0)
    return intern(Op.CAST, (intern(Op.CALL, (converted, zero), BOOL, "notEqual"),), INT)


def half_of(element: Expr) -> Expr:
    converted = intern(Op.CAST, (element,), FLOAT)
    return intern(Op.CALL, (converted, intern(Op.NUMBER, (), FLOAT, 0.5)), FLOAT, "multiplication")


OF_FLOAT = total(FLOAT, INT, lambda each: is_nonzero(each, FLOAT), ReductionKind.SUM)
OF_INT = total(INT, INT, lambda each: is_nonzero(each, INT), ReductionKind.SUM)
OF_BOOL = total(BOOL, INT, lambda each: is_nonzero(each, FLOAT), ReductionKind.SUM)


def test_types_that_are_counted_alike_have_one_kernel() -> None:
    [made] = join_cases((OF_FLOAT, OF_INT, OF_BOOL), STYLES[0])
    assert made.dtypes == (FLOAT, INT, BOOL)


@pytest.mark.parametrize("other", [OF_INT, OF_BOOL])
def test_a_count_of_floats_serves_others(other: SymbolicProgram) -> None:
    assert computes_alike(OF_FLOAT, other)


@pytest.mark.parametrize(
    "other",
    [
        total(BOOL, INT, lambda each: is_nonzero(each, FLOAT), ReductionKind.PRODUCT),  # combines in another way
        total(BOOL, FLOAT, half_of, ReductionKind.SUM),  # computes in a type that integers do not have
        total(INT, LONG, lambda each: is_nonzero(each, INT), ReductionKind.SUM),  # counts in 64 bits
    ],
)
def test_what_is_computed_otherwise_stays_apart(other: SymbolicProgram) -> None:
    assert not computes_alike(OF_FLOAT, other)
    assert len(join_cases((OF_FLOAT, other), STYLES[0])) == 2
