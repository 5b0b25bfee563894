"""Kernels that sum up to every element, by lanes along a row and by lanes of neighboring rows, against float64."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from porter.core.dtypes import FLOAT
from porter.loops.expressions import Expr, Loop, Op, Reduction, ReductionKind, intern
from porter.loops.fusion import Store
from porter.loops.host_values import Constant, Size, SizeProduct
from porter.loops.program import Programs
from porter.metal.codegen.scan import ScanNest, with_scans
from porter.metal.helpers import read_helper
from tests.porter.metal.codegen.test_kernel_values import HELPERS, STYLES, compile_one, name_instance
from tests.porter.plan.recorded import fork

SCAN_HELPERS = "".join(read_helper(f"{name}.metal") for name in ("combined_t", "shuffle_up"))
NONE = {ReductionKind.SUM: 0, ReductionKind.PRODUCT: 1}
COMPUTE = {ReductionKind.SUM: torch.cumsum, ReductionKind.PRODUCT: torch.cumprod}
# Rows and lanes of a threadgroup: a simdgroup along a row, several, and 32 neighboring rows.
GROUPS = ((1, 32), (1, 96), (1, 1024), (32, 1), (32, 5), (32, 32))
# Beside what lanes read at once: 4 elements each, 128 of a simdgroup, 4096 of 1,024 lanes.
LENGTHS = (1, 3, 4, 5, 127, 129, 257, 385, 4097)


def scanned(kind: ReductionKind) -> Programs:
    """A kernel of 2 by 7 by 3 elements, which are combined along the second dimension up to each."""
    count, inner = fork.named("count", Size("self", Constant(1)), 7), fork.named("inner", Size("self", Constant(2)), 3)
    row, along, column = Loop("i0", 2), Loop("i1", 7, count), Loop("i2", 3, inner)
    turn = Loop("r1.0", 7, count)

    def place(step: Loop) -> Expr:
        start = intern(Op.PRODUCT, (fork.index(row), fork.integer(count)))
        line = intern(Op.SUM, (start, fork.index(step)))
        return intern(Op.SUM, (intern(Op.PRODUCT, (line, fork.integer(inner))), fork.index(column)))

    upto = intern(Op.SUM, (fork.index(along), fork.integer(1)))
    none = intern(Op.NUMBER, (), FLOAT, NONE[kind])
    value = intern(Op.SELECT, (intern(Op.LESS, (fork.index(turn), upto)), fork.read(place(turn)), none), FLOAT)
    total = intern(Op.REDUCE, (value,), FLOAT, Reduction(kind, (turn,)))
    store = Store(fork.OUTPUT, FLOAT, 42, (row, along, column), place(along), total)
    return with_scans(fork.program("scanned", store, (row, along, column), SizeProduct("result0"), (2, 7, 3)))


@pytest.mark.parametrize("kind", NONE)
def test_scans_carry_on_from_lane_to_lane_and_from_turn_to_turn(kind: ReductionKind) -> None:
    programs = scanned(kind)
    assert isinstance(programs.cases[0].nests[0], ScanNest)
    kernel, library = compile_one(programs, STYLES[0], "float_int", HELPERS + SCAN_HELPERS)
    for length, inner, (columns, lanes) in product(LENGTHS, (1, 3, 33), GROUPS):
        source = (
            torch.rand(2, length, inner) + 0.5 if kind is ReductionKind.SUM else torch.rand(2, length, inner) / 9 + 0.95
        )
        output = torch.full_like(source, 7)
        numbers = [torch.tensor([each], dtype=torch.int32) for each in (inner, length)]
        library.run(
            name_instance(kernel, "float_int"), [output, source, *numbers], (2 * inner, lanes), (columns, lanes)
        )
        torch.testing.assert_close(output.double(), COMPUTE[kind](source.double(), 1), rtol=1e-5, atol=0)
