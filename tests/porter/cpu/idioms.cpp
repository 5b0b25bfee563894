// CPU kernels in ATen's idioms, which test_kernels.py reads.
#include <ATen/native/Twist.h>
namespace {
using namespace vec;

#if !defined(C10_MOBILE)
#define _AT_DISPATCH_OWN(TYPE, NAME, ...) \
  AT_DISPATCH_V2(TYPE, NAME, AT_WRAP(__VA_ARGS__), kHalf, kBool, AT_EXPAND(AT_FLOAT8_TYPES), \
  AT_EXPAND(AT_INTEGRAL_TYPES))
#else
#define _AT_DISPATCH_OWN(TYPE, NAME, ...) AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, __VA_ARGS__)
#endif

void twist_kernel(TensorIteratorBase& iter) {
  const auto dtype = iter.common_dtype();
  if (dtype == ScalarType::Bool) {
    cpu_kernel(iter, [=](bool a, bool b) -> bool { return a && b; });
  } else if (isIntegralType(dtype, /*includeBool=*/false)) {
    AT_DISPATCH_INTEGRAL_TYPES(dtype, "twist_cpu", [&]() {
      cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t {
        TORCH_CHECK(b != 0, "ZeroDivisionError");
        scalar_t r = a % b;
        if ((r != 0) && (c10::is_negative(r) != c10::is_negative(b))) {
          r += b;
        }
        return r;
      });
    });
  } else if (iter.is_scalar(2) && at::isReducedFloatingType(dtype)) {
    never_read(iter);
  } else {
    AT_DISPATCH_FLOATING_TYPES_AND2(kBFloat16, kHalf, dtype, "twist_cpu", [&]() {
      const Vectorized<scalar_t> ones(scalar_t(1));
      cpu_kernel_vec(
          iter,
          [=](scalar_t a, scalar_t b) __ubsan_ignore_undefined__ -> scalar_t {
            if (a != a || b != b) {
              return std::numeric_limits<scalar_t>::quiet_NaN();
            } else {
              return std::max(a, b) * static_cast<scalar_t>(0.5);
            }
          },
          [=](Vectorized<scalar_t> a, Vectorized<scalar_t> b) {
            auto [x, y] = halves(a, b);
            return x * ones;
          });
    });
  }
}

void level_kernel(TensorIteratorBase& iter) {
  _AT_DISPATCH_OWN(iter.common_dtype(), "level_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> bool { return a <= b; });
  });
}

void bend_kernel(TensorIteratorBase& iter, const Scalar& eps_scalar) {
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "bend_cpu", [&]() {
    const scalar_t eps = eps_scalar.to<scalar_t>();
    const Vectorized<scalar_t> unused(eps);
    if (eps < scalar_t(0)) {
      cpu_kernel_vec(iter, [](scalar_t x) { return std::log(x); }, [](Vectorized<scalar_t> x) { return x.log(); });
    } else {
      const scalar_t hi = scalar_t(1) - eps;
      cpu_kernel_vec(
          iter,
          [hi](scalar_t v) {
            v = v > hi ? hi : v;
            return v / (scalar_t(1) - v);
          },
          [](Vectorized<scalar_t> x) { return x; });
    }
  });
}

void fold_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES_AND_COMPLEX(iter.common_dtype(), "fold_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t { return soft_impl(a) * std::erf(b); });
  });
}

void step_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_INTEGRAL_TYPES(iter.common_dtype(), "step_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t { return steps(a, b); });
  });
}

void wave_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.common_dtype(), "wave_cpu", [&]() {
    using opmath_t = at::opmath_type<scalar_t>;
    cpu_kernel(iter, [](scalar_t a) -> scalar_t { return calc_wave(opmath_t{a} * c10::pi<opmath_t>); });
  });
}

void mix_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(iter.common_dtype(), "mix_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t { return flip_impl(a) * std::conj(scalar_t(1) - b * b); });
  });
}

void zero_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(iter.common_dtype(), "zero_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> bool { return a == b || !a || bool(b); });
  });
}

void odd_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "odd_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a) -> scalar_t {
      return mystery(a);
    });
  });
}

void strange_kernel(TensorIteratorBase& iter) {
  launch_threads(17);
}

void raw_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "raw_cpu", [&]() {
    cpu_kernel(iter, [](scalar_t a) -> scalar_t { return reinterpret_cast<uint32_t&>(a); });
  });
}

#define IMPLEMENT(op)                                              \
  static void op##_kernel(TensorIteratorBase& iter) {              \
    AT_DISPATCH_FLOATING_AND_COMPLEX_TYPES_AND2(kBFloat16, kHalf, iter.dtype(), #op "_vml_cpu", [&]() { \
      iter.for_each([&](char** data_, const int64_t* strides, int64_t n) { vml::v##op(data_[0], data_[1], n); }, \
      2048); \
    });                                                            \
    iter.cast_outputs();                                           \
  }
#define IMPLEMENT_AND_REGISTER(op) \
  IMPLEMENT(op)                    \
  ALSO_REGISTER_AVX512_DISPATCH(op##_stub, &CPU_CAPABILITY::op##_kernel)
IMPLEMENT_AND_REGISTER(log1p)
IMPLEMENT_AND_REGISTER(round)
void grow_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_COMPLEX_TYPES(iter.common_dtype(), "grow", [&] {
    cpu_kernel(iter, [](scalar_t a) -> scalar_t { return a / (scalar_t(1) + std::exp(-a)); });
  });
}

void pick_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "pick", [&] {
    cpu_kernel(iter, [](bool which, scalar_t a, scalar_t b) -> scalar_t { return which ? a : b; });
  });
}

void quiet_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_ALL_TYPES(iter.common_dtype(), "quiet", [&] {
    cpu_kernel(iter, [](scalar_t a, scalar_t b) -> scalar_t {
      if (a != a || b != b) {
        return std::numeric_limits<scalar_t>::quiet_NaN();
      }
      return std::min(a, b);
    });
  });
}

void clip_kernel(TensorIteratorBase& iter, bool up) {
  AT_DISPATCH_FLOATING_TYPES(iter.common_dtype(), "clip_cpu", [&]() {
    const scalar_t low(0.5f);
    scalar_t high(2);
    if (up) {
      high = scalar_t(4);
    }
    cpu_kernel(iter, [=](scalar_t a, scalar_t b) -> scalar_t { return std::min(std::max(a + b, low), b) * high; });
  });
}

} // namespace

REGISTER_DISPATCH(twist_stub, &twist_kernel)
ALSO_REGISTER_AVX512_DISPATCH(level_stub, &CPU_CAPABILITY::level_kernel)
REGISTER_DISPATCH(
    bend_stub,
    &bend_kernel)
REGISTER_DISPATCH(fold_stub, &fold_kernel)
REGISTER_DISPATCH(step_stub, &step_kernel)
REGISTER_DISPATCH(wave_stub, &wave_kernel)
REGISTER_DISPATCH(mix_stub, &mix_kernel)
REGISTER_DISPATCH(clip_stub, &clip_kernel)
REGISTER_DISPATCH(zero_stub, &zero_kernel)
REGISTER_DISPATCH(odd_stub, &odd_kernel)
REGISTER_DISPATCH(quiet_stub, &quiet_kernel)
REGISTER_DISPATCH(grow_stub, &grow_kernel)
REGISTER_DISPATCH(pick_stub, &pick_kernel)
REGISTER_DISPATCH(strange_stub, &strange_kernel)
REGISTER_DISPATCH(raw_stub, &raw_kernel)
