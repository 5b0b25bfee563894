"""Functions that MetalShaderLibrary lacks, added as a change of their own before the port that calls them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import INDEXING, KERNEL_LIBRARY, MPS, OPERATIONS
from porter.metal.launchers.library import add_to_library, find_lacking
from porter.plan.helpers import HelperPlan, plan_helpers
from porter.plan.plan import Draft
from porter.plan.planner import plan_operator
from porter.verdict.verify import target_of, verify
from tests.porter.plan.older import remove_launchers
from tests.porter.plan.test_several_scalars import add_operator

LIBRARY = f"{MPS}/MetalShaderLibrary.mm"


@pytest.fixture
def fork(tmp_path: Path) -> Checkout:
    """A fork without launchers for structs, and an operator that needs one."""
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    remove_launchers(tmp_path)
    return add_operator(tmp_path)


def plan(fork: Checkout, op: str) -> HelperPlan | None:
    return plan_helpers(fork, op, partial(plan_operator, op=op))


def refuse(fork: Checkout) -> PorterError:
    with pytest.raises(PorterError) as refused:
        plan_operator(fork, "softplus")
    return refused.value


def test_the_function_that_is_missing_is_declared_and_defined_in_the_library(fork: Checkout) -> None:
    found = plan(fork, "softplus")
    assert found and found.names == ("exec_unary_kernel_with_params",)
    assert found.changes.files == (KERNEL_LIBRARY, LIBRARY)
    header = found.changes.diff().partition("@@\n")[2].partition("\ndiff")[0]
    assert_expected_inline(
        header,
        """\
       const std::optional<c10::ScalarType> scalar_arg_type = std::nullopt,
       const std::optional<c10::ScalarType> natural_output_dtype = std::nullopt,
       const std::optional<uint32_t> ilp_threshold = std::nullopt);
+
+  // Runs a kernel of REGISTER_UNARY_ALPHA_OP that is registered with a struct
+  // of this name.
+  template <typename T>
+  void exec_unary_kernel_with_params(
+      TensorIteratorBase& iter,
+      const std::string& name,
+      T params,
+      const std::string& params_type_name) {
+    exec_kernel_with_params(iter, name, &params, sizeof(T), params_type_name);
+  }
+
+  // Launches a kernel whose alpha is these bytes, of the type with this name.
+  void exec_kernel_with_params(
+      TensorIteratorBase& iter,
+      const std::string& name,
+      const void* params,
+      size_t size,
+      const std::string& params_type_name);
 
  protected:
   virtual MTLLibrary_t getLibrary();""",
    )


def test_the_port_follows_on_top_of_it(fork: Checkout) -> None:
    assert refuse(fork).code == "PTR091"
    found = plan(fork, "softplus")
    assert found
    draft = Draft(fork).follow(found.changes)
    port = plan_operator(draft.fork, "softplus")
    assert port.complete and not {KERNEL_LIBRARY, LIBRARY} & set(port.changes.files)
    assert plan(draft.fork, "softplus") is None


def test_an_operator_that_calls_none_gets_none(fork: Checkout) -> None:
    assert plan(fork, "atan2") is None


def test_a_second_function_shares_what_the_first_one_launches_with(fork: Checkout) -> None:
    found = plan(fork, "softplus")
    assert found
    after = Draft(fork).follow(found.changes).fork
    (other,) = find_lacking(after)
    assert other.name == "exec_binary_kernel_with_params"
    assert {edit.file for edit in add_to_library(after, [other])} == {KERNEL_LIBRARY}


def test_kernels_that_the_fork_lacks_cannot_be_launched(fork: Checkout) -> None:
    assert_expected_inline(
        "\n".join(str(refuse(fork)).split(", ")),
        """\
aten/src/ATen/native/mps/MetalShaderLibrary.h: PTR091 this fork declares no exec_unary_kernel_with_params
`template <typename T> void exec_unary_kernel_with_params(TensorIteratorBase& iter
const std::string& name
T params
const std::string& params_type_name);`
  Run again with --with-helpers
which adds it.""",
    )
    indexing = fork.root / INDEXING
    indexing.write_text(indexing.read_text().replace("void unary_alpha_strided(", "void unary_alpha_rows("))
    older = Checkout(fork.root, "test")
    assert plan(older, "softplus") is None
    assert refuse(older).hint == "Add it to the fork first."


def test_the_function_is_right_on_the_device(fork: Checkout) -> None:
    found = plan(fork, "softplus")
    assert found
    draft = Draft(fork).follow(found.changes)
    port = plan_operator(draft.fork, "softplus")
    text = draft.follow(port.changes).changes.apply()
    tests = "(test_output_match or test_layouts or test_out) and (float32 or float16)"
    verdict = verify(fork.root, text, target_of(port, "softplus"), tests)
    assert verdict.ok and verdict.kernel_calls > 20, verdict.failures
    swapped = {**text, LIBRARY: text[LIBRARY].replace("mtl_setBytes(encoder, iter.strides(1), next++);", "++next;")}
    assert swapped != text and not verify(fork.root, swapped, target_of(port, "softplus"), tests).ok


@pytest.fixture
def without_alpha(tmp_path: Path) -> Checkout:
    """A fork whose `exec_binary_kernel` takes no alpha, and that has no launchers for structs."""
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    remove_launchers(tmp_path)
    header = tmp_path / KERNEL_LIBRARY
    before, binary, after = header.read_text().partition("void exec_binary_kernel(")
    assert " alpha = " in after
    header.write_text(before + binary + after.replace(" alpha = ", " other_scalar = "))
    return Checkout(tmp_path, "test")


def test_one_scalar_comes_as_a_struct_would(without_alpha: Checkout) -> None:
    found = plan(without_alpha, "lerp")
    assert found and found.names == ("exec_binary_kernel_with_params",)
    draft = Draft(without_alpha).follow(found.changes)
    port = plan_operator(draft.fork, "lerp")
    host = port.changes.apply()[f"{OPERATIONS}/BinaryKernel.mm"]
    start = host.index("static void lerp")
    assert_expected_inline(
        host[start : host.index("\n}\n", start)],
        """\
static void lerp_scalar_weight_mps_kernel(TensorIteratorBase& iter, const Scalar& weight) {
  const auto scalar_type = at::toOpMathType(iter.common_dtype());
  lib.exec_binary_kernel_with_params(iter,
                                     "lerp_scalar_weight",
                                     mps::getMPSScalar(weight, scalar_type).value,
                                     mps::scalarToMetalTypeString(scalar_type));""",
    )
    text = draft.follow(port.changes).changes.apply()
    tests = "(test_output_match or test_layouts or test_out) and (float32 or float16)"
    verdict = verify(without_alpha.root, text, target_of(port, "lerp"), tests)
    assert verdict.ok and verdict.kernel_calls > 20, verdict.failures


def test_the_command_shows_it_first_and_by_itself(fork: Checkout) -> None:
    command = [sys.executable, "-m", "porter", "migrate", "softplus", "--no-verify", "--with-helpers"]
    command += ["--json", "--checkout", str(fork.root)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    helpers, port = map(json.loads, done.stdout.splitlines())
    assert (helpers["helpers"], helpers["for"]) == (["exec_unary_kernel_with_params"], "softplus")
    assert KERNEL_LIBRARY in helpers["diff"] and KERNEL_LIBRARY not in port["diff"]
    for each in (helpers, port):
        subprocess.run(["git", "apply", "-"], input=each["diff"], cwd=fork.root, check=True, text=True)
    assert "exec_unary_kernel_with_params" in (fork.root / KERNEL_LIBRARY).read_text()
