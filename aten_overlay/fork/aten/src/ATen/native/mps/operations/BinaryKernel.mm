#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/OpMathType.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/BinaryOps.h>
#include <ATen/native/mps/MetalShaderLibrary.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/sub_native.h>
#endif

namespace at::native {

static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();

static void copysign_mps_kernel(TensorIteratorBase& iter) {
  lib.exec_binary_kernel(iter, "copysign");
}

REGISTER_DISPATCH(copysign_stub, &copysign_mps_kernel)

// Half would round alpha away: it is passed in the type the kernel computes in
TORCH_IMPL_FUNC(sub_out_mps)(const Tensor& self, const Tensor& other, const Scalar& alpha, const Tensor& output) {
  lib.exec_binary_kernel(*this, "sub_alpha", alpha, at::toOpMathType(common_dtype()));
}

} // namespace at::native
