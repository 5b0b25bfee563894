"""Kernels of other rows than the others of their function: they are not launched where there are none of theirs."""

from __future__ import annotations

from dataclasses import replace

from porter.loops.fusion import LoopNest
from porter.loops.host_values import Constant, Size
from porter.loops.program import SymbolicNest, SymbolicProgram
from porter.metal.codegen.host_values import Names
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.codegen.kernel import KernelStyle, write_kernel
from porter.metal.codegen.launch import write_launch
from tests.porter.plan.recorded import left_out

NAMES = Names(
    {"self": "input", "weight": "weight", "total": "total", "result0": "output", "result1": "sums"},
    {"self": "Tensor", "weight": "Tensor", "total": "Tensor"},
)
ROWS = Size("self", Constant(0))
STYLE = KernelStyle(threadgroup_reductions=True, guards_bfloat=False)


def write(program: SymbolicProgram, body: str = "") -> str:
    """The launch of a program's kernels, in a function with this body."""
    names = {0: "output", 1: "sums"}
    kernels = [write_kernel(program, nest, f"kernel{i}", names, STYLE) for i, nest in enumerate(program.nests)]
    coded = replace(NAMES, code=KeptCode(body))
    return write_launch(program, kernels, [nest.rows for nest in program.nests], coded, False).write()


def split(columns: Size) -> SymbolicProgram:
    """Kernels for each of two results, the second of which is of as many rows as some size."""
    program = left_out.whole()
    [nest] = program.nests
    output, sums, _ = nest.nest.stores
    apart = [
        SymbolicNest(LoopNest((store,), nest.nest.rows), rows) for store, rows in ((output, ROWS), (sums, columns))
    ]
    return replace(program, nests=tuple(apart))


def test_kernels_of_other_rows_are_launched_where_there_are_some() -> None:
    text = write(split(Size("self", Constant(1))))
    assert "if (input.size(0) > 0) {" in text and "if (input.size(1) > 0) {" in text


def test_variables_of_a_kernel_are_called_after_what_it_stores() -> None:
    text = write(split(ROWS))
    assert 'auto outputPSO = lib.getPipelineStateForFunc("kernel0_"' in text
    assert 'auto sumsPSO = lib.getPipelineStateForFunc("kernel1_"' in text and "const auto threads = " in text
    assert "auto PSO = " in write(left_out.whole())


def test_slices_of_several_kernels_are_told_apart() -> None:
    text = write(split(ROWS), "const bool threads = true;")
    assert "const auto sums_threads = " in text and "threads = share_rows" in text


def test_kernels_of_the_same_rows_are_launched_in_any_case() -> None:
    assert " > 0)" not in write(split(ROWS)) and " > 0)" not in write(left_out.whole())
