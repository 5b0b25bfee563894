// Precompiled before a fork's host code: what nearly every file of it includes from the wheel and the frameworks.
#include <MetalPerformanceShaders/MetalPerformanceShaders.h>
#include <MetalPerformanceShadersGraph/MetalPerformanceShadersGraph.h>

#include <ATen/Dispatch.h>
#include <ATen/NamedTensorUtils.h>
#include <ATen/Tensor.h>
#include <ATen/TensorIterator.h>
#include <ATen/TensorUtils.h>
#include <ATen/Utils.h>
#include <ATen/core/TensorBase.h>
#include <ATen/native/DispatchStub.h>
#include <c10/core/ScalarType.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <torch/library.h>

// On macOS int64_t is `long long`, as a literal with LL is; on Linux it is `long`, and so is what a vector of them holds.
namespace std {
template <>
class vector<long long> : public vector<long> {
 public:
  using vector<long>::vector;
};

constexpr long max(long a, long long b) {
  return a < b ? static_cast<long>(b) : a;
}
constexpr long max(long long a, long b) {
  return max(b, a);
}
constexpr long min(long a, long long b) {
  return b < a ? static_cast<long>(b) : a;
}
constexpr long min(long long a, long b) {
  return min(b, a);
}
}  // namespace std
