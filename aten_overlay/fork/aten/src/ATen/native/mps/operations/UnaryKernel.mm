#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/TensorIterator.h>
#include <ATen/native/UnaryOps.h>
#include <ATen/native/mps/MetalShaderLibrary.h>

namespace at::native {

static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();

static void exp_kernel_mps(TensorIteratorBase& iter) {
  lib.exec_unary_kernel(iter, "exp");
}

REGISTER_DISPATCH(exp_stub, exp_kernel_mps)

} // namespace at::native
