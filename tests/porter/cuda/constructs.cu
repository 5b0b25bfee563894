// One kernel for each construct of CUDA that is read, with a reference of its name in test_values.py.
namespace {

constexpr char soft_name[] = "soft";
const auto soft_string = jiterator_stringify(
  template <typename T> T soft_part(T x) { return std::abs(x) + T(1); }
  template <typename T> T soft(T a, T b, T scale) {
    T top = scale * a;
    if (b > T(0)) {
      top += b;
    }
    return top / soft_part(a);
  }
);

void jiterator_kernel(TensorIteratorBase& iter, const Scalar& scale_) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.common_dtype(), "soft_cuda", [&]() {
    auto scale = scale_.to<scalar_t>();
    jitted_gpu_kernel</*name=*/soft_name, /*return_dtype=*/scalar_t, /*common_dtype=*/scalar_t, /*arity=*/2>(
        iter, soft_string, at::cuda::jit::BinaryFuncVariant::NoScalar, 0, std::make_tuple(scale));
  });
}

void lambda_kernel(TensorIteratorBase& iter, const Scalar& beta_) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "lambda_cuda", [&]() {
    using opmath_t = at::opmath_type<scalar_t>;
    auto beta = beta_.to<opmath_t>();
    gpu_kernel(iter, [beta] GPU_LAMBDA(scalar_t a) -> scalar_t {
      opmath_t x = static_cast<opmath_t>(a);
      return x > 0 ? x * beta : std::expm1(x);
    });
  });
}

void accumulate_kernel(TensorIteratorBase& iter, const Scalar& value) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "accumulate_cuda", [&]() {
    using accscalar_t = at::acc_type<scalar_t, true>;
    auto alpha = value.to<accscalar_t>();
    gpu_kernel(iter, [alpha] GPU_LAMBDA(scalar_t a, scalar_t b, scalar_t c) -> scalar_t {
      return a + alpha * (static_cast<accscalar_t>(b) * static_cast<accscalar_t>(c));
    });
  });
}

enum class Way { Up, Down };

template <typename T>
struct StepFunctor {
  StepFunctor(Way way, bool twice) : way_(way), twice_(twice) {}
  const Way way_;
  bool twice_;
  __device__ __forceinline__ T operator()(T a, T b) const {
    T step = twice_ ? b * T(2) : b;
    if (way_ == Way::Up) {
      return a + step;
    } else {
      return a - step;
    }
  }
};

template <typename scalar_t>
void step_impl(TensorIteratorBase& iter, Way way) {
  StepFunctor<scalar_t> f(way, true);
  gpu_kernel(iter, f);
}

void functor_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "step_cuda", [&]() {
    step_impl<scalar_t>(iter, Way::Down);
  });
}

template <typename T>
struct MixFunctor {
  __device__ T operator()(T a, T b) const {
    return a * b + a;
  }
};

void opmath_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "mix_cuda", [&]() {
    using opmath_t = at::opmath_type<scalar_t>;
    opmath_symmetric_gpu_kernel_with_scalars<scalar_t>(iter, MixFunctor<opmath_t>());
  });
}

template <typename T>
__host__ __device__ static inline T fold(T x) {
  if (x < T(0)) {
    return -x;
  }
  return ::sqrt(x);
}

void helper_kernel(TensorIteratorBase& iter) {
  AT_DISPATCH_FLOATING_TYPES_AND2(kHalf, kBFloat16, iter.dtype(), "fold_cuda", [&]() {
    gpu_kernel_with_scalars(iter, [] GPU_LAMBDA(scalar_t a, scalar_t b) -> scalar_t { return fold(a) + ::max(a, b); });
  });
}

template <typename T>
__global__ void threads_kernel(const T* a, const T* __restrict__ b, T* out, int64_t n, T low, T high) {
  const int64_t i = threadIdx.x + blockIdx.x * (int64_t)blockDim.x;
  if (i >= n) return;
  T x = a[i];
  if (x < low) {
    out[i] = low * b[i];
  } else {
    out[i] = x > high ? high : x;
  }
}

__global__ void in_place_kernel(float* x, const float* y, int n, float rate) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) {
    x[at] -= rate * tanhf(y[at]);
  }
}

__device__ __forceinline__ float device_function(float x, float y) {
  return fmaxf(x, y) * __expf(-fabsf(x));
}

} // namespace
