"""Results that callers give to functions that nothing checks before."""

from __future__ import annotations

from dataclasses import replace

from porter.metal.codegen.canonicalize import prepare
from porter.metal.codegen.checks import find_given, write_aliases, write_type_check
from porter.metal.codegen.host_values import Names
from porter.metal.codegen.kernel import KernelStyle, write_kernel
from tests.porter.plan.recorded import fork

PROGRAM = prepare(fork.turned()).cases[0]
KERNELS = [write_kernel(PROGRAM, PROGRAM.nests[0], "turned", {0: "out"}, KernelStyle(True, False))]
NAMES = Names({"self": "self", "times": "times", "result0": "out"}, {}, given=frozenset({"out"}))


def test_a_result_that_callers_give_has_the_type_of_the_kernel() -> None:
    assert list(find_given(PROGRAM, KERNELS, NAMES)) == ["result0"]
    assert write_type_check(PROGRAM.key, "result0", NAMES).text.startswith(
        "TORCH_CHECK(out.scalar_type() == self.scalar_type(), "
    )


def test_it_is_not_written_where_an_operand_is_read() -> None:
    assert write_aliases(PROGRAM, KERNELS, "result0", NAMES, "{}_".format) == " && !out.is_alias_of(self_)"


def test_a_result_of_the_function_s_own_needs_no_check() -> None:
    assert list(find_given(PROGRAM, KERNELS, replace(NAMES, given=frozenset()))) == []
