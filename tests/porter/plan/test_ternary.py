"""A stub of three elements, on a copy of the embedded fork that was given one."""

import shutil
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import INDEXING, KERNELS, NATIVE, NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.planner import plan_operator
from porter.verdict.verify import target_of, verify
from tests.porter.plan.older import remove_launchers, remove_ternary_kernels

META = """TORCH_META_FUNC(lerp_Tensor)(const Tensor& self, const Tensor& end, const Tensor& weight) {
  build_ternary_op(maybe_get_output(), self, end, weight);
}

} // namespace at::meta"""
SHARED = """TORCH_IMPL_FUNC(lerp_Tensor)(
    const Tensor& self, const Tensor& end, const Tensor& weight, const Tensor& out) {
  lerp_kernel_tensor_weight(device_type(), *this);
}

DEFINE_DISPATCH"""
CPU_KERNEL = """void lerp_tensor_kernel(at::TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, iter.common_dtype(), "lerp_kernel_tensor", [&] {
    cpu_kernel(iter, [=](scalar_t self_val, scalar_t end_val, scalar_t weight_val) -> scalar_t {
      return self_val + weight_val * (end_val - self_val);
    });
  });
}

} // namespace

REGISTER_DISPATCH(lerp_kernel_tensor_weight, &lerp_tensor_kernel)
"""
OLD = """TORCH_IMPL_FUNC(lerp_Tensor_mps)(const Tensor& self, const Tensor& end, const Tensor& weight, const Tensor& out) {
  mps::runMPSGraph(self, end, weight, out);
}

TORCH_IMPL_FUNC(lerp_Scalar_mps)"""
HOST = """#include <ATen/TensorIterator.h>
#include <ATen/native/mps/MetalShaderLibrary.h>

namespace at::native {

static void fma_mps_kernel(TensorIteratorBase& iter) {
  lib.exec_ternary_kernel(iter, "fma");
}

REGISTER_DISPATCH(fma_stub, &fma_mps_kernel)

} // namespace at::native
"""
METAL = """#include <c10/metal/indexing.h>

struct fma_functor {
  template <typename T>
  inline T operator()(const T a, const T b, const T c) {
    return static_cast<T>(a * b + c);
  }
};

REGISTER_TERNARY_OP(fma, float, float);
"""


def replaced(root: Path, path: str, old: str, new: str) -> None:
    text = (root / path).read_text()
    assert old in text
    (root / path).write_text(text.replace(old, new, 1))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    add_operator(tmp_path)
    return tmp_path


def add_operator(root: Path) -> None:
    """Gives a copy of the embedded fork a stub of three elements, and files for such kernels."""
    row = "    CPU, CUDA: lerp_Tensor\n"
    declared = "DECLARE_DISPATCH(lerp_fn_scalar, "
    replaced(root, NATIVE_FUNCTIONS, row, f"{row}    MPS: lerp_Tensor_mps\n")
    replaced(root, f"{NATIVE}/Lerp.cpp", "} // namespace at::meta", META)
    replaced(root, f"{NATIVE}/Lerp.cpp", "DEFINE_DISPATCH", SHARED)
    tensors = "DECLARE_DISPATCH(void (*)(at::TensorIteratorBase& iter), lerp_kernel_tensor_weight)\n"
    replaced(root, f"{NATIVE}/Lerp.h", declared, tensors + declared)
    replaced(root, f"{NATIVE}/cpu/LerpKernel.cpp", "} // namespace\n", CPU_KERNEL)
    replaced(root, f"{OPERATIONS}/BinaryOps.mm", "TORCH_IMPL_FUNC(lerp_Scalar_mps)", OLD)
    (root / KERNELS / "Pointwise.metal").write_text(METAL)
    (root / OPERATIONS / "Pointwise.mm").write_text(HOST)


def remove_files(root: Path) -> None:
    """Leaves no file for kernels of three elements."""
    for path in (f"{KERNELS}/Pointwise.metal", f"{OPERATIONS}/Pointwise.mm"):
        (root / path).unlink()


def test_a_ternary_operator_is_ported_to_the_ternary_files(root: Path) -> None:
    plan = plan_operator(Checkout(root, "test"), "lerp")
    assert plan.complete
    assert [entry.name for entry in plan.entries] == ["lerp.Scalar_out", "lerp.Tensor_out"]
    after = plan.changes.apply()
    metal, host = after[f"{KERNELS}/Pointwise.metal"], after[f"{OPERATIONS}/Pointwise.mm"]
    assert [
        f"REGISTER_OPMATH_TERNARY_OP(lerp_tensor_weight, {t}, {t});" in metal for t in ("float", "half", "bfloat")
    ] == [True] * 3
    assert "operator()(const T a, const T b, const T c)" in " ".join(metal[metal.index("lerp_tensor") :].split())
    assert 'lib.exec_ternary_kernel(iter, "lerp_tensor_weight");' in host
    assert "REGISTER_DISPATCH(lerp_kernel_tensor_weight, &lerp_tensor_weight_mps_kernel)" in host


