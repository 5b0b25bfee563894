"""What is written for the operators of three templates, as a reviewer reads it."""

from __future__ import annotations

from expecttest import assert_expected_inline

from tests.porter.kernels.inside.plans import plan


def texts(template: str, op: str, stage: str, *files: str) -> str:
    """Some of the new files, one after another."""
    found = plan(template, op, stage).changes.apply()
    return "".join(text for path, text in found.items() if path.endswith(files))


def test_an_elementwise_kernel() -> None:
    assert_expected_inline(
        texts("silu", "fast_silu", "silu", "FastSilu.metal", "FastSilu.mm"),
        """\
#include <metal_stdlib>
using namespace metal;

inline float silu(float v) {
  return v / (1.0f + metal::fast::exp(-v));
}

template <typename T, int EACH>
[[kernel]] void fast_silu(
    device const T* x [[buffer(0)]],
    constant const int& count [[buffer(1)]],
    device T* out [[buffer(2)]],
    uint3 thread_position_in_grid [[thread_position_in_grid]],
    uint3 threads_per_grid [[threads_per_grid]]) {
  // Neighboring threads read neighboring elements, so that every load of a
  // simdgroup is one stretch of memory.
  uint threads = threads_per_grid.x;
  uint i = thread_position_in_grid.x;
  for (int k = 0; k < EACH; ++k, i += threads)
    out[i] = T(silu(float(x[i])));
  if (i < uint(count))
    out[i] = T(silu(float(x[i]))); // the last one of some threads
}

#define INSTANTIATE_FAST_SILU(T_, EACH_)              \\
  template [[host_name("fast_silu_" #T_ "_" #EACH_)]] \\
  [[kernel]] decltype(fast_silu<T_, EACH_>) fast_silu<T_, EACH_>;

INSTANTIATE_FAST_SILU(float, 3)
INSTANTIATE_FAST_SILU(float, 0)
INSTANTIATE_FAST_SILU(half, 3)
INSTANTIATE_FAST_SILU(half, 0)
INSTANTIATE_FAST_SILU(bfloat, 3)
INSTANTIATE_FAST_SILU(bfloat, 0)
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/ceil_div.h>
#include <ATen/native/mps/OperationUtils.h>
#include <c10/util/TypeCast.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/fast_silu_native.h>
#endif

namespace at::native {

using namespace mps;

static auto& lib = MetalShaderLibrary::getBundledLibrary();

TORCH_IMPL_FUNC(fast_silu_out_mps)
(const Tensor& x, const Tensor& out) {
  TORCH_CHECK_TYPE(x.scalar_type() == kFloat || x.scalar_type() == kHalf || x.scalar_type() == kBFloat16,
                   "fast_silu: x has to be float, half or bfloat16, not ",
                   x.scalar_type());
  const Tensor x_ = x.contiguous();
  const int64_t threads = x.numel() >= 16 ? at::ceil_div<int64_t>(x.numel(), 4) : x.numel();
  const int64_t each = x.numel() >= 16 ? 3 : 0;
  if (threads == 0) {
    return;
  }
  const std::string kernel = "fast_silu_" + scalarToMetalTypeString(x) + "_" + std::to_string(each);

  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      id<MTLComputePipelineState> pipeline = lib.getPipelineStateForFunc(kernel);
      [encoder setComputePipelineState:pipeline];
      mtl_setArgs(encoder, x_, c10::checked_convert<int32_t>(x.numel(), "int32_t"), out);
      mtl_dispatch1DJob(encoder, pipeline, threads);
    }
  });
}

} // namespace at::native
""",
    )


