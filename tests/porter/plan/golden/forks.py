"""Copies of the embedded fork with operators of families that it lacks, made up in ATen's idioms."""

from __future__ import annotations

import shutil
from pathlib import Path

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import CPU_KERNELS, CUDA_KERNELS, NATIVE, NATIVE_FUNCTIONS, OPERATIONS
from tests.porter.plan import lacking, test_several_scalars, test_ternary
from tests.porter.plan.older import remove_launchers

_STRUCTURED = "  structured: True\n  structured_inherits: TensorIteratorBase\n"

BACKWARD_ROWS = f"""
- func: bend_backward.grad_input(Tensor grad_output, Tensor output, *, Tensor(a!) grad_input) -> Tensor(a!)
{_STRUCTURED}  dispatch:
    CPU, CUDA: bend_backward_out
    MPS: bend_backward_out_mps

- func: bend_backward(Tensor grad_output, Tensor output) -> Tensor
  structured_delegate: bend_backward.grad_input
"""
BACKWARD_HEADER = """#pragma once
#include <ATen/native/DispatchStub.h>
namespace at::native {
using bend_fn = void (*)(TensorIteratorBase&);
DECLARE_DISPATCH(bend_fn, bend_backward_stub)
} // namespace at::native
"""
BACKWARD_SHARED = """#include <ATen/native/Bend.h>
namespace at::meta {
TORCH_META_FUNC(bend_backward)(const Tensor& grad_output, const Tensor& output) {
  build_borrowing_binary_op(maybe_get_output(), grad_output, output);
}
} // namespace at::meta
namespace at::native {
TORCH_IMPL_FUNC(bend_backward_out)(const Tensor& grad_output, const Tensor& output, const Tensor& grad_input) {
  bend_backward_stub(device_type(), *this);
}
} // namespace at::native
"""
BACKWARD_CPU = """#include <ATen/native/Bend.h>
namespace at::native {
namespace {
void bend_backward_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, iter.dtype(), "bend_backward_cpu", [&]() {
    using opmath_t = at::opmath_type<scalar_t>;
    cpu_kernel(iter, [](scalar_t grad_, scalar_t y_) -> scalar_t {
      const auto grad = static_cast<opmath_t>(grad_);
      const auto y = static_cast<opmath_t>(y_);
      return grad * (opmath_t(1) - y) * std::max(y, opmath_t(0));
    });
  });
}
} // namespace
REGISTER_DISPATCH(bend_backward_stub, &bend_backward_kernel)
} // namespace at::native
"""
BACKWARD_OLD = """#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/bend_backward_native.h>
#include <ATen/ops/bend_native.h>

namespace at::native {

struct BendGraph : public MPSCachedGraph {
  BendGraph(MPSGraph* graph) : MPSCachedGraph(graph) {}
  MPSGraphTensor* grad_ = nil;
};

namespace mps {

static MPSGraphTensor* slope(MPSGraph* graph, MPSGraphTensor* output) {
  return [graph negativeWithTensor:output name:nil];
}

} // namespace mps

// APIs exposed to at::native scope
TORCH_IMPL_FUNC(bend_backward_out_mps)
(const Tensor& grad_output, const Tensor& output, const Tensor& grad_input) {
  BendGraph* graph = LookUpOrCreateCachedGraph<BendGraph>("bend");
  mps::runMPSGraph(graph, mps::slope(graph, output));
}

TORCH_IMPL_FUNC(bend_out_mps)(const Tensor& self, const Tensor& output) {
  mps::runMPSGraph(self, output);
}

} // namespace at::native
"""