def test_a_fork_without_ternary_kernels_keeps_the_row(root: Path) -> None:
    remove_launchers(root)
    remove_ternary_kernels(root)
    plan = plan_operator(Checkout(root, "test"), "lerp")
    assert [entry.name for entry in plan.entries] == ["lerp.Scalar_out"]
    assert [left.code for left in plan.unported] == ["PTR091"]


@pytest.fixture
def newer(root: Path) -> Path:
    """The fork with every ternary kernel in its header, but no file for them and no function that launches them."""
    remove_files(root)
    remove_launchers(root)
    return root


def test_a_pair_of_files_is_made_like_the_binary_one(newer: Path) -> None:
    plan = plan_operator(Checkout(newer, "test"), "lerp")
    assert plan.complete
    after = plan.changes.apply()
    assert_expected_inline(
        after[f"{KERNELS}/TernaryKernel.metal"],
        """\
#include <c10/metal/indexing.h>
#include <metal_stdlib>
using namespace metal;
using namespace c10::metal;

struct lerp_tensor_weight_functor {
  template <typename T>
  inline T operator()(const T a, const T b, const T c) {
    const float a_ = static_cast<float>(a);
    const float b_ = static_cast<float>(b);
    const float c_ = static_cast<float>(c);
    return static_cast<T>(a_ + c_ * (b_ - a_));
  }
};

REGISTER_OPMATH_TERNARY_OP(lerp_tensor_weight, float, float);
REGISTER_OPMATH_TERNARY_OP(lerp_tensor_weight, half, half);
REGISTER_OPMATH_TERNARY_OP(lerp_tensor_weight, bfloat, bfloat);
""",
    )
    host = after[f"{OPERATIONS}/TernaryKernel.mm"]
    launcher = host.index("\n// Launches"), host.index("\nstatic void lerp")
    assert_expected_inline(
        host[: launcher[0]] + "\n...\n" + host[launcher[1] :],
        """\
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/TensorIterator.h>
#include <ATen/native/Lerp.h>
#include <ATen/native/mps/MetalShaderLibrary.h>
#include <ATen/native/mps/OperationUtils.h>
#include <c10/util/irange.h>
#include <fmt/format.h>

namespace at::native {

static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();

...

static void lerp_tensor_weight_mps_kernel(TensorIteratorBase& iter) {
  exec_ternary(iter, "lerp_tensor_weight", iter.common_dtype());
}

REGISTER_DISPATCH(lerp_kernel_tensor_weight, &lerp_tensor_weight_mps_kernel)

} // namespace at::native
""",
    )
    assert "exec_ternary(part, name, dtype, scalar, scalar_type);" in host[slice(*launcher)]


def test_its_launcher_is_right_on_the_device(newer: Path) -> None:
    plan = plan_operator(Checkout(newer, "test"), "lerp")
    text = plan.changes.apply()
    tests = "(test_output_match or test_layouts) and float32"
    verdict = verify(newer, text, target_of(plan, "lerp"), tests)
    assert verdict.ok and verdict.kernel_calls > 20, verdict.failures
    host = f"{OPERATIONS}/TernaryKernel.mm"
    swapped = {**text, host: text[host].replace("iter.strides(at)", "iter.strides(0)")}
    assert swapped != text and not verify(newer, swapped, target_of(plan, "lerp"), tests).ok


def make_choice(root: Path) -> None:
    """Makes the operator one that chooses elements by a condition."""
    meta = """build(TensorIteratorConfig().check_all_same_dtype(false).add_output(maybe_get_output())
        .add_const_input(self).add_const_input(end).add_const_input(weight));"""
    replaced(root, f"{NATIVE}/Lerp.cpp", "build_ternary_op(maybe_get_output(), self, end, weight);", meta)
    kernel = f"{NATIVE}/cpu/LerpKernel.cpp"
    replaced(root, kernel, 'iter.common_dtype(), "lerp_kernel_tensor"', 'iter.dtype(), "lerp_kernel_tensor"')
    replaced(root, kernel, "scalar_t self_val, scalar_t end_val, scalar_t", "bool self_val, scalar_t end_val, scalar_t")
    replaced(root, kernel, "self_val + weight_val * (end_val - self_val)", "self_val ? end_val : weight_val")


def test_a_choice_by_a_condition_is_launched_by_the_type_of_its_elements(root: Path) -> None:
    make_choice(root)
    host = plan_operator(Checkout(root, "test"), "lerp").changes.apply()[f"{OPERATIONS}/Pointwise.mm"]
    assert 'exec_ternary(iter, "lerp_tensor_weight", iter.dtype());' in host
    replaced(root, INDEXING, "void ternary_dense_cast(", "void ternary_dense_other(")
    unported = plan_operator(Checkout(root, "test"), "lerp").unported
    assert [left.code for left in unported] == ["PTR091"]
