#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/BinaryOps.h>

#include <ATen/ScalarOps.h>
#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/core/Tensor.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/arctan2_native.h>
#include <ATen/ops/atan2.h>
#include <ATen/ops/atan2_native.h>
#include <ATen/ops/copysign_native.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/eq_native.h>
#include <ATen/ops/floor_divide_native.h>
#include <ATen/ops/fmod_native.h>
#include <ATen/ops/hypot_native.h>
#include <ATen/ops/logaddexp_native.h>
#include <ATen/ops/lt.h>
#include <ATen/ops/lt_native.h>
#include <ATen/ops/remainder.h>
#include <ATen/ops/remainder_native.h>
#include <ATen/ops/sub_native.h>
#endif

namespace at::meta {

TORCH_META_FUNC2(
    sub,
    Tensor)(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  native::sub_check(self, other);
  build_borrowing_binary_op(maybe_get_output(), self, other);
  native::alpha_check(dtype(), alpha);
}

TORCH_META_FUNC2(copysign, Tensor)(const Tensor& self, const Tensor& other) {
  build_borrowing_binary_float_op(maybe_get_output(), self, other);
}

TORCH_META_FUNC(atan2)(const Tensor& self, const Tensor& other) {
  build_borrowing_binary_float_op(maybe_get_output(), self, other);
}

TORCH_META_FUNC2(remainder, Tensor)(const Tensor& self, const Tensor& other) {
  build_borrowing_binary_op(maybe_get_output(), self, other);
}

TORCH_META_FUNC2(fmod, Tensor)(const Tensor& self, const Tensor& other) {
  build_borrowing_binary_op(maybe_get_output(), self, other);
}

// The output has the type of the inputs.
#define CREATE_BINARY_META_FUNC(func)                              \
  TORCH_META_FUNC(func)(const Tensor& self, const Tensor& other) { \
    build_borrowing_binary_op(maybe_get_output(), self, other);    \
  }

CREATE_BINARY_META_FUNC(hypot)
CREATE_BINARY_META_FUNC(logaddexp)

#define CREATE_COMPARISON_SCALAR_TENSOR_META_FUNC(func)                     \
  TORCH_META_FUNC2(func, Tensor)(const Tensor& self, const Tensor& other) { \
    build_borrowing_comparison_op(maybe_get_output(), self, other);         \
  }                                                                         \
                                                                            \
  TORCH_META_FUNC2(func, Scalar)(const Tensor& self, const Scalar& other) { \
    auto other_tensor = native::wrapped_scalar_tensor(other);               \
    build_borrowing_except_last_argument_comparison_op(                     \
        maybe_get_output(), self, other_tensor);                            \
  }

CREATE_COMPARISON_SCALAR_TENSOR_META_FUNC(eq)
CREATE_COMPARISON_SCALAR_TENSOR_META_FUNC(lt)

} // namespace at::meta

namespace at::native {

TORCH_IMPL_FUNC(sub_out)(
    const Tensor& self,
    const Tensor& other,
    const Scalar& alpha,
    const Tensor& result) {
  add_stub(device_type(), *this, -alpha);
}

TORCH_IMPL_FUNC(copysign_out)(
    const Tensor& self,
    const Tensor& other,
    const Tensor& result) {
  copysign_stub(device_type(), *this);
}

TORCH_IMPL_FUNC(
    atan2_out)(const Tensor& self, const Tensor& other, const Tensor& result) {
  atan2_stub(device_type(), *this);
}

#define CREATE_BINARY_TORCH_IMPL_FUNC(func_out, func_stub)             \
  TORCH_IMPL_FUNC(func_out)(                                           \
      const Tensor& self, const Tensor& other, const Tensor& result) { \
    func_stub(device_type(), *this);                                   \
  }

CREATE_BINARY_TORCH_IMPL_FUNC(fmod_out, fmod_stub)
CREATE_BINARY_TORCH_IMPL_FUNC(hypot_out, hypot_stub)
CREATE_BINARY_TORCH_IMPL_FUNC(logaddexp_out, logaddexp_stub)
CREATE_BINARY_TORCH_IMPL_FUNC(remainder_out, remainder_stub)

// A scalar is compared as a tensor, through the dispatcher again.
#define CREATE_COMPARISON_SCALAR_TENSOR_IMPL_FUNC(func)                \
  TORCH_IMPL_FUNC(func##_Tensor_out)(                                  \
      const Tensor& self, const Tensor& other, const Tensor& result) { \
    func##_stub(device_type(), *this);                                 \
  }                                                                    \
                                                                       \
  TORCH_IMPL_FUNC(func##_Scalar_out)(                                  \
      const Tensor& self, const Scalar& other, const Tensor& result) { \
    func##_stub(device_type(), *this);                                 \
  }

CREATE_COMPARISON_SCALAR_TENSOR_IMPL_FUNC(eq)
CREATE_COMPARISON_SCALAR_TENSOR_IMPL_FUNC(lt)

Tensor& floor_divide_out(
    const Tensor& self,
    const Tensor& other,
    Tensor& result) {
  auto iter = TensorIterator::binary_op(result, self, other);
  div_floor_stub(iter.device_type(), iter);
  if (!result.defined()) {
    result = iter.output();
  }
  return result;
}

Tensor floor_divide(const Tensor& self, const Tensor& other) {
  Tensor result;
  auto iter = TensorIterator::binary_op(result, self, other);
  div_floor_stub(iter.device_type(), iter);
  return iter.output();
}

Tensor& floor_divide_(Tensor& self, const Tensor& other) {
  return native::floor_divide_out(self, other, self);
}

Tensor remainder(const Scalar& self, const Tensor& other) {
  return at::remainder(wrapped_scalar_tensor(self), other);
}

// arctan2, alias for atan2
Tensor arctan2(const Tensor& self, const Tensor& other) {
  return at::atan2(self, other);
}

Tensor& arctan2_out(const Tensor& self, const Tensor& other, Tensor& result) {
  return at::atan2_out(result, self, other);
}

Tensor& arctan2_(Tensor& self, const Tensor& other) {
  return self.atan2_(other);
}

DEFINE_DISPATCH(add_stub);
DEFINE_DISPATCH(atan2_stub);
DEFINE_DISPATCH(copysign_stub);
DEFINE_DISPATCH(div_floor_stub);
DEFINE_DISPATCH(eq_stub);
DEFINE_DISPATCH(fmod_stub);
DEFINE_DISPATCH(hypot_stub);
DEFINE_DISPATCH(logaddexp_stub);
DEFINE_DISPATCH(lt_stub);
DEFINE_DISPATCH(remainder_stub);

} // namespace at::native
