"""The element types that kernels are instantiated for, and their text where complex numbers are among these."""

from dataclasses import replace

import pytest

from porter.core.dtypes import BOOL, FLOAT, FLOAT2, INT, LONG, SHORT, UCHAR
from porter.loops.expressions import Op, ReductionKind, call, intern, number
from porter.loops.host_values import Arguments, TensorValue
from porter.loops.program import SymbolicProgram
from porter.metal.codegen.elements import Complex, read_elements
from porter.metal.codegen.kernel import KernelStyle, write_kernel
from tests.porter.plan.recorded import fork


def reduction(kind: ReductionKind) -> SymbolicProgram:
    return fork.largest(kind).cases[1]


@pytest.mark.parametrize(
    ("kind", "complex_numbers", "has_complex"),
    [
        (ReductionKind.SUM, Complex.TAKES, True),
        (ReductionKind.PRODUCT, Complex.TAKES, True),
        (ReductionKind.SUM, Complex.UNKNOWN, False),
        (ReductionKind.SUM, Complex.REFUSES, False),
        (ReductionKind.MAX_NAN, Complex.TAKES, False),
    ],
)
def test_what_is_computed_by_parts_takes_complex_numbers(
    kind: ReductionKind, complex_numbers: Complex, has_complex: bool
) -> None:
    found = read_elements(reduction(kind), (fork.OUTPUT, fork.INPUT), complex_numbers)
    assert ((FLOAT2,) in found.instances) is found.has_complex is has_complex


def test_a_number_that_is_added_is_no_complex_one() -> None:
    case = reduction(ReductionKind.SUM)
    [symbolic] = case.nests
    [store] = symbolic.nest.stores
    for operation, has_complex in (("division", True), ("addition", False)):
        value = call(operation, (store.value, number(3.0, store.dtype)), store.dtype)
        nest = replace(symbolic, nest=replace(symbolic.nest, stores=(replace(store, value=value),)))
        found = read_elements(replace(case, nests=(nest,)), (fork.OUTPUT, fork.INPUT), Complex.TAKES)
        assert found.has_complex is has_complex


def test_complex_products_are_multiplied_by_the_fork() -> None:
    case = reduction(ReductionKind.PRODUCT)
    style = KernelStyle(True, False, Complex.TAKES)
    made = write_kernel(case, case.nests[0], "product", {0: "out"}, style).source
    assert "c10::metal::opmath_t<T> product = c10::metal::cast_to<c10::metal::opmath_t<T>>(1);" in made
    assert "product = c10::metal::mul(product, c10::metal::cast_to<c10::metal::opmath_t<T>>(input[" in made


def test_products_of_two_complex_values_are_those_of_the_fork() -> None:
    case = reduction(ReductionKind.SUM)
    [symbolic] = case.nests
    [store] = symbolic.nest.stores
    [value] = store.value.args
    squares = intern(Op.REDUCE, (call("multiplication", (value, value), FLOAT),), FLOAT, store.value.reduction)
    nest = replace(symbolic, nest=replace(symbolic.nest, stores=(replace(store, value=squares),)))
    made = write_kernel(
        replace(case, nests=(nest,)), nest, "squares", {0: "out"}, KernelStyle(True, False, Complex.TAKES)
    )
    assert "sum += c10::metal::mul(value, value);" in made.source and made.elements.has_complex
    real = write_kernel(replace(case, nests=(nest,)), nest, "squares", {0: "out"}, KernelStyle(True, False))
    assert "sum += value * value;" in real.source


def test_integers_that_are_summed_as_long_have_bool_and_their_own_type_beside() -> None:
    pairs = ((INT, LONG), (FLOAT, FLOAT))
    calls = tuple(
        Arguments({"self": TensorValue((2, 3, 5), given), "result0": TensorValue((2, 5), made)}, {})
        for given, made in pairs
    )
    case = replace(reduction(ReductionKind.SUM), dtypes=(INT, FLOAT), calls=calls, example=calls[0])
    found = set(read_elements(case, (fork.OUTPUT, fork.INPUT)).instances)
    assert {(BOOL, LONG), (INT, INT), (SHORT, SHORT), (UCHAR, LONG), (FLOAT, FLOAT)} <= found
    assert (BOOL, BOOL) not in found
