"""Where the largest element is, of floats, integers and bools: one kernel for all, in every way that threads share."""

from __future__ import annotations

from math import nan

import pytest
import torch

from porter.core.dtypes import BFLOAT, BOOL, FLOAT, HALF, INT, LONG, SHORT, DType
from porter.loops.expressions import Buffer, Loop, Op, Reduction, ReductionKind, intern
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import Arguments, Constant, SizeProduct, TensorValue
from porter.loops.program import ArgumentBuffer, Programs, ResultBuffer, Role, SymbolicNest, SymbolicProgram
from porter.metal.helpers import read_helper
from tests.porter.metal.codegen.test_kernel_values import HELPERS, STYLES, THREADS, compile_one, reduce_rows
from tests.porter.plan.recorded import fork

FLOATS, INTEGERS = (FLOAT, HALF, BFLOAT), (INT, LONG, SHORT)
_OF_LONG = (1, 32, 1024)  # lanes: those that combine 64-bit integers read from each other, so that all have to be there
BEST = {ReductionKind.ARG_MAX: torch.argmax, ReductionKind.ARG_MIN: torch.argmin}


def find_best(kind: ReductionKind, dtypes: tuple[DType, ...]) -> SymbolicProgram:
    """A program of elements computed in the first type, for calls of all of them."""
    loop = Loop("r1.0", 42, fork.named("numel", SizeProduct("self"), 42))
    element = intern(Op.LOAD, (fork.index(loop),), dtypes[0], fork.INPUT)
    place = intern(Op.INDEX_VALUE, (fork.index(loop),), INT)
    found = intern(Op.REDUCE, (element, place), INT, Reduction(kind, (loop,)))
    store = Store(fork.OUTPUT, LONG, 1, (), fork.integer(0), intern(Op.CAST, (found,), LONG))
    calls = tuple(
        Arguments({"self": TensorValue((6, 7), each), "result0": TensorValue((), LONG)}, {}) for each in dtypes
    )
    nest = SymbolicNest(LoopNest((store,), ()), Constant(1))
    roles: dict[Buffer, Role] = {fork.INPUT: ArgumentBuffer("self"), fork.OUTPUT: ResultBuffer(0)}
    return SymbolicProgram("tested", (), "self", dtypes, (nest,), roles, (), calls[0], calls)


@pytest.mark.parametrize("kind", BEST)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("float", torch.float32),
        ("half", torch.float16),
        ("int", torch.int32),
        ("long", torch.int64),
        ("bool", torch.bool),
    ],
)
def test_types_share_a_kernel(kind: ReductionKind, name: str, dtype: torch.dtype) -> None:
    programs = Programs("tested", (find_best(kind, FLOATS), find_best(kind, (*INTEGERS, BOOL))))
    kernel, library = compile_one(programs, STYLES[0], f"{name}_int", HELPERS + read_helper("combined_t.metal"))
    assert "combined_t<T> extreme" in kernel.source and "isnan" not in kernel.source
    for size in (1, 33, 2500):
        given = torch.randint(-9, 9, (size,)).to(dtype)
        several = [given, given.amin().expand(size).contiguous()]  # of the same type, bools too
        if dtype.is_floating_point and size > 1:
            several += [given.index_fill(0, torch.tensor([size // 2, size - 1]), nan)]
        for each in several:
            for threads in (way for way in THREADS if name != "long" or way.lanes in _OF_LONG):
                found = torch.full((), 7)
                reduce_rows(library, kernel, f"{name}_int", threads, found, each, torch.tensor([size]).int())
                assert found.item() == BEST[kind](each.to(torch.uint8) if dtype is torch.bool else each).item()


def test_floats_alone_need_no_other_words() -> None:
    kernel, _ = compile_one(
        Programs("tested", (find_best(ReductionKind.ARG_MAX, FLOATS),)), STYLES[0], "float_int", HELPERS
    )
    assert "isnan(value)" in kernel.source and "combined_t" not in kernel.source
