"""What newer headers of a fork have, and porter has no argument for, is named with a code and not written around."""

from __future__ import annotations

import re

import pytest

from porter.aten.operator import Operator
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import INDEXING, KERNEL_LIBRARY, KERNELS
from porter.metal.host import Dialect
from porter.plan.planner import plan_operator
from porter.plan.routes import Route, read_routes
from porter.verdict.build import sources

FORK = Checkout(EMBEDDED_FORK, "test")
METAL = f"{KERNELS}/BinaryKernel.metal"


def declare(parameter: str, before: bool) -> Checkout:
    """The fork whose exec_binary_kernel has one more parameter, before all that it has already or after them."""
    text = FORK.read(KERNEL_LIBRARY)
    start = text.index("void exec_binary_kernel(")
    at = (
        text.index("const std::string& name", start) + len("const std::string& name")
        if before
        else text.index(");", start)
    )
    return FORK.layer({KERNEL_LIBRARY: f"{text[:at]}, {parameter}{text[at:]}"})


def add_macro_parameter() -> Checkout:
    """The fork whose REGISTER_BINARY_OP has one more parameter, which all of its lines give."""
    line = re.compile(r"(REGISTER_(?:OPMATH_)?BINARY_OP\(\w+, *\w+, *\w+)\)")
    header, kernels = (line.sub(r"\1, fast)", FORK.read(path)) for path in (INDEXING, METAL))
    assert header != FORK.read(INDEXING)
    return FORK.layer({INDEXING: header, METAL: kernels})


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("parameter", ["Precision precision", "std::array<int, 3> precision", "const Mode& precision"])
def test_a_parameter_of_a_launcher_that_has_no_default_is_named(parameter: str, before: bool) -> None:
    with pytest.raises(PorterError) as raised:
        plan_operator(declare(parameter, before), "atan2")
    assert (raised.value.code, str(raised.value.place)) == ("PTR095", KERNEL_LIBRARY)
    assert raised.value.what == "this fork's exec_binary_kernel has a parameter precision that porter does not know"


def test_a_row_whose_launcher_is_not_known_is_ported_by_no_other_route() -> None:
    fork = declare("Precision precision", before=False)
    [row] = read_routes(fork, Operator.read(fork, "atan2"))
    assert (row.route, row.error and row.error.code) == (Route.NONE, "PTR095")


def test_a_parameter_with_a_default_changes_no_call() -> None:
    plan = plan_operator(declare("const std::optional<int> precision = std::nullopt", before=False), "atan2")
    assert '+  lib.exec_binary_kernel(iter, "atan2");' in plan.changes.diff()


def test_an_operator_of_another_launcher_is_planned() -> None:
    assert plan_operator(declare("Precision precision", before=False), "erf").complete


def test_the_launchers_of_the_fork_have_no_parameter_that_is_not_known() -> None:
    assert Dialect.read(FORK).execs
    assert not any(each.unknown for each in Dialect.read(FORK).execs)


def test_a_parameter_of_a_macro_that_registers_kernels_is_named() -> None:
    with pytest.raises(PorterError) as raised:
        plan_operator(add_macro_parameter(), "atan2")
    assert (raised.value.code, str(raised.value.place)) == ("PTR095", INDEXING)
    assert raised.value.what == "this fork's REGISTER_OPMATH_BINARY_OP has a parameter fast that porter does not know"


def rename_macros(old: str, new: str) -> Checkout:
    """The fork whose macros that register kernels have other names, in headers and in kernel files."""
    paths = (INDEXING, *(f"{KERNELS}/{name}Kernel.metal" for name in ("Unary", "Binary")))
    return FORK.layer({path: FORK.read(path).replace(old, new) for path in paths})


@pytest.mark.parametrize(
    ("old", "new"),
    [("REGISTER_BINARY_OP", "REGISTER_BINARY_KERNEL"), ("_BINARY_OP", "_BINARY_KERNEL"), ("REGISTER_", "INSTANTIATE_")],
)
def test_macros_of_other_names_are_known_by_what_they_instantiate(old: str, new: str) -> None:
    plan = plan_operator(rename_macros(old, new), "atan2")
    assert plan.complete
    metal = plan.changes.apply()[METAL]
    assert metal == plan_operator(FORK, "atan2").changes.apply()[METAL].replace(old, new)
    assert sources.functors_in(metal) == {"atan2", "copysign", "sub_alpha"}


def test_a_macro_that_registers_kernels_in_another_form_is_named() -> None:
    text = FORK.read(INDEXING).replace("#define REGISTER_BINARY_OP(", "#define OTHER_BINARY_OP(")
    names = re.compile(r'(?<=host_name\()#NAME "_(?:dense|strided)_(?:cast_|castout_)?" #DTYPEO "_" #DTYPEI(?=\))')
    fork = FORK.layer({INDEXING: names.sub("KERNEL_NAME(NAME, DTYPEO, DTYPEI)", text)})
    with pytest.raises(PorterError) as raised:
        plan_operator(fork, "atan2")
    assert (raised.value.code, str(raised.value.place)) == ("PTR095", INDEXING)
    assert raised.value.what == "this fork's REGISTER_BINARY_OP_ registers kernels in a form that porter does not know"
