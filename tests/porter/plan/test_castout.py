"""Comparisons on copies of the embedded fork whose launcher of binary kernels is not given the type of results."""

import shutil
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import INDEXING, KERNEL_LIBRARY, KERNELS, MPS, OPERATIONS
from porter.plan.planner import plan_operator
from porter.verdict.prove import target_of
from porter.verdict.verify import verify

HOST = f"{OPERATIONS}/BinaryKernel.mm"
PARAMETER = "const std::optional<{}ScalarType> natural_output_dtype"


def remove(root: Path, path: str, *texts: str, instead: str = "") -> None:
    text = (root / path).read_text()
    for each in texts:
        assert each in text
        text = text.replace(each, instead)
    (root / path).write_text(text)


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """A fork whose binary launcher is not given the type of results, with no kernels that cast them."""
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    library = f"{MPS}/MetalShaderLibrary.mm"
    remove(tmp_path, KERNEL_LIBRARY, f"      {PARAMETER.format('c10::')} = std::nullopt,\n")
    remove(tmp_path, library, f"                                            {PARAMETER.format('')},\n")
    remove(
        tmp_path,
        library,
        "scalar_arg_type, natural, ",
        "scalar_arg_type, natural_output_dtype, ",
        instead="scalar_arg_type, ",
    )
    remove(tmp_path, library, "natural_output_dtype.value_or(common)", instead="common")
    return tmp_path


@pytest.fixture
def fork(older: Path) -> Path:
    """The same with a kernel that casts results."""
    indexing = older / INDEXING
    indexing.write_text(indexing.read_text() + Path(__file__).with_name("castout.h").read_text())
    return older


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
