"""Tensors that kernels read only where elements of another tensor allow it."""

from __future__ import annotations

import pytest

from porter.core.dtypes import FLOAT, LONG
from porter.loops.expressions import Buffer, Expr, Loop, Op, call, intern, load, number, select
from porter.loops.fusion import LoopNest, Store
from porter.loops.host_values import Arguments, Constant, TensorValue
from porter.loops.indices import at_least, equal, integer, less, read_index
from porter.loops.program import ArgumentBuffer, ResultBuffer, Role, SymbolicNest, SymbolicProgram
from porter.metal.codegen.host_values import Names
from porter.metal.codegen.kernel import KernelStyle, write_kernel
from porter.metal.codegen.launch import list_looked_up, write_launch

ROWS = Loop("i", 3)
TABLE, INDEX, OUTPUT = Buffer(0), Buffer(1), Buffer(2)
AT = read_index(load(INDEX, intern(Op.LOOP, (), None, ROWS), LONG))
ELEMENT = load(TABLE, at_least(AT, 0), FLOAT)
NOTHING = number(0, FLOAT)
ALLOWED = select(less(integer(-1), AT), ELEMENT, NOTHING)


def program(value: Expr) -> SymbolicProgram:
    tensors = {"self": TensorValue((4,), FLOAT), "index": TensorValue((3,), LONG), "result0": TensorValue((3,), FLOAT)}
    recorded = Arguments(tensors, {})
    place = intern(Op.LOOP, (), None, ROWS)
    nest = SymbolicNest(LoopNest((Store(OUTPUT, FLOAT, 3, (ROWS,), place, value),), (ROWS,)), Constant(3))
    roles: dict[Buffer, Role] = {TABLE: ArgumentBuffer("self"), INDEX: ArgumentBuffer("index"), OUTPUT: ResultBuffer(0)}
    return SymbolicProgram("made_up", (), "self", (FLOAT,), (nest,), roles, (), recorded, (recorded,))


@pytest.mark.parametrize(
    ("value", "looked_up"),
    [
        (ALLOWED, {"self"}),
        (ELEMENT, set()),  # read for every index
        (call("addition", (ALLOWED, ELEMENT), FLOAT), set()),
        (select(equal(intern(Op.LOOP, (), None, ROWS), integer(1)), ELEMENT, NOTHING), set()),  # by the place alone
        (select(less(integer(-1), AT), load(TABLE, intern(Op.LOOP, (), None, ROWS), FLOAT), NOTHING), set()),
    ],
)
def test_only_what_an_element_allows_is_looked_up(value: Expr, looked_up: set[str]) -> None:
    assert list_looked_up(program(value)) == looked_up


@pytest.mark.parametrize(("value", "has_memory"), [(ALLOWED, True), (ELEMENT, False)])
def test_a_tensor_without_elements_has_memory_to_bind(value: Expr, has_memory: bool) -> None:
    made_up = program(value)
    names = Names({"self": "input", "index": "index", "result0": "output"}, {"self": "Tensor", "index": "Tensor"})
    style = KernelStyle(threadgroup_reductions=True, guards_bfloat=False)
    kernel = write_kernel(made_up, made_up.nests[0], "kernel0", {0: "output"}, style)
    text = write_launch(made_up, [kernel], [made_up.nests[0].rows], names, False).write()
    bound = "input.numel() == 0 ? at::empty({1}, input.options()) : input.contiguous();"
    assert (bound in text) == has_memory and "index.numel() == 0" not in text