def test_a_row_wise_kernel_with_barriers() -> None:
    assert_expected_inline(
        texts("softmax", "softmax_rows", "softmax", "SoftmaxRows.cpp", "SoftmaxRows.mm"),
        """\
#include <ATen/core/Tensor.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/softmax.h>
#include <ATen/ops/softmax_rows_meta.h>
#include <ATen/ops/softmax_rows_native.h>
#endif

namespace at::meta {

TORCH_META_FUNC(softmax_rows)(const Tensor& x) {
  TORCH_CHECK_VALUE(
      x.dim() > 0 && x.size(-1) > 0,
      "softmax_rows: x has to have a last dimension with elements, not shape ",
      x.sizes());
  set_output_contiguous(0, x.sizes(), x.options());
}

} // namespace at::meta

namespace at::native {

// The reference as it stands: the operator's own kernel is on MPS
TORCH_IMPL_FUNC(softmax_rows_out_cpu)
(const Tensor& x, const Tensor& out) {
  out.copy_(at::softmax(x, -1));
}

} // namespace at::native
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/mps/OperationUtils.h>
#include <c10/util/TypeCast.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/softmax_rows_native.h>
#endif

namespace at::native {

using namespace mps;

static auto& lib = MetalShaderLibrary::getBundledLibrary();

// A tensor without dimensions has one of size 1: Metal takes no empty argument.
template <typename T>
static std::vector<T> as_argument(IntArrayRef values) {
  return values.empty() ? std::vector<T>{1} : std::vector<T>(values.begin(), values.end());
}

TORCH_IMPL_FUNC(softmax_rows_out_mps)
(const Tensor& x, const Tensor& out) {
  TORCH_CHECK_TYPE(x.scalar_type() == kFloat || x.scalar_type() == kHalf || x.scalar_type() == kBFloat16,
                   "softmax_rows: x has to be float, half or bfloat16, not ",
                   x.scalar_type());
  const Tensor rows = x.dim() == 2 && x.stride(1) == 1 ? x : x.reshape({-1, x.size(-1)}).contiguous();
  const int64_t columns = rows.size(1);
  const int64_t group = std::min<int64_t>(256, std::max<int64_t>(32, columns / 16 / 32 * 32));
  const int64_t threads = rows.size(0) * group;
  if (threads == 0) {
    return;
  }
  const auto rows_strides = as_argument<int64_t>(rows.strides());
  const std::string kernel = "softmax_rows_" + scalarToMetalTypeString(x);

  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      id<MTLComputePipelineState> pipeline = lib.getPipelineStateForFunc(kernel);
      [encoder setComputePipelineState:pipeline];
      mtl_setArgs(encoder, rows, rows_strides, c10::checked_convert<int32_t>(columns, "int32_t"), out);
      [encoder dispatchThreads:MTLSizeMake(threads, 1, 1) threadsPerThreadgroup:MTLSizeMake(group, 1, 1)];
    }
  });
}

} // namespace at::native
""",
    )


def test_a_kernel_with_a_scalar() -> None:
    assert_expected_inline(
        texts("quickstart", "axpy", "axpy", "Axpy.metal", "Axpy.cpp", "Axpy.mm"),
        """\
#include <ATen/core/Tensor.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/add.h>
#include <ATen/ops/axpy_meta.h>
#include <ATen/ops/axpy_native.h>
#endif

namespace at::meta {

TORCH_META_FUNC(axpy)(double a, const Tensor& x, const Tensor& y) {
  TORCH_CHECK_TYPE(
      y.scalar_type() == x.scalar_type(),
      "axpy: y has to be ",
      x.scalar_type(),
      " as x is, not ",
      y.scalar_type());
  TORCH_CHECK_VALUE(
      y.sizes() == x.sizes(),
      "axpy: y has to have the shape ",
      x.sizes(),
      " of x, not ",
      y.sizes());
  set_output_contiguous(0, x.sizes(), x.options());
}

} // namespace at::meta

namespace at::native {

// The reference as it stands: the operator's own kernel is on MPS
TORCH_IMPL_FUNC(axpy_out_cpu)
(double a, const Tensor& x, const Tensor& y, const Tensor& out) {
  out.copy_(at::add(y, x, a));
}

} // namespace at::native
#include <metal_stdlib>
using namespace metal;

template <typename T>
[[kernel]] void axpy(
    constant const float& a [[buffer(0)]],
    device const T* x [[buffer(1)]],
    device const T* y [[buffer(2)]],
    device T* out [[buffer(3)]],
    uint3 thread_position_in_grid [[thread_position_in_grid]]) {
  uint i = thread_position_in_grid.x;
  out[i] = T(a * float(x[i]) + float(y[i]));
}

#define INSTANTIATE_AXPY(T_) \\
  template [[host_name("axpy_" #T_)]] [[kernel]] decltype(axpy<T_>) axpy<T_>;

INSTANTIATE_AXPY(float)
INSTANTIATE_AXPY(half)
INSTANTIATE_AXPY(bfloat)
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/mps/OperationUtils.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/axpy_native.h>
#endif

namespace at::native {

using namespace mps;

static auto& lib = MetalShaderLibrary::getBundledLibrary();

TORCH_IMPL_FUNC(axpy_out_mps)
(double a, const Tensor& x, const Tensor& y, const Tensor& out) {
  TORCH_CHECK_TYPE(x.scalar_type() == kFloat || x.scalar_type() == kHalf || x.scalar_type() == kBFloat16,
                   "axpy: x has to be float, half or bfloat16, not ",
                   x.scalar_type());
  const Tensor x_ = x.contiguous();
  const Tensor y_ = y.contiguous();
  if (x.numel() == 0) {
    return;
  }
  const std::string kernel = "axpy_" + scalarToMetalTypeString(x);

  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      id<MTLComputePipelineState> pipeline = lib.getPipelineStateForFunc(kernel);
      [encoder setComputePipelineState:pipeline];
      mtl_setArgs(encoder, static_cast<float>(a), x_, y_, out);
      mtl_dispatch1DJob(encoder, pipeline, x.numel());
    }
  });
}

} // namespace at::native
""",
    )
