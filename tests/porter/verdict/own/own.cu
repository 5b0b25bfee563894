// Kernels as a person has them: what the tool compiles as C++, and compares with the functor.
#include <cuda_runtime.h>

namespace mine {

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

template <typename T>
__global__ void clip_kernel(const T* a, const T* __restrict__ b, T* out, int64_t n, T low, T high) {
  const int64_t i = threadIdx.x + blockIdx.x * (int64_t)blockDim.x;
  if (i >= n) return;
  T x = a[i];
  if (x < low) {
    out[i] = low * b[i];
  } else {
    out[i] = x > high ? high : x;
  }
}

__device__ __forceinline__ float fade(float x, float y) {
  return fmaxf(x, y) * __expf(-fabsf(x));
}

__global__ void in_place_kernel(float* x, const float* y, int n, float rate) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) {
    x[at] -= rate * fade(x[at], y[at]);
  }
}

__global__ void whole_kernel(const int* a, const int* b, int* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = a[i] / b[i] + (a[i] & 3);
  }
}

__global__ void two_outputs(const float* a, float* out, float* other, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    other[i] = a[i];
    out[i] = a[i];
  }
}

__global__ void shifted(const float* a, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    out[i] = a[i + 1];
  }
}

__global__ void unguarded(const float* a, float* out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = a[i];
}

} // namespace mine
