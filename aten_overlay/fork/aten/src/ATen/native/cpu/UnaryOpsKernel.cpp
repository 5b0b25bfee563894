#define TORCH_ASSERT_NO_OPERATORS
#include <ATen/native/UnaryOps.h>

#include <cmath>
#include <limits>

#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/TensorIterator.h>
#include <ATen/native/cpu/Loops.h>

namespace at::native {

template <typename T>
static T exp2_impl(T x) {
  return std::exp2(x);
}

template <typename T>
static c10::complex<T> exp2_impl(c10::complex<T> x) {
  return std::exp(x * c10::complex<T>(std::log(T(2))));
}

static void neg_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX_AND2(
      kBFloat16, kHalf, iter.dtype(), "neg_cpu", [&]() {
        cpu_kernel(iter, [](scalar_t a) -> scalar_t { return -a; });
      });
}

static void signbit_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_SWITCH(
      iter.input_dtype(), "signbit_cpu", AT_DISPATCH_CASE_INTEGRAL_TYPES([&] {
        cpu_kernel(
            iter, [](scalar_t a) -> bool { return c10::is_negative(a); });
      }) AT_DISPATCH_CASE_FLOATING_TYPES_AND2(kBFloat16, kHalf, [&] {
        using opmath_t = at::opmath_type<scalar_t>;
        cpu_kernel(
            iter, [](scalar_t a) -> bool { return std::signbit(opmath_t{a}); });
      }));
}

static void rsqrt_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(
      kBFloat16, kHalf, iter.common_dtype(), "rsqrt_cpu", [&] {
        cpu_kernel(iter, [](scalar_t a) -> scalar_t {
          return static_cast<scalar_t>(1) / std::sqrt(a);
        });
      });
}

static void exp2_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(
      kBFloat16, kHalf, iter.dtype(), "exp2", [&] {
        cpu_kernel(iter, [](scalar_t a) -> scalar_t { return exp2_impl(a); });
      });
}

static void logit_kernel(TensorIteratorBase& iter, const Scalar& eps_scalar) {
  AT_DISPATCH_FLOATING_TYPES_AND2(
      kBFloat16, kHalf, iter.common_dtype(), "logit_cpu", [&]() {
        const scalar_t eps = eps_scalar.to<scalar_t>();
        if (eps < scalar_t(0)) {
          cpu_kernel(iter, [](scalar_t x) -> scalar_t {
            return x == scalar_t(1) ? std::numeric_limits<scalar_t>::infinity()
                                    : std::log(x / (scalar_t(1) - x));
          });
        } else {
          const scalar_t lo = eps;
          const scalar_t hi = scalar_t(1) - eps;
          cpu_kernel(iter, [lo, hi](scalar_t x) -> scalar_t {
            x = x < lo ? lo : (x > hi ? hi : x);
            return x == scalar_t(1) ? std::numeric_limits<scalar_t>::infinity()
                                    : std::log(x / (scalar_t(1) - x));
          });
        }
      });
}

#define IMPLEMENT_FLOAT_KERNEL(op)                                             \
  static void op##_kernel(TensorIteratorBase& iter) {                          \
    AT_DISPATCH_FLOATING_TYPES_AND2(                                           \
        kBFloat16, kHalf, iter.dtype(), #op "_cpu", [&]() {                    \
          cpu_kernel(iter, [](scalar_t a) -> scalar_t { return std::op(a); }); \
        });                                                                    \
  }                                                                            \
  REGISTER_DISPATCH(op##_stub, &op##_kernel)

#define IMPLEMENT_COMPLEX_KERNEL(op)                                           \
  static void op##_kernel(TensorIteratorBase& iter) {                          \
    AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(                               \
        kBFloat16, kHalf, iter.dtype(), #op "_cpu", [&]() {                    \
          cpu_kernel(iter, [](scalar_t a) -> scalar_t { return std::op(a); }); \
        });                                                                    \
  }                                                                            \
  REGISTER_DISPATCH(op##_stub, &op##_kernel)

REGISTER_DISPATCH(exp2_stub, &exp2_kernel)
REGISTER_DISPATCH(logit_stub, &logit_kernel)
REGISTER_DISPATCH(neg_stub, &neg_kernel)
REGISTER_DISPATCH(rsqrt_stub, &rsqrt_kernel)
REGISTER_DISPATCH(signbit_stub, &signbit_kernel)
IMPLEMENT_FLOAT_KERNEL(ceil)
IMPLEMENT_FLOAT_KERNEL(erf)
IMPLEMENT_COMPLEX_KERNEL(exp)
IMPLEMENT_COMPLEX_KERNEL(log1p)

} // namespace at::native
