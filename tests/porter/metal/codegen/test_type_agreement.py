"""Checks that tensors have the types that kernels are chosen by."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from expecttest import assert_expected_inline

from porter.core.dtypes import BFLOAT, CHAR, FLOAT, HALF, INT, SHORT, UCHAR, DType
from porter.loops.expressions import Buffer
from porter.loops.program import ArgumentBuffer
from porter.metal.codegen.checks import write_agreement, write_conversion_of, write_type_checks
from porter.metal.codegen.elements import TypeParameter
from porter.metal.codegen.host_code import print_nodes
from porter.metal.codegen.host_values import Names
from porter.metal.codegen.kept_code import KeptCode
from porter.metal.codegen.reduced import StridedArgument

TYPES = {"self": "T", "weight": "T", "bias": "T", "target": "long"}


def check(
    *tensors: str,
    body: str = "",
    converted: str = "",
    left_out: str = "",
    others: tuple[DType, ...] = (),
    strided: str = "",
    cast: tuple[DType, ...] = (),
    common: tuple[str, ...] = (),
) -> str:
    buffers = {name: Buffer(i) for i, name in enumerate(tensors)}
    elements = SimpleNamespace(
        parameters=(TypeParameter("T", "self"),), types={buffers[name]: TYPES[name] for name in tensors}
    )
    roles = {buffer: ArgumentBuffer(name) for name, buffer in buffers.items()}
    roles |= {buffer: StridedArgument(name, "dim") for name, buffer in buffers.items() if name == strided}
    program: Any = SimpleNamespace(roles=roles, key="self", conversions={})
    program.conversions |= ({"target": others} if others else {}) | ({"weight": cast} if cast else {})
    kernel: Any = SimpleNamespace(elements=elements, buffers=tuple(buffers.values()))
    names = Names({name: name for name in tensors}, dict.fromkeys(tensors, "Tensor"), code=KeptCode(body))
    names = replace(names, common=frozenset(common))

    def find_flag(tensor: str) -> str:
        return f"has_{tensor}" if tensor == left_out else ""

    nodes = write_type_checks(program, [kernel], names, "{}_".format, find_flag, converted)
    return "\n".join(print_nodes(nodes))


def test_one_tensor() -> None:
    assert_expected_inline(
        check("self", "weight"),
        """TORCH_CHECK(weight_.scalar_type() == self.scalar_type(), "Expected weight to have dtype ", self.scalar_type(), ", but got ", weight_.scalar_type());""",
    )


def test_several_and_one_of_a_type_of_its_own() -> None:
    assert_expected_inline(
        check("self", "weight", "bias", "target"),
        """\
for (const auto& each : {weight_, bias_}) {
TORCH_CHECK(each.scalar_type() == self.scalar_type(), "Expected all tensors to have dtype ", self.scalar_type(), ", but got ", each.scalar_type());
}
TORCH_CHECK(target_.scalar_type() == ScalarType::Long, "Expected target to have dtype ", ScalarType::Long, ", but got ", target_.scalar_type());""",
    )


@pytest.mark.parametrize(
    "body",
    [
        "TORCH_CHECK(self.scalar_type() == weight.scalar_type());",
        "TORCH_CHECK(weight.dtype() == self.dtype());",
        'checkAllSameType("op", {self, weight});',
    ],
)
def test_what_the_function_compares_is_not_compared_again(body: str) -> None:
    assert not check("self", "weight", body=body)


def test_what_host_code_gives_one_type_is_not_compared() -> None:
    assert not check("self", "weight", common=("self", "weight"))
    assert "bias_.scalar_type() == self.scalar_type()" in check("self", "weight", "bias", common=("self", "weight"))
    assert "{weight_, bias_}" in check("self", "weight", "bias", common=("weight", "bias"))


def test_other_comparisons_count_for_nothing() -> None:
    assert check("self", "weight", body="TORCH_CHECK(bias.scalar_type() == self.scalar_type());")
    assert not check("self", "target", body="TORCH_CHECK(target.scalar_type() == kLong);")
    assert check("self", "target", body="TORCH_CHECK(target.scalar_type() == kLongLong);")


def test_a_tensor_that_is_converted_or_alone() -> None:
    assert not check("self", "weight", converted="weight")
    assert not check("self")


def test_a_tensor_of_other_integers_is_one_of_those_that_the_old_code_took() -> None:
    assert_expected_inline(
        check("self", "target", others=(UCHAR,)),
        """TORCH_CHECK(target.scalar_type() == ScalarType::Long || target.scalar_type() == ScalarType::Byte, "Expected target to have dtype Long or Byte, but got ", target.scalar_type());""",
    )
    assert_expected_inline(
        check("self", "target", others=(INT, SHORT, UCHAR, CHAR), left_out="target"),
        """TORCH_CHECK(!has_target || isIntegralType(target.scalar_type(), /*includeBool=*/false), "Expected target to have an integral dtype, but got ", target.scalar_type());""",
    )
    assert check("self", "target", others=(UCHAR,), strided="target") == check("self", "target")
    assert not check("self", "target", others=(UCHAR,), body="TORCH_CHECK(target.scalar_type() == kLong);")


def test_a_tensor_that_graphs_cast_has_a_floating_type() -> None:
    assert_expected_inline(
        check("self", "weight", cast=(FLOAT, HALF, BFLOAT), left_out="weight"),
        """TORCH_CHECK(!has_weight || isFloatingType(weight.scalar_type()), "Expected weight to have a floating point dtype, but got ", weight.scalar_type());""",
    )
    assert_expected_inline(
        check("self", "weight", cast=(FLOAT, HALF)),
        """TORCH_CHECK(weight.scalar_type() == ScalarType::Float || weight.scalar_type() == ScalarType::Half, "Expected weight to have dtype Float or Half, but got ", weight.scalar_type());""",
    )
    assert not check("self", "weight", cast=(FLOAT, HALF), body="TORCH_CHECK(self.dtype() == weight.dtype());")


def test_conversions_are_to_the_type_that_kernels_read() -> None:
    program: Any = SimpleNamespace(key="self", conversions={"target": (INT,), "weight": (FLOAT, HALF)})
    names = Names({each: each for each in TYPES}, dict.fromkeys(TYPES, "Tensor"))
    assert write_conversion_of(program, "target", names) == "to(kLong)"
    assert write_conversion_of(program, "weight", names) == "to(self.scalar_type())"


def test_what_stands_for_a_tensor_that_is_left_out_has_the_first_ones_type() -> None:
    assert check("self", "weight", left_out="weight") == check("self", "weight")
    assert check("self", "target", left_out="target").startswith("TORCH_CHECK(!has_target || target_.scalar_type() ==")


def test_an_operand_whose_elements_move_has_the_type_of_the_kernel() -> None:
    [check] = write_agreement("grad_output", "grad_input", KeptCode("grad_input.resize_as_(input);"))
    assert check.startswith("TORCH_CHECK(grad_output.scalar_type() == grad_input.scalar_type(), ")


def test_it_needs_no_check_that_the_function_has() -> None:
    assert not list(
        write_agreement("src", "output", KeptCode("TORCH_CHECK(output.scalar_type() == src.scalar_type());"))
    )
    assert not list(write_agreement("src", "output", KeptCode("checkAllSameType(c, {output, src});")))
    assert not list(write_agreement("grad_", "made", KeptCode("Tensor made = at::empty({n, d}, grad_.scalar_type());")))
