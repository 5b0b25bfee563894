// What a CUDA file of elementwise kernels needs to compile as plain C++, for one thread. REAL is float or double, and
// stands for both, so that the same code is computed in one and in the other.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <tuple>
#include <type_traits>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __restrict__
#define __launch_bounds__(...)
#define C10_HOST_DEVICE
#define C10_DEVICE
#define C10_LAMBDA
#define GPU_LAMBDA
#define REGISTER_DISPATCH(...)
#define TORCH_CHECK(...)
#define C10_CUDA_KERNEL_LAUNCH_CHECK()

struct Dim3 {
  unsigned x = 0, y = 0, z = 0;
};
static Dim3 blockIdx, threadIdx, blockDim{1, 1, 1}, gridDim{1u << 31, 1, 1};

template <typename T>
inline T max(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmax(a, b);
  }
  return a < b ? b : a;
}
template <typename T>
inline T min(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::fmin(a, b);
  }
  return b < a ? b : a;
}

#define PORTER_UNARY(NAME, FUNCTION) \
  inline double NAME(double x) { \
    return std::FUNCTION(x); \
  }
#define PORTER_BINARY(NAME, FUNCTION) \
  inline double NAME(double x, double y) { \
    return std::FUNCTION(x, y); \
  }
// Overloads for double of what C++ has for float only under these names; and CUDA's fast functions for both.
#define PORTER_BOTH(FUNCTION) \
  PORTER_UNARY(FUNCTION##f, FUNCTION)
PORTER_BOTH(exp) PORTER_BOTH(exp2) PORTER_BOTH(expm1) PORTER_BOTH(log) PORTER_BOTH(log2) PORTER_BOTH(log10)
PORTER_BOTH(log1p) PORTER_BOTH(sqrt) PORTER_BOTH(cbrt) PORTER_BOTH(sin) PORTER_BOTH(cos) PORTER_BOTH(tan)
PORTER_BOTH(asin) PORTER_BOTH(acos) PORTER_BOTH(atan) PORTER_BOTH(sinh) PORTER_BOTH(cosh) PORTER_BOTH(tanh)
PORTER_BOTH(asinh) PORTER_BOTH(acosh) PORTER_BOTH(atanh) PORTER_BOTH(erf) PORTER_BOTH(erfc) PORTER_BOTH(lgamma)
PORTER_BOTH(tgamma) PORTER_BOTH(fabs) PORTER_BOTH(floor) PORTER_BOTH(ceil) PORTER_BOTH(trunc) PORTER_BOTH(round)
PORTER_BOTH(rint) PORTER_BOTH(nearbyint)
PORTER_BINARY(powf, pow) PORTER_BINARY(fmodf, fmod) PORTER_BINARY(atan2f, atan2) PORTER_BINARY(hypotf, hypot)
PORTER_BINARY(fmaxf, fmax) PORTER_BINARY(fminf, fmin) PORTER_BINARY(copysignf, copysign)
#define PORTER_FAST(NAME, FUNCTION) \
  inline REAL NAME(REAL x) { \
    return std::FUNCTION(x); \
  }
PORTER_FAST(__expf, exp) PORTER_FAST(__logf, log) PORTER_FAST(__log2f, log2) PORTER_FAST(__log10f, log10)
PORTER_FAST(__sinf, sin) PORTER_FAST(__cosf, cos) PORTER_FAST(__tanf, tan)
inline REAL __powf(REAL x, REAL y) {
  return std::pow(x, y);
}
inline REAL rsqrt(REAL x) {
  return REAL(1) / std::sqrt(x);
}
inline REAL rsqrtf(REAL x) {
  return rsqrt(x);
}
template <typename T>
inline T __ldg(const T* p) {
  return *p;
}

namespace c10 {
using namespace std;
namespace cuda::compat {
using namespace std;
}
} // namespace c10

namespace at {
template <typename T>
using opmath_type = T;
template <typename T, bool>
using acc_type = T;
template <typename T>
inline bool _isnan(T x) {
  return x != x;
}
enum class ScalarType { Half, BFloat16, Float, Double, Int, Long, Bool };
constexpr auto kHalf = ScalarType::Half, kBFloat16 = ScalarType::BFloat16, kFloat = ScalarType::Float,
               kDouble = ScalarType::Double, kInt = ScalarType::Int, kLong = ScalarType::Long,
               kBool = ScalarType::Bool;
struct Scalar {
  double value;
  Scalar(double v) : value(v) {}
  template <typename T>
  T to() const {
    return static_cast<T>(value);
  }
};
struct TensorIteratorBase {
  const std::vector<ELEMENT>* inputs;
  std::vector<ELEMENT>* output;
  ScalarType dtype(int = 0) const {
    return ScalarType::Float;
  }
  ScalarType common_dtype() const {
    return ScalarType::Float;
  }
  bool is_cpu_scalar(int) const {
    return false;
  }
};
using TensorIterator = TensorIteratorBase;
inline bool isComplexType(ScalarType) {
  return false;
}

namespace native {
template <typename F, typename R, typename... A, std::size_t... I>
void run_loop(TensorIteratorBase& iter, const F& f, R (F::*)(A...) const, std::index_sequence<I...>) {
  for (std::size_t i = 0; i < iter.output->size(); ++i) {
    (*iter.output)[i] = static_cast<ELEMENT>(f(static_cast<A>(iter.inputs[I][i])...));
  }
}
template <typename F, typename R, typename... A>
void run_typed(TensorIteratorBase& iter, const F& f, R (F::*call)(A...) const) {
  run_loop(iter, f, call, std::index_sequence_for<A...>{});
}
template <typename F>
void gpu_kernel(TensorIteratorBase& iter, const F& f) {
  run_typed(iter, f, &F::operator());
}
template <typename F>
void gpu_kernel_with_scalars(TensorIteratorBase& iter, const F& f) {
  run_typed(iter, f, &F::operator());
}
template <typename, typename = void, typename F>
void opmath_symmetric_gpu_kernel_with_scalars(TensorIteratorBase& iter, const F& f) {
  run_typed(iter, f, &F::operator());
}
} // namespace native
} // namespace at

namespace c10 {
using at::Scalar;
using at::ScalarType;
} // namespace c10

using namespace at;
using namespace at::native;

// The lambda is the last argument of a dispatch, and may hold commas.
#define PORTER_RUN(...) [&] { \
  using scalar_t = ELEMENT; \
  return (__VA_ARGS__)(); \
}()
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) PORTER_RUN(__VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) PORTER_RUN(__VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) PORTER_RUN(__VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) PORTER_RUN(__VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...) PORTER_RUN(__VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...) PORTER_RUN(__VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...) PORTER_RUN(__VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND2(A, B, TYPE, NAME, ...) PORTER_RUN(__VA_ARGS__)
#define AT_DISPATCH_ALL_TYPES_AND3(A, B, C, TYPE, NAME, ...) PORTER_RUN(__VA_ARGS__)
