#define TORCH_ASSERT_NO_OPERATORS
#include <ATen/native/Lerp.h>

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/cpu/Loops.h>

namespace at::native {

namespace {

// From the nearer end, so that a weight of 1 gives exactly `end`.
void lerp_scalar_kernel(at::TensorIteratorBase& iter, const Scalar& weight) {
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(
      kBFloat16, kHalf, iter.common_dtype(), "lerp_kernel_scalar", [&] {
        using opmath_t = at::opmath_type<scalar_t>;
        const auto weight_val = weight.to<opmath_t>();
        cpu_kernel(iter, [=](scalar_t self_val, scalar_t end_val) -> scalar_t {
          const opmath_t self = self_val;
          const opmath_t end = end_val;
          return std::abs(weight_val) < 0.5
              ? self + weight_val * (end - self)
              : end - (end - self) * (opmath_t(1) - weight_val);
        });
      });
}

} // namespace

REGISTER_DISPATCH(lerp_kernel_scalar_weight, &lerp_scalar_kernel)

} // namespace at::native
