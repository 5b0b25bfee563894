// One CPU kernel for each construct that is read, with a reference of its name in test_values.py.
namespace {

template <typename T>
inline T calc_fold(T x) {
  if (x < T(0)) {
    return -x;
  }
  return std::sqrt(x);
}

void lambda_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "lambda_cpu", [&]() {
    cpu_kernel(iter, [=](scalar_t a, scalar_t b) -> scalar_t { return a * b + a; });
  });
}

void product_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "product_cpu", [&]() {
    cpu_kernel(iter, [=](scalar_t a, scalar_t b) -> scalar_t { return std::log(0.5 * (a * a + b * b + scalar_t(1))); });
  });
}

void pair_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "pair_cpu", [&]() {
    cpu_kernel_multiple_outputs(iter, [=](scalar_t a, scalar_t b) -> std::tuple<scalar_t, scalar_t> {
      auto sum = a + b;
      if (a > b) {
        return {sum, a};
      }
      return std::make_tuple(a - b, sum * sum);
    });
  });
}

void vector_kernel(TensorIteratorBase& iter, const Scalar& slope_) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "vector_cpu", [&]() {
    using Vec = Vectorized<scalar_t>;
    const Vec slope_v(slope_.to<scalar_t>());
    auto slope = slope_.to<scalar_t>();
    cpu_kernel_vec(
        iter,
        [=](scalar_t a) -> scalar_t { return a > scalar_t(0) ? a : slope * std::tanh(a); },
        [=](Vec a) -> Vec { return a * slope_v; });
  });
}

void branch_kernel(TensorIteratorBase& iter, const Scalar& eps_) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "branch_cpu", [&]() {
    const scalar_t eps = eps_.to<scalar_t>();
    if (eps < scalar_t(1)) {
      cpu_kernel(iter, [=](scalar_t x) -> scalar_t { return std::max(x, eps); });
    } else {
      const scalar_t top = scalar_t(2) - eps;
      cpu_kernel(iter, [=](scalar_t x) -> scalar_t { return x > top ? top : x; });
    }
  });
}

void unused_kernel(TensorIteratorBase& iter, const Scalar& beta_) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "unused_cpu", [&]() {
    const scalar_t beta = beta_.to<scalar_t>();
    if (beta > scalar_t(1)) {
      cpu_kernel(iter, [=](scalar_t /*a*/, scalar_t b) -> scalar_t { return b + b; });
    } else {
      cpu_kernel(iter, [=](scalar_t a, scalar_t b) -> scalar_t { return beta * a + b; });
    }
  });
}

void helper_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "helper_cpu", [&]() {
    cpu_kernel(iter, [=](scalar_t a, scalar_t b) -> scalar_t { return calc_fold(a) + b; });
  });
}

void opmath_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "opmath_cpu", [&]() {
    using opmath_t = at::opmath_type<scalar_t>;
    cpu_kernel(iter, [=](scalar_t a, scalar_t b) -> scalar_t {
      opmath_t sum = opmath_t(0);
      int steps = 0;
      while (steps < 3) {
        sum += static_cast<opmath_t>(a);
        steps += 1;
      }
      return sum * static_cast<opmath_t>(b) / (std::abs(static_cast<opmath_t>(a)) + opmath_t(1));
    });
  });
}

} // namespace

REGISTER_DISPATCH(product_stub, &product_kernel)
REGISTER_DISPATCH(pair_stub, &pair_kernel)
REGISTER_DISPATCH(lambda_stub, &lambda_kernel)
REGISTER_DISPATCH(vector_stub, &vector_kernel)
REGISTER_DISPATCH(branch_stub, &branch_kernel)
REGISTER_DISPATCH(unused_stub, &unused_kernel)
REGISTER_DISPATCH(helper_stub, &helper_kernel)
REGISTER_DISPATCH(opmath_stub, &opmath_kernel)
