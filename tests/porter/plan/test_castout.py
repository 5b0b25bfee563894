"""Results of another type than the operands': copies of the embedded fork whose launcher of binary kernels is not given
their type, or writes no other."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import KERNELS, OPERATIONS
from porter.plan.planner import plan_operator
from porter.verdict.verify import target_of, verify
from tests.porter.plan.older import (
    name_kernels_by_outputs,
    name_scalar_kernels_by_outputs,
    remove_castout,
    remove_result_type,
)
from tests.porter.plan.test_several_scalars import add_operator as add_operator_of_scalars
from tests.porter.plan.test_ternary import add_operator as add_ternary_operator
from tests.porter.plan.test_ternary import remove_files

HOST = f"{OPERATIONS}/BinaryKernel.mm"


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    """A fork whose binary launcher is not given the type of results, with a kernel that casts them."""
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    remove_result_type(tmp_path)
    return tmp_path


@pytest.fixture
def older(fork: Path) -> Path:
    """The same without that kernel."""
    remove_castout(fork)
    return fork


def test_a_fork_without_kernels_that_cast_results_is_refused_with_the_parameter_to_add(older: Path) -> None:
    with pytest.raises(PorterError) as refused:
        plan_operator(Checkout(older, "test"), "eq")
    assert_expected_inline(
        str(refused.value),
        """\
aten/src/ATen/native/mps/MetalShaderLibrary.h: PTR092 this fork's exec_binary_kernel has no parameter natural_output_dtype, `const std::optional<c10::ScalarType> natural_output_dtype = std::nullopt`
  Add it to the fork first, or port this operator by hand.""",
    )


def test_comparisons_are_registered_and_launched_with_a_cast_of_the_result(fork: Path) -> None:
    plan = plan_operator(Checkout(fork, "test"), "eq")
    assert plan.complete
    after = plan.changes.apply()
    metal, host = after[f"{KERNELS}/BinaryKernel.metal"], after[HOST]
    lines = [line for line in metal.splitlines() if line.startswith("REGISTER") and "(eq, " in line]
    assert_expected_inline(
        "\n".join(lines[:4]),
        """\
REGISTER_BINARY_OP(eq, float, bool);
REGISTER_BINARY_CASTOUT_OP(eq, float, bool);
REGISTER_BINARY_OP(eq, half, bool);
REGISTER_BINARY_CASTOUT_OP(eq, half, bool);""",
    )
    assert len(lines) == 2 * sum(line.startswith("REGISTER_BINARY_OP") for line in lines)
    start = host.index("static void eq_")
    assert_expected_inline(
        host[start : host.index("}\n", start)],
        """\