SPLIT_ROWS = f"""
- func: tilt.out(Tensor self, *, str how='none', Tensor(a!) out) -> Tensor(a!)
{_STRUCTURED}  dispatch:
    CPU: tilt_out_cpu
    CUDA: tilt_out_cuda
    MPS: tilt_out_mps

- func: tilt(Tensor self, *, str how='none') -> Tensor
  structured_delegate: tilt.out
"""
SPLIT_HEADER = """#pragma once
#include <ATen/native/DispatchStub.h>
namespace at::native {
enum class Tilt { None, Steep, END };
using tilt_fn = void (*)(TensorIteratorBase&, Tilt);
DECLARE_DISPATCH(tilt_fn, TiltKernel)
inline Tilt read_tilt(const std::string_view how) {
  return how == "none" ? Tilt::None : Tilt::Steep;
}
} // namespace at::native
"""
SPLIT_SHARED = """#include <ATen/native/Tilt.h>
namespace at::meta {
TORCH_META_FUNC(tilt)(const Tensor& self, std::string_view how) {
  build_unary_op(maybe_get_output(), self);
}
} // namespace at::meta
namespace at::native {
TORCH_IMPL_FUNC(tilt_out_cpu)(const Tensor& self, std::string_view how, const Tensor& result) {
  TiltKernel(kCPU, *this, read_tilt(how));
}
} // namespace at::native
"""
SPLIT_CPU = """#include <ATen/native/Tilt.h>
namespace at::native {
namespace {
void TiltKernelImpl(TensorIteratorBase& iter, Tilt how) {
  if (how == Tilt::Steep) {
    AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, iter.dtype(), "tilt_cpu", [&]() {
      cpu_kernel(iter, [](scalar_t x) -> scalar_t { return x * std::tanh(x); });
    });
  } else {
    AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, iter.dtype(), "tilt_cpu", [&]() {
      cpu_kernel(iter, [](scalar_t x) -> scalar_t { return x + scalar_t(1); });
    });
  }
}
} // namespace
REGISTER_DISPATCH(TiltKernel, &TiltKernelImpl)
} // namespace at::native
"""
SPLIT_OLD = """#include <ATen/native/Tilt.h>
#include <ATen/native/mps/OperationUtils.h>
#include <ATen/ops/tilt_native.h>

namespace at::native {

static MPSGraphTensor* steep(MPSGraph* graph, MPSGraphTensor* input) {
  return [graph tanhWithTensor:input name:nil];
}

TORCH_IMPL_FUNC(tilt_out_mps)(const Tensor& self, std::string_view how, const Tensor& output) {
  mps::runMPSGraph(steep(self), how, output);
}

} // namespace at::native
"""
CUDA_KERNEL = """#include <ATen/native/BinaryOps.h>
namespace at::native {
void hypot_kernel_cuda(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.common_dtype(), "hypot_cuda", [&]() {
    using opmath_t = at::opmath_type<scalar_t>;
    gpu_kernel(iter, [] GPU_LAMBDA(scalar_t a_, scalar_t b_) -> scalar_t {
      const auto a = static_cast<opmath_t>(a_);
      const auto b = static_cast<opmath_t>(b_);
      return static_cast<scalar_t>(::sqrt(a * a + b * b));
    });
  });
}
REGISTER_DISPATCH(hypot_stub, &hypot_kernel_cuda)
} // namespace at::native
"""


def copy_embedded(root: Path) -> Checkout:
    shutil.copytree(EMBEDDED_FORK, root)
    return Checkout(root, "test")


def with_backward(root: Path) -> Checkout:
    return _with_operator(root, "Bend", BACKWARD_ROWS, BACKWARD_HEADER, BACKWARD_SHARED, BACKWARD_CPU, BACKWARD_OLD)


def with_split_row(root: Path) -> Checkout:
    return _with_operator(root, "Tilt", SPLIT_ROWS, SPLIT_HEADER, SPLIT_SHARED, SPLIT_CPU, SPLIT_OLD)


def with_struct(root: Path) -> Checkout:
    """A fork with an operator of two scalars."""
    own = test_several_scalars
    return _with_operator(root, "Activation", own.ROWS, own.HEADER, own.SHARED, own.CPU, own.OLD)


def with_ternary(root: Path) -> Checkout:
    """A fork with every ternary kernel in its header, but no file for them and no function that launches them."""
    fork = copy_embedded(root)
    test_ternary.add_operator(root)
    test_ternary.remove_files(root)
    remove_launchers(root)
    return fork


def with_cuda_kernel(root: Path) -> Checkout:
    fork = copy_embedded(root)
    (root / CUDA_KERNELS).mkdir(parents=True)
    (root / CUDA_KERNELS / "HypotKernel.cu").write_text(CUDA_KERNEL)
    return fork


def with_lacking_operator(root: Path) -> Checkout:
    fork = lacking.make_fork(root)
    lacking.expect_failure(fork, "heaviside")
    return fork


def _with_operator(root: Path, name: str, rows: str, header: str, shared: str, cpu: str, old: str) -> Checkout:
    fork = copy_embedded(root)
    yaml = root / NATIVE_FUNCTIONS
    yaml.write_text(yaml.read_text() + rows)
    for path, text in (
        (f"{NATIVE}/{name}.h", header),
        (f"{NATIVE}/{name}.cpp", shared),
        (f"{CPU_KERNELS}/{name}Kernel.cpp", cpu),
        (f"{OPERATIONS}/{name}.mm", old),
    ):
        (root / path).write_text(text)
    return fork
