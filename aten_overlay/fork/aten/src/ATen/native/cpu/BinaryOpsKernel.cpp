#define TORCH_ASSERT_NO_OPERATORS
#include <ATen/native/BinaryOps.h>

#include <algorithm>
#include <cmath>

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/cpu/Loops.h>
#include <c10/util/TypeSafeSignMath.h>
#include <c10/util/copysign.h>
#include <c10/util/generic_math.h>

namespace at::native {

namespace {

void atan2_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      kBFloat16, kHalf, iter.dtype(), "atan2_cpu", [&]() {
        cpu_kernel(iter, [=](scalar_t a, scalar_t b) -> scalar_t {
          return std::atan2(a, b);
        });
      });
}

void hypot_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      kBFloat16, kHalf, iter.dtype(), "hypot_cpu", [&]() {
        cpu_kernel(iter, [=](scalar_t a, scalar_t b) -> scalar_t {
          return std::hypot(a, b);
        });
      });
}

void copysign_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      kBFloat16, kHalf, iter.common_dtype(), "copysign_cpu", [&]() {
        cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t {
          return c10::copysign(a, b);
        });
      });
}

void remainder_kernel(TensorIteratorBase& iter) {
  if (isIntegralType(iter.common_dtype(), /*includeBool*/ false)) {
    AT_DISPATCH_INTEGRAL_TYPES(iter.common_dtype(), "remainder_cpu", [&]() {
      cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t {
        TORCH_CHECK(b != 0, "ZeroDivisionError");
        scalar_t r = a % b;
        if ((r != 0) && (c10::is_negative(r) != c10::is_negative(b))) {
          r += b;
        }
        return r;
      });
    });
  } else {
    AT_DISPATCH_FLOATING_TYPES_AND2(
        kBFloat16, kHalf, iter.common_dtype(), "remainder_cpu", [&]() {
          using opmath_t = at::opmath_type<scalar_t>;
          cpu_kernel(iter, [](scalar_t a_, scalar_t b_) -> scalar_t {
            const opmath_t a = a_;
            const opmath_t b = b_;
            opmath_t mod = std::fmod(a, b);
            if ((mod != 0) && ((b < 0) != (mod < 0))) {
              mod += b;
            }
            return mod;
          });
        });
  }
}

void fmod_kernel(TensorIteratorBase& iter) {
  if (isIntegralType(iter.common_dtype(), /*includeBool=*/false)) {
    AT_DISPATCH_INTEGRAL_TYPES(iter.common_dtype(), "fmod_cpu", [&]() {
      cpu_kernel(iter, [=](scalar_t x, scalar_t d) -> scalar_t {
        TORCH_CHECK(d != 0, "ZeroDivisionError");
        return x % d;
      });
    });
  } else {
    AT_DISPATCH_FLOATING_TYPES_AND2(
        kBFloat16, kHalf, iter.common_dtype(), "fmod_cpu", [&]() {
          cpu_kernel(iter, [](scalar_t x, scalar_t d) -> scalar_t {
            return std::fmod(x, d);
          });
        });
  }
}

void div_floor_kernel(TensorIteratorBase& iter) {
  const auto dtype = iter.common_dtype();
  if (isIntegralType(dtype, /*includeBool*/ false)) {
    AT_DISPATCH_INTEGRAL_TYPES(dtype, "div_floor_cpu", [&]() {
      cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t {
        TORCH_CHECK(b != 0, "ZeroDivisionError");
        return c10::div_floor_integer(a, b);
      });
    });
  } else {
    AT_DISPATCH_FLOATING_TYPES_AND2(
        kBFloat16, kHalf, dtype, "div_floor_cpu", [&]() {
          using opmath_t = at::opmath_type<scalar_t>;
          cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t {
            return c10::div_floor_floating(
                static_cast<opmath_t>(a), static_cast<opmath_t>(b));
          });
        });
  }
}

void eq_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND3(
      kBool, kBFloat16, kHalf, iter.common_dtype(), "eq_cpu", [&]() {
        cpu_kernel(iter, [](scalar_t a, scalar_t b) -> bool { return a == b; });
      });
}

void lt_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES_AND3(
      kBool, kBFloat16, kHalf, iter.common_dtype(), "lt_cpu", [&]() {
        cpu_kernel(iter, [](scalar_t a, scalar_t b) -> bool { return a < b; });
      });
}

// Equal infinities are their own answer: their difference is not a number.
void logaddexp_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      kBFloat16, kHalf, iter.dtype(), "logaddexp_cpu", [&]() {
        using opmath_t = at::opmath_type<scalar_t>;
        cpu_kernel(iter, [=](scalar_t a_, scalar_t b_) -> scalar_t {
          const opmath_t a = a_;
          const opmath_t b = b_;
          if (std::isinf(a) && a == b) {
            return a;
          }
          const opmath_t m = std::max(a, b);
          return m + std::log1p(std::exp(-std::abs(a - b)));
        });
      });
}

} // namespace

REGISTER_DISPATCH(atan2_stub, &atan2_kernel)
REGISTER_DISPATCH(copysign_stub, &copysign_kernel)
REGISTER_DISPATCH(div_floor_stub, &div_floor_kernel)
REGISTER_DISPATCH(eq_stub, &eq_kernel)
REGISTER_DISPATCH(fmod_stub, &fmod_kernel)
REGISTER_DISPATCH(hypot_stub, &hypot_kernel)
REGISTER_DISPATCH(logaddexp_stub, &logaddexp_kernel)
REGISTER_DISPATCH(lt_stub, &lt_kernel)
REGISTER_DISPATCH(remainder_stub, &remainder_kernel)

} // namespace at::native