static void eq_mps_kernel(TensorIteratorBase& iter) {
  exec_binary_castout(iter, "eq", kBool);
""",
    )
    assert host.count("static void exec_binary_castout(") == 1


def test_the_launcher_is_right_on_the_device(fork: Path) -> None:
    plan = plan_operator(Checkout(fork, "test"), "eq")
    text = plan.changes.apply()
    tests = "(test_output_match or test_layouts or test_out) and (float32 or int64)"
    verdict = verify(fork, text, target_of(plan, "eq"), tests)
    assert verdict.ok and verdict.kernel_calls > 20, verdict.failures
    swapped = {**text, HOST: text[HOST].replace("[(at + 2) % 3 + 1]", "[at + 1]")}
    assert swapped != text and not verify(fork, swapped, target_of(plan, "eq"), tests).ok


@pytest.fixture
def strict(tmp_path: Path) -> Path:
    """A fork whose binary launcher asks for kernels that write the type of the output."""
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    name_kernels_by_outputs(tmp_path)
    return tmp_path


def test_results_are_converted_where_the_launcher_asks_for_kernels_of_the_output(strict: Path) -> None:
    plan = plan_operator(Checkout(strict, "test"), "atan2")
    assert plan.complete
    host = plan.changes.apply()[HOST]
    start = host.index("static void atan2_")
    assert_expected_inline(
        host[start : host.index("\n}\n", start)],
        """\
static void atan2_mps_kernel(TensorIteratorBase& iter) {
  launch_converted(iter, [&](TensorIteratorBase& same) { lib.exec_binary_kernel(same, "atan2"); });""",
    )
    assert host.count("static void launch_converted(") == 1
    assert "launch_converted" not in plan_operator(Checkout(EMBEDDED_FORK, "test"), "atan2").changes.apply()[HOST]


def test_comparisons_are_registered_with_a_cast_where_the_launcher_asks_for_it(strict: Path) -> None:
    after = plan_operator(Checkout(strict, "test"), "eq").changes.apply()
    assert "REGISTER_BINARY_CASTOUT_OP(eq, half, bool);" in after[f"{KERNELS}/BinaryKernel.metal"]
    assert "launch_converted" not in after[HOST]


def test_converted_results_are_right_on_the_device(strict: Path) -> None:
    plan = plan_operator(Checkout(strict, "test"), "atan2")
    text = plan.changes.apply()
    tests = "(test_output_match or test_out) and (float16 or int64)"
    verdict = verify(strict, text, target_of(plan, "atan2"), tests)
    assert verdict.ok and verdict.kernel_calls > 20, verdict.failures
    dropped = {**text, HOST: text[HOST].replace("output.copy_(result);", "")}
    assert dropped != text and not verify(strict, dropped, target_of(plan, "atan2"), tests).ok


def test_results_of_a_scalar_are_converted(tmp_path: Path) -> None:
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    name_scalar_kernels_by_outputs(tmp_path)
    plan, host = plan_operator(Checkout(tmp_path, "test"), "logit"), f"{OPERATIONS}/UnaryKernel.mm"
    text = plan.changes.apply()
    assert text[host].count("launch_converted(iter, ") == 1
    verdict = verify(tmp_path, text, target_of(plan, "logit"), "test_out and float16")
    assert verdict.ok and verdict.kernel_calls and not verdict.fork_findings, verdict
    dropped = {**text, host: text[host].replace("output.copy_(result);", "")}
    assert dropped != text and not verify(tmp_path, dropped, target_of(plan, "logit"), "test_out and float16").ok


@pytest.mark.parametrize(("op", "add"), [("lerp", add_ternary_operator), ("softplus", add_operator_of_scalars)])
def test_results_of_three_elements_and_of_a_struct_are_converted(
    op: str, add: Callable[[Path], object], tmp_path: Path
) -> None:
    """No sample asks these for another type: with the check for it taken out, all results are converted."""
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    add(tmp_path)
    if op == "lerp":
        remove_files(tmp_path)
    name_scalar_kernels_by_outputs(tmp_path)
    plan = plan_operator(Checkout(tmp_path, "test"), op)
    text = plan.changes.apply()
    host = f"{OPERATIONS}/{'TernaryKernel' if op == 'lerp' else 'UnaryKernel'}.mm"
    is_same = "if (output.scalar_type() == common) {\n    launch(iter);\n    return;\n  }"
    always = {**text, host: text[host].replace(is_same, "")}
    tests = "test_output_match and (float16 or float32)"
    verdict = verify(tmp_path, always, target_of(plan, op), tests)
    assert always != text and verdict.ok and verdict.kernel_calls, verdict
    dropped = {**always, host: always[host].replace("output.copy_(result);", "")}
    assert dropped != always and not verify(tmp_path, dropped, target_of(plan, op), tests).ok


def test_a_launch_with_a_struct_is_converted_whole(tmp_path: Path) -> None:
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    fork = add_operator_of_scalars(tmp_path)
    name_scalar_kernels_by_outputs(tmp_path)
    host = plan_operator(fork, "softplus").changes.apply()[f"{OPERATIONS}/UnaryKernel.mm"]
    start = host.index("static void softplus_")
    assert_expected_inline(
        host[start : host.index("\n}\n", start)],
        """\
static void softplus_kernel_mps(TensorIteratorBase& iter, const Scalar& beta, const Scalar& threshold) {
  launch_converted(iter, [&](TensorIteratorBase& same) {
    AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, same.common_dtype(), "softplus_mps", [&]() {
      using opmath_t = at::opmath_type<scalar_t>;
      const SoftplusParams<opmath_t> params{beta.to<opmath_t>(), threshold.to<opmath_t>()};
      lib.exec_unary_kernel_with_params(
          same,
          "softplus",
          params,
          fmt::format("SoftplusParams_{}", mps::scalarToMetalTypeString(at::toOpMathType(same.common_dtype()))));
    });
  });""",
    )
