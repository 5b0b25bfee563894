"""A stub of three elements, on a copy of the embedded fork that was given one."""

import shutil
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import INDEXING, KERNEL_LIBRARY, KERNELS, NATIVE, NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.planner import plan_operator

DECLARED = """  void exec_ternary_kernel(
      TensorIteratorBase& iter,
      const std::string& name,
      const std::optional<c10::Scalar> alpha = std::nullopt,
      const std::optional<c10::ScalarType> scalar_arg_type = std::nullopt);

"""
MACRO = """
#define REGISTER_TERNARY_OP(NAME, DTYPEI, DTYPEO)                            \\
  template [[host_name(#NAME "_dense_" #DTYPEO "_" #DTYPEI)]] kernel void :: \\
      c10::metal::ternary_dense<DTYPEI, NAME##_functor>(uint index);
"""
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
    row = "    CPU, CUDA: lerp_Tensor\n"
    declared = "DECLARE_DISPATCH(lerp_fn_scalar, "
    replaced(tmp_path, NATIVE_FUNCTIONS, row, f"{row}    MPS: lerp_Tensor_mps\n")
    replaced(tmp_path, f"{NATIVE}/Lerp.cpp", "} // namespace at::meta", META)
    replaced(tmp_path, f"{NATIVE}/Lerp.cpp", "DEFINE_DISPATCH", SHARED)
    tensors = "DECLARE_DISPATCH(void (*)(at::TensorIteratorBase& iter), lerp_kernel_tensor_weight)\n"
    replaced(tmp_path, f"{NATIVE}/Lerp.h", declared, tensors + declared)
    replaced(tmp_path, f"{NATIVE}/cpu/LerpKernel.cpp", "} // namespace\n", CPU_KERNEL)
    replaced(tmp_path, f"{OPERATIONS}/BinaryOps.mm", "TORCH_IMPL_FUNC(lerp_Scalar_mps)", OLD)
    (tmp_path / KERNELS / "Pointwise.metal").write_text(METAL)
    (tmp_path / OPERATIONS / "Pointwise.mm").write_text(HOST)
    indexing = tmp_path / INDEXING
    indexing.write_text(indexing.read_text() + MACRO)
    return tmp_path


def test_a_ternary_operator_is_ported_to_the_ternary_files(root: Path) -> None:
    replaced(
        root, KERNEL_LIBRARY, " protected:\n  virtual MTLLibrary_t", f"{DECLARED} protected:\n  virtual MTLLibrary_t"
    )
    plan = plan_operator(Checkout(root, "test"), "lerp")
    assert plan.complete
    assert [entry.name for entry in plan.entries] == ["lerp.Scalar_out", "lerp.Tensor_out"]
    after = plan.changes.apply()
    metal, host = after[f"{KERNELS}/Pointwise.metal"], after[f"{OPERATIONS}/Pointwise.mm"]
    assert [f"REGISTER_TERNARY_OP(lerp_tensor_weight, {t}, {t});" in metal for t in ("float", "half", "bfloat")] == [
        True
    ] * 3
    assert "operator()(const T a, const T b, const T c)" in " ".join(metal[metal.index("lerp_tensor") :].split())
    assert 'lib.exec_ternary_kernel(iter, "lerp_tensor_weight");' in host
    assert "REGISTER_DISPATCH(lerp_kernel_tensor_weight, &lerp_tensor_weight_mps_kernel)" in host


def test_a_fork_without_ternary_kernels_keeps_the_row(root: Path) -> None:
    plan = plan_operator(Checkout(root, "test"), "lerp")
    assert [entry.name for entry in plan.entries] == ["lerp.Scalar_out"]
    assert [left.code for left in plan.unported] == ["PTR091"]
