"""Programs as kernels are to have them."""

from __future__ import annotations

import pytest

from porter.core.dtypes import FLOAT, INT
from porter.loops.expressions import Expr, Loop, Op, call, intern, number, select
from porter.loops.fusion import Store
from porter.loops.host_values import SizeProduct
from porter.loops.indices import less
from porter.metal.codegen.canonicalize import prepare
from tests.porter.plan.recorded import fork

ROW = Loop("i0", 42)
CONDITION = less(fork.index(ROW), 7)


def prepare_value(value: Expr) -> Expr:
    store = Store(fork.OUTPUT, FLOAT, 42, (ROW,), fork.index(ROW), value)
    [case] = prepare(fork.program("masked", store, (ROW,), SizeProduct("self"), (42,))).cases
    return case.nests[0].nest.stores[0].value


def test_a_mask_that_a_condition_makes_is_the_condition() -> None:
    element = fork.read(fork.index(ROW))
    mask = select(CONDITION, number(1, INT), number(0, INT))
    found = prepare_value(call("select", (mask, number(0, FLOAT), element), FLOAT))
    assert found == intern(Op.SELECT, (CONDITION, number(0, FLOAT), element), FLOAT)


@pytest.mark.parametrize("values", [(0, 1), (2, 0)])
def test_another_mask_stays(values: tuple[int, int]) -> None:
    mask = select(CONDITION, *(number(each, INT) for each in values))
    found = prepare_value(call("select", (mask, number(0, FLOAT), fork.read(fork.index(ROW))), FLOAT))
    assert found.op is Op.CALL
