"""Results of a type that callers choose, of kernels that store one type."""

from __future__ import annotations

from dataclasses import replace

from porter.core.dtypes import BOOL, FLOAT, LONG
from porter.loops.program import Programs, ResultBuffer
from porter.metal.native.host_values import Names
from porter.metal.native.kernel import KernelStyle, write_kernel
from porter.metal.native.launch import write_launch
from porter.metal.native.preparing import prepare
from porter.metal.native.result_types import find_fixed_results
from porter.plan.native.choosing import list_suffixes, write_cases
from tests.porter.plan.native import fork

PROGRAM = prepare(fork.turned()).cases[0]
KERNEL = write_kernel(PROGRAM, PROGRAM.nests[0], "turned", {0: "out"}, KernelStyle(True, False))
RESULTS = {each: LONG.metal for each in KERNEL.buffers if isinstance(PROGRAM.roles[each], ResultBuffer)}
COUNTING = replace(KERNEL, elements=replace(KERNEL.elements, types={**KERNEL.elements.types, **RESULTS}))
VARIABLES = {"self": "self", "times": "times", "result0": "out"}
CHOSEN = Names(VARIABLES, {"dtype": "ScalarType?", "times": "int"})
GIVEN = "out.is_contiguous() && out.scalar_type() == ScalarType::Long"


def launch(names: Names) -> str:
    return write_launch(PROGRAM, [COUNTING], [PROGRAM.nests[0].rows], names, "", False).text


def test_a_kernel_that_stores_one_type_never_writes_a_result_of_another() -> None:
    assert dict(find_fixed_results(PROGRAM, [COUNTING], CHOSEN)) == {"result0": LONG}
    text = launch(CHOSEN)
    assert f"const auto out_ = {GIVEN} ? out : at::empty(out.sizes(), out.options().dtype(ScalarType::Long));" in text
    assert "mtl_setArgs(computeEncoder, out_, " in text
    assert "out.copy_(out_);" in text


def test_a_result_whose_type_nobody_chooses_is_written_as_it_is() -> None:
    assert not dict(find_fixed_results(PROGRAM, [COUNTING], Names(VARIABLES, {"times": "int"})))
    assert "ScalarType::Long" not in launch(Names(VARIABLES, {"times": "int"}))


def test_a_kernel_for_each_type_of_the_result_needs_no_copy() -> None:
    assert not dict(find_fixed_results(PROGRAM, [KERNEL], CHOSEN))


def test_kernels_of_bools_serve_a_bool_result_of_any_tensor() -> None:
    """Their name is no beginning of an instance of another case's kernel, of a pair of types that it may lack."""
    of_bools, others = replace(PROGRAM, dtypes=(BOOL,)), replace(PROGRAM, dtypes=(FLOAT, LONG))
    programs = Programs("turned", (of_bools, others))
    assert list_suffixes(programs) == ("_of_bool", "")
    launches = [write_launch(each, [COUNTING], [each.nests[0].rows], CHOSEN, "", False) for each in programs.cases]
    assert "const auto self_cast = self.to(kBool);" in launches[0].text
    assert "to(kBool)" not in launches[1].text
    text = write_cases(programs, launches, [["turned_of_bool"], ["turned"]], CHOSEN, "")
    assert text.startswith("if (self.scalar_type() == kBool || out.scalar_type() == kBool) {")
