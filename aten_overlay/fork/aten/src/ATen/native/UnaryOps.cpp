#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/UnaryOps.h>

#include <ATen/TensorIterator.h>
#include <ATen/TensorMeta.h>
#include <ATen/core/Tensor.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/ceil_native.h>
#include <ATen/ops/erf_native.h>
#include <ATen/ops/exp2_native.h>
#include <ATen/ops/exp_native.h>
#include <ATen/ops/log1p_native.h>
#include <ATen/ops/logit.h>
#include <ATen/ops/logit_native.h>
#include <ATen/ops/neg_native.h>
#include <ATen/ops/rsqrt_native.h>
#include <ATen/ops/signbit_native.h>
#endif

namespace at::meta {

// Integers become the default floating type.
#define CREATE_UNARY_FLOAT_META_FUNC(func)                    \
  TORCH_META_FUNC(func)(const Tensor& self) {                 \
    build_borrowing_unary_float_op(maybe_get_output(), self); \
  }

CREATE_UNARY_FLOAT_META_FUNC(erf)
CREATE_UNARY_FLOAT_META_FUNC(exp)
CREATE_UNARY_FLOAT_META_FUNC(exp2)
CREATE_UNARY_FLOAT_META_FUNC(log1p)
CREATE_UNARY_FLOAT_META_FUNC(rsqrt)

TORCH_META_FUNC(neg)(const Tensor& self) {
  TORCH_CHECK(
      self.scalar_type() != kBool,
      "Negation, the `-` operator, on a bool tensor is not supported.");
  build_borrowing_unary_op(maybe_get_output(), self);
}

TORCH_META_FUNC(ceil)(const Tensor& self) {
  TORCH_CHECK(!self.is_complex(), "ceil is not supported for complex inputs");
  build_borrowing_unary_op(maybe_get_output(), self);
}

TORCH_META_FUNC(signbit)(const Tensor& self) {
  TORCH_CHECK(
      !self.is_complex(), "signbit is not supported for complex tensors.");
  TORCH_CHECK(
      maybe_get_output().defined() ? maybe_get_output().dtype() == at::kBool
                                   : true,
      "signbit does not support non-boolean outputs.");
  build_borrowing_unary_force_boolean_op(maybe_get_output(), self);
}

} // namespace at::meta

namespace at::native {

#define CREATE_UNARY_TORCH_IMPL_FUNC(func_out, func_stub)               \
  TORCH_IMPL_FUNC(func_out)(const Tensor& self, const Tensor& result) { \
    func_stub(device_type(), *this);                                    \
  }

// Rounding an integer leaves it as it is.
#define CREATE_UNARY_TORCH_IMPL_INTEGER_NO_OP_FUNC(func_out, func_stub)   \
  TORCH_IMPL_FUNC(func_out)(const Tensor& self, const Tensor& result) {   \
    if (c10::isIntegralType(self.scalar_type(), /*includeBool=*/false)) { \
      result.copy_(self);                                                 \
    } else {                                                              \
      func_stub(device_type(), *this);                                    \
    }                                                                     \
  }

CREATE_UNARY_TORCH_IMPL_INTEGER_NO_OP_FUNC(ceil_out, ceil_stub)

CREATE_UNARY_TORCH_IMPL_FUNC(erf_out, erf_stub)
CREATE_UNARY_TORCH_IMPL_FUNC(exp_out, exp_stub)
CREATE_UNARY_TORCH_IMPL_FUNC(exp2_out, exp2_stub)
CREATE_UNARY_TORCH_IMPL_FUNC(log1p_out, log1p_stub)
CREATE_UNARY_TORCH_IMPL_FUNC(neg_out, neg_stub)
CREATE_UNARY_TORCH_IMPL_FUNC(rsqrt_out, rsqrt_stub)

TORCH_IMPL_FUNC(signbit_out)(const Tensor& self, const Tensor& result) {
  if (!c10::isSignedType(self.scalar_type())) {
    result.fill_(false);
  } else {
    signbit_stub(device_type(), *this);
  }
}

// An eps below 0 stands for none.
Tensor& logit_out(
    const Tensor& self,
    std::optional<double> eps,
    Tensor& result) {
  auto iter = TensorIterator::unary_float_op(result, self);
  logit_stub(iter.device_type(), iter, Scalar(eps ? eps.value() : -1.0));
  return result;
}

Tensor logit(const Tensor& self, std::optional<double> eps) {
  Tensor result;
  auto iter = TensorIterator::unary_float_op(result, self);
  logit_stub(iter.device_type(), iter, Scalar(eps ? eps.value() : -1.0));
  return iter.output();
}

Tensor& logit_(Tensor& self, std::optional<double> eps) {
  return at::logit_out(self, self, eps);
}

DEFINE_DISPATCH(ceil_stub);
DEFINE_DISPATCH(erf_stub);
DEFINE_DISPATCH(exp2_stub);
DEFINE_DISPATCH(exp_stub);
DEFINE_DISPATCH(log1p_stub);
DEFINE_DISPATCH(logit_stub);
DEFINE_DISPATCH(neg_stub);
DEFINE_DISPATCH(rsqrt_stub);
DEFINE_DISPATCH(signbit_stub);

} // namespace at::native
