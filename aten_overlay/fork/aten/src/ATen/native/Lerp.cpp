#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/Lerp.h>

#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/core/Tensor.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/lerp_native.h>
#endif

namespace at::meta {

TORCH_META_FUNC(lerp_Scalar)(
    const Tensor& self,
    const Tensor& end,
    const Scalar& /*weight*/) {
  TORCH_CHECK(
      self.dtype() == end.dtype(),
      "expected dtype ",
      self.dtype(),
      " for `end` but got dtype ",
      end.dtype());
  build_binary_op(maybe_get_output(), self, end);
}

} // namespace at::meta

namespace at::native {

TORCH_IMPL_FUNC(lerp_Scalar)(
    const Tensor& /*self*/,
    const Tensor& /*end*/,
    const Scalar& weight,
    const Tensor& /*out*/) {
  lerp_kernel_scalar_weight(device_type(), *this, weight);
}

DEFINE_DISPATCH(lerp_kernel_scalar_weight);

} // namespace at::native
