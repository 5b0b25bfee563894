"""Results of a type that callers choose, of kernels that store one type."""

from __future__ import annotations

from dataclasses import replace

import pytest

from porter.core.dtypes import BOOL, FLOAT, HALF, INT, LONG, DType
from porter.loops.program import Programs, ResultBuffer, SymbolicProgram
from porter.metal.codegen.canonicalize import prepare
from porter.metal.codegen.elements import TypeParameter
from porter.metal.codegen.host_code import print_nodes
from porter.metal.codegen.host_values import Names
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.codegen.kernel import KernelStyle, NativeKernel, write_kernel
from porter.metal.codegen.launch import write_launch
from porter.metal.codegen.result_types import find_fixed_results
from porter.plan.recorded.case_choice import list_suffixes, write_cases
from tests.porter.metal.codegen.test_types_alike import OF_FLOAT
from tests.porter.plan.recorded import fork

PROGRAM = prepare(fork.turned()).cases[0]
KERNEL = write_kernel(PROGRAM, PROGRAM.nests[0], "turned", {0: "out"}, KernelStyle(True, False))
RESULTS = {each: LONG.metal for each in KERNEL.buffers if isinstance(PROGRAM.roles[each], ResultBuffer)}
COUNTING = replace(KERNEL, elements=replace(KERNEL.elements, types={**KERNEL.elements.types, **RESULTS}))
VARIABLES = {"self": "self", "times": "times", "result0": "out"}
CHOSEN = Names(VARIABLES, {"dtype": "ScalarType?", "times": "int"})
GIVEN = "out.is_contiguous() && out.scalar_type() == ScalarType::Long"


FLOATING = replace(
    KERNEL,
    elements=replace(
        KERNEL.elements,
        parameters=(TypeParameter("T", "self"), TypeParameter("R", "result0")),
        instances=((FLOAT, FLOAT), (HALF, HALF)),
        types={each: "R" if each in RESULTS else type_ for each, type_ in KERNEL.elements.types.items()},
    ),
)


def launch(names: Names, kernel: NativeKernel = COUNTING, body: str = "") -> str:
    return write_launch(PROGRAM, [kernel], [PROGRAM.nests[0].rows], replace(names, code=KeptCode(body)), False).write()


def test_a_kernel_that_stores_one_type_never_writes_a_result_of_another() -> None:
    assert dict(find_fixed_results(PROGRAM, [COUNTING], CHOSEN)) == {"result0": LONG}
    text = launch(CHOSEN)
    assert (
        f"const auto out_contiguous = {GIVEN} ? out : at::empty(out.sizes(), out.options().dtype(ScalarType::Long));"
        in text
    )
    assert "mtl_setArgs(computeEncoder, out_contiguous, " in text
    assert "out.copy_(out_contiguous);" in text


def test_a_result_whose_type_nobody_chooses_is_written_as_it_is() -> None:
    assert not dict(find_fixed_results(PROGRAM, [COUNTING], Names(VARIABLES, {"times": "int"})))
    assert "ScalarType::Long" not in launch(Names(VARIABLES, {"times": "int"}))


def test_a_kernel_for_each_type_of_the_result_needs_no_copy() -> None:
    assert not dict(find_fixed_results(PROGRAM, [KERNEL], CHOSEN))


def test_integral_results_of_floating_kernels_are_what_the_function_returns_of_integers() -> None:
    body = """if (c10::isIntegralType(self.scalar_type(), true)) {
      return at::sum_out(out, self, dtype);
    }"""
    converted = "return at::sum_out(out, self.to(out.scalar_type()), dtype);"
    text = launch(CHOSEN, FLOATING, body)
    assert f"if (isIntegralType(out.scalar_type(), /*includeBool=*/true)) {{\n{converted}\n}}\n" in text
    assert "TORCH_CHECK(!isIntegralType" not in text


@pytest.mark.parametrize(
    "body",
    [
        "",
        "if (c10::isIntegralType(self.scalar_type(), false)) {\nreturn at::sum_out(out, self, dtype);\n}",
        "if (c10::isIntegralType(self.scalar_type(), true)) {\ndtype = kLong;\n}\nreturn at::sum_out(out, self);",
    ],
)
def test_integral_results_are_refused_where_the_function_returns_nothing_of_its_own_of_integers(body: str) -> None:
    assert "TORCH_CHECK(!isIntegralType(out.scalar_type(), /*includeBool=*/true)" in launch(CHOSEN, FLOATING, body)


def test_kernels_of_bools_serve_a_bool_result_of_any_tensor() -> None:
    """Their name is no beginning of an instance of another case's kernel, of a pair of types that it may lack."""
    of_bools, others = replace(PROGRAM, dtypes=(BOOL,)), replace(PROGRAM, dtypes=(FLOAT, LONG))
    programs = Programs("turned", (of_bools, others))
    assert list_suffixes(programs) == ("_of_bool", "")
    launches = [write_launch(each, [COUNTING], [each.nests[0].rows], CHOSEN, False) for each in programs.cases]
    assert "const auto self_cast = self.to(kBool);" in launches[0].write()
    assert "to(kBool)" not in launches[1].write()
    text = "\n".join(print_nodes(write_cases(programs, launches, CHOSEN)))
    assert "\nif (self.scalar_type() == kBool || out.scalar_type() == kBool) {\n" in text


REDUCTION = prepare(Programs("counted", (OF_FLOAT,))).cases[0]
SUMMING = write_kernel(REDUCTION, REDUCTION.nests[0], "counted", {0: "out"}, KernelStyle(True, False))


def store(kernel: NativeKernel, program: SymbolicProgram, *instances: tuple[DType, DType]) -> NativeKernel:
    """A kernel of these types of its input and its result."""
    results = {each: "R" for each in kernel.buffers if isinstance(program.roles[each], ResultBuffer)}
    parameters = (TypeParameter("T", "self"), TypeParameter("R", "result0"))
    types = {**kernel.elements.types, **results}
    return replace(kernel, elements=replace(kernel.elements, parameters=parameters, types=types, instances=instances))


def launch_reduction(*instances: tuple[DType, DType]) -> str:
    kernel = store(SUMMING, REDUCTION, *instances)
    return write_launch(REDUCTION, [kernel], [REDUCTION.nests[0].rows], CHOSEN, False).write()


def test_a_bool_result_is_made_of_the_long_one_that_a_reduction_stores_of_bools() -> None:
    text = launch_reduction((FLOAT, FLOAT), (INT, LONG), (BOOL, LONG))
    assert "const auto out_type = out.scalar_type() == kBool ? kLong : out.scalar_type();" in text
    assert "out.scalar_type() == out_type ? out : at::empty(out.sizes(), out.options().dtype(out_type));" in text
    assert 'scalarToMetalTypeString(self_cast) + "_" + scalarToMetalTypeString(out_contiguous) + ' in text
    assert "out.copy_(out_contiguous);" in text


def test_a_reduction_that_stores_bools_needs_no_other_type() -> None:
    assert "kLong :" not in launch_reduction((FLOAT, FLOAT), (BOOL, BOOL))


def test_a_bool_result_of_what_is_no_reduction_is_none_of_its_types() -> None:
    assert "out_type" not in launch(CHOSEN, store(KERNEL, PROGRAM, (FLOAT, FLOAT), (INT, LONG), (BOOL, LONG)))
