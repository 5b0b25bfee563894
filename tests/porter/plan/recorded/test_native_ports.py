"""Ports that keep the row's function: whole diffs of three families, on a copy of the embedded fork."""

from pathlib import Path

from expecttest import assert_expected_inline

from porter.plan.planner import plan_operator
from porter.report.terminal import summary
from tests.porter.plan.recorded import fork


def test_a_map_takes_the_helper_that_others_need_too_into_its_function(tmp_path: Path) -> None:
    assert_expected_inline(
        fork.diff(tmp_path, "turned", fork.turned()),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Turns.metal b/aten/src/ATen/native/mps/kernels/Turns.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Turns.metal
@@ -0,0 +1,41 @@
+#include <metal_stdlib>
+
+using namespace metal;
+
+template <typename T, typename index_t>
+kernel void turned(
+    device T* output,
+    constant T* input,
+    constant index_t& width,
+    constant index_t& times,
+    uint tid [[thread_position_in_grid]]) {
+  const index_t row = index_t(tid) / width;
+  const index_t column = index_t(tid) % width;
+  const index_t offset = row * width;
+  output[offset + column] = input[offset + (column + times) % width];
+}
+
+#define REGISTER_TURNED_(DTYPE, INDEX)                            \\
+  template [[host_name("turned_" #DTYPE "_" #INDEX)]] kernel void \\
+  turned<DTYPE, INDEX>(                                           \\
+      device DTYPE * output,                                      \\
+      constant DTYPE * input,                                     \\
+      constant INDEX & width,                                     \\
+      constant INDEX & times,                                     \\
+      uint tid [[thread_position_in_grid]])
+
+#define REGISTER_TURNED(DTYPE)  \\
+  REGISTER_TURNED_(DTYPE, int); \\
+  REGISTER_TURNED_(DTYPE, long)
+
+REGISTER_TURNED(float);
+REGISTER_TURNED(half);
+REGISTER_TURNED(bfloat);
+REGISTER_TURNED(long);
+REGISTER_TURNED(int);
+REGISTER_TURNED(short);
+REGISTER_TURNED(uchar);
+REGISTER_TURNED(char);
+REGISTER_TURNED(bool);
+REGISTER_TURNED(float2);
+REGISTER_TURNED(half2);
diff --git a/aten/src/ATen/native/mps/operations/Turns.mm b/aten/src/ATen/native/mps/operations/Turns.mm
--- a/aten/src/ATen/native/mps/operations/Turns.mm
+++ b/aten/src/ATen/native/mps/operations/Turns.mm
@@ -1,6 +1,14 @@
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Turns_metallib.h>
+#endif
 
 struct SharesCachedGraph : public MPSCachedGraph {
   MPSGraphTensor* shares = nil;
@@ -19,7 +27,36 @@
 }
 
 Tensor turned_mps(const Tensor& self, int64_t times) {
-  return turn_template(self, times, /*back=*/false);
+  using namespace mps;
+
+  TORCH_CHECK(times > 0, "turned", ": times must be positive");
+  Tensor output = at::empty(self.sizes(), self.options());
+  if (output.numel() == 0) {
+    return output;
+  }
+
+  TORCH_CHECK_NOT_IMPLEMENTED(self.dim() == 2, "turned: expected self of 2 dimensions, but got ", self.dim());
+  const auto self_contiguous = self.contiguous();
+  const int64_t width = self.size(-1);
+  MPSStream* stream = getCurrentMPSStream();
+  const std::string index_type =
+      canUse32BitIndexMath(output) && canUse32BitIndexMath(self) && times >= INT_MIN / 2 && times <= INT_MAX / 2
+      ? "int"
+      : "long";
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO = lib.getPipelineStateForFunc("turned_" + scalarToMetalTypeString(self) + "_" + index_type);
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, "turned", {self_contiguous}, stream);
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(computeEncoder, output, self_contiguous, width, times);
+      mtl_dispatch1DJob(computeEncoder, PSO, output.numel());
+      getMPSProfiler().endProfileKernel(PSO, stream);
+    }
+  });
+
+  return output;
 }
 
 Tensor returned_mps(const Tensor& self, int64_t times) {
""",
    )


def test_a_reduction_has_a_threadgroup(tmp_path: Path) -> None:
    assert_expected_inline(
        fork.diff(tmp_path, "mean_square", fork.mean_square()),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Turns.metal b/aten/src/ATen/native/mps/kernels/Turns.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Turns.metal
@@ -0,0 +1,86 @@
+#include <c10/metal/reduction_utils.h>
+#include <c10/metal/utils.h>
+#include <metal_stdlib>
+
+using namespace metal;
+
+template <typename T, typename index_t>
+kernel void mean_square(
+    device T* output,
+    device float* partials,
+    constant T* input,
+    constant index_t& numel,
+    constant uint& slices,
+    uint2 position [[thread_position_in_grid]],
+    uint2 grid_size [[threads_per_grid]],
+    uint2 tid [[thread_position_in_threadgroup]],
+    uint2 group_size [[threads_per_threadgroup]]) {
+  threadgroup float shared_sum[c10::metal::simdgroup_size];
+  float sum = 0;
+  for (index_t at = position.x; at < numel; at += grid_size.x) {
+    const float value = input[at];
+    sum += value * value;
+  }
+  if (group_size.x > 1) {
+    sum = c10::metal::threadgroup_sum(
+        shared_sum + tid.y, sum, tid.x, group_size.x);
+  }
+  if (tid.x == 0) {
+    if (slices > 1) {
+      partials[position.x / group_size.x] = sum;
+    } else {
+      output[0] = static_cast<T>(sum / static_cast<float>(numel));
+    }
+  }
+}
+
+#define REGISTER_MEAN_SQUARE_(DTYPE, INDEX)                            \\
+  template [[host_name("mean_square_" #DTYPE "_" #INDEX)]] kernel void \\
+  mean_square<DTYPE, INDEX>(                                           \\
+      device DTYPE * output,                                           \\
+      device float* partials,                                          \\
+      constant DTYPE* input,                                           \\
+      constant INDEX& numel,                                           \\
+      constant uint& slices,                                           \\
+      uint2 position [[thread_position_in_grid]],                      \\
+      uint2 grid_size [[threads_per_grid]],                            \\
+      uint2 tid [[thread_position_in_threadgroup]],                    \\
+      uint2 group_size [[threads_per_threadgroup]])
+
+#define REGISTER_MEAN_SQUARE(DTYPE)  \\
+  REGISTER_MEAN_SQUARE_(DTYPE, int); \\
+  REGISTER_MEAN_SQUARE_(DTYPE, long)
+
+REGISTER_MEAN_SQUARE(float);
+REGISTER_MEAN_SQUARE(half);
+REGISTER_MEAN_SQUARE(bfloat);
+
+template <typename T>
+kernel void mean_square_combine(
+    device T* output,
+    constant float* partials,
+    constant long& numel,
+    constant uint& slices,
+    uint lane [[thread_index_in_simdgroup]]) {
+  float sum = 0;
+  for (uint slice = lane; slice < slices; slice += c10::metal::simdgroup_size) {
+    sum += partials[slice];
+  }
+  sum = c10::metal::simd_sum(sum);
+  if (lane == 0) {
+    output[0] = static_cast<T>(sum / static_cast<float>(numel));
+  }
+}
+
+#define REGISTER_MEAN_SQUARE_COMBINE(DTYPE)                         \\
+  template [[host_name("mean_square_combine_" #DTYPE)]] kernel void \\
+  mean_square_combine<DTYPE>(                                       \\
+      device DTYPE * output,                                        \\
+      constant float* partials,                                     \\
+      constant long& numel,                                         \\
+      constant uint& slices,                                        \\
+      uint lane [[thread_index_in_simdgroup]])
+
+REGISTER_MEAN_SQUARE_COMBINE(float);
+REGISTER_MEAN_SQUARE_COMBINE(half);
+REGISTER_MEAN_SQUARE_COMBINE(bfloat);
diff --git a/aten/src/ATen/native/mps/operations/Turns.mm b/aten/src/ATen/native/mps/operations/Turns.mm
--- a/aten/src/ATen/native/mps/operations/Turns.mm
+++ b/aten/src/ATen/native/mps/operations/Turns.mm
@@ -1,6 +1,53 @@
+#include <ATen/AccumulateType.h>
+#include <ATen/ceil_div.h>
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Turns_metallib.h>
+#endif
+
+namespace {
+// How the threads of a grid share rows of elements: a thread, a simdgroup or a threadgroup has a row, or a slice of
+// one. Another kernel combines the slices.
+struct RowThreads {
+  int64_t lanes;
+  uint32_t slices;
+};
+} // namespace
+
+// 32-bit indices up to this one stay in range where the width of a grid is added to them.
+constexpr int64_t kLargestRowIndex = 1 << 30;
+
+static RowThreads share_rows(int64_t rows, int64_t length, bool are_adjacent = false, int64_t group_size = 256) {
+  constexpr int64_t kSimdSize = 32;
+  constexpr int64_t kManyThreads = 512 * 1024;
+  // Neighboring threads read neighboring elements: of one row or, where rows are adjacent, of several.
+  const bool has_thread = length <= kSimdSize || (are_adjacent && rows * length >= 64 * 1024);
+  const bool has_simdgroup = length <= 1024 || (length <= 8192 && rows * kSimdSize >= kManyThreads);
+  // Lanes of a threadgroup have 16 elements at least, which are worth combining.
+  const int64_t most_lanes = std::min(group_size, at::ceil_div(length, 16 * kSimdSize) * kSimdSize);
+  const int64_t lanes = has_thread ? 1 : has_simdgroup ? kSimdSize : most_lanes;
+  // A thread has 32 elements at least, which are worth a second launch, and 256 at most, for sums to be accurate.
+  const int64_t most = length / (32 * lanes);
+  const int64_t least = at::ceil_div(length, 256 * lanes);
+  const auto slices = std::max<int64_t>({1, least, std::min(most, kManyThreads / (rows * lanes))});
+  return {lanes, static_cast<uint32_t>(slices)};
+}
+
+static void dispatch_rows(id<MTLComputeCommandEncoder> encoder,
+                          id<MTLComputePipelineState> PSO,
+                          int64_t rows,
+                          const RowThreads& threads) {
+  const auto lanes = std::min<NSUInteger>([PSO maxTotalThreadsPerThreadgroup], threads.lanes);
+  [encoder dispatchThreads:MTLSizeMake(threads.slices * lanes, rows, 1)
+      threadsPerThreadgroup:MTLSizeMake(lanes, lanes > 32 ? 1 : 256 / lanes, 1)];
+}
 
 struct SharesCachedGraph : public MPSCachedGraph {
   MPSGraphTensor* shares = nil;
@@ -33,13 +80,57 @@
 }
 
 Tensor& mean_square_out_mps(const Tensor& self, Tensor& out) {
+  using namespace mps;
+
   // the mean of no elements is not a number
   if (self.numel() == 0) {
     return out.fill_(NAN);
   }
   out.resize_({});
-  NSNumber* count = @(self.numel());
-  runMPSGraph(getCurrentMPSStream(), makeGraph(count), feeds, out);
+  if (out.numel() == 0) {
+    return out;
+  }
+
+  const auto self_contiguous = self.contiguous();
+  TORCH_CHECK(out.scalar_type() == self.scalar_type(),
+              "Expected out tensor to have dtype ",
+              self.scalar_type(),
+              ", but got ",
+              out.scalar_type(),
+              " instead");
+  const auto out_contiguous =
+      out.is_contiguous() && !out.is_alias_of(self_contiguous) ? out : at::empty(out.sizes(), out.options());
+  const int64_t numel = self.numel();
+  const auto threads = share_rows(1, numel);
+  const auto partials =
+      threads.slices > 1 ? at::empty({threads.slices}, out_contiguous.options().dtype(kFloat)) : out_contiguous;
+  MPSStream* stream = getCurrentMPSStream();
+  const std::string index_type =
+      canUse32BitIndexMath(out, kLargestRowIndex) && canUse32BitIndexMath(self, kLargestRowIndex) ? "int" : "long";
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO = lib.getPipelineStateForFunc("mean_square_" + scalarToMetalTypeString(self) + "_" + index_type);
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, "mean_square", {self_contiguous}, stream);
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(computeEncoder, out_contiguous, partials, self_contiguous, numel, threads.slices);
+      dispatch_rows(computeEncoder, PSO, 1, threads);
+      getMPSProfiler().endProfileKernel(PSO, stream);
+      if (threads.slices > 1) {
+        auto combinePSO = lib.getPipelineStateForFunc("mean_square_combine_" + scalarToMetalTypeString(self));
+        getMPSProfiler().beginProfileKernel(combinePSO, "mean_square_combine", {partials}, stream);
+        [computeEncoder setComputePipelineState:combinePSO];
+        mtl_setArgs(computeEncoder, out_contiguous, partials, numel, threads.slices);
+        [computeEncoder dispatchThreadgroups:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
+        getMPSProfiler().endProfileKernel(combinePSO, stream);
+      }
+    }
+  });
+  if (!out_contiguous.is_same(out)) {
+    out.copy_(out_contiguous);
+  }
+
   return out;
 }
 
""",
    )


def test_the_summary_has_no_registrations_of_functors(tmp_path: Path) -> None:
    programs = fork.mean_square()
    plan = plan_operator(fork.copy_fork(tmp_path), "mean_square", programs=lambda served: programs)
    labels = {line.split()[0] for line in summary(plan).splitlines()[1:]}
    assert "functor" in labels and "dtypes" not in labels


def test_rows_are_copied_back_where_the_result_may_be_strided(tmp_path: Path) -> None:
    assert_expected_inline(
        fork.diff(tmp_path, "shares", fork.shares()),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Turns.metal b/aten/src/ATen/native/mps/kernels/Turns.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Turns.metal
@@ -0,0 +1,85 @@
+#include <c10/metal/reduction_utils.h>
+#include <c10/metal/utils.h>
+#include <metal_stdlib>
+
+using namespace metal;
+
+// Neighboring elements, which are read at once
+template <typename T, int N>
+struct alignas(N * sizeof(T)) neighbors {
+  T at[N];
+};
+
+template <typename T, typename index_t, int N, int V>
+kernel void shares(
+    device T* output,
+    constant T* input,
+    constant index_t& width,
+    uint2 position [[thread_position_in_grid]],
+    uint2 tid [[thread_position_in_threadgroup]],
+    uint2 group_size [[threads_per_threadgroup]]) {
+  threadgroup float shared_sum[c10::metal::simdgroup_size];
+  const index_t row = position.y;
+  const index_t start = row * width;
+  float kept[N];
+  const index_t turns =
+      N > 1 ? N / V : (width + group_size.x * V - 1) / (group_size.x * V);
+  float sum = 0;
+#pragma unroll
+  for (index_t i = 0; i < turns; i++) {
+    const index_t column = (tid.x + i * group_size.x) * V;
+    if (column < width) {
+      const auto elements =
+          *reinterpret_cast<constant neighbors<T, V>*>(input + start + column);
+      for (index_t j = 0; j < V; j++) {
+        const float value = static_cast<float>(elements.at[j]);
+        kept[(i * V + j) % N] = value;
+        sum += value;
+      }
+    }
+  }
+  sum =
+      c10::metal::threadgroup_sum(shared_sum + tid.y, sum, tid.x, group_size.x);
+#pragma unroll
+  for (index_t i = 0; i < turns; i++) {
+    const index_t column = (tid.x + i * group_size.x) * V;
+    if (column < width) {
+      const auto elements = N > 1
+          ? neighbors<T, V>()
+          : *reinterpret_cast<constant neighbors<T, V>*>(
+                input + start + column);
+      neighbors<T, V> results;
+      for (index_t j = 0; j < V; j++) {
+        const float value =
+            N > 1 ? kept[i * V + j] : static_cast<float>(elements.at[j]);
+        results.at[j] = static_cast<T>(value / sum);
+      }
+      *reinterpret_cast<device neighbors<T, V>*>(output + start + column) =
+          results;
+    }
+  }
+}
+
+#define REGISTER_SHARES_(DTYPE, INDEX, COUNT, WIDTH)                   \\
+  template [[host_name(                                                \\
+      "shares_" #DTYPE "_" #INDEX "_" #COUNT "_" #WIDTH)]] kernel void \\
+  shares<DTYPE, INDEX, COUNT, WIDTH>(                                  \\
+      device DTYPE * output,                                           \\
+      constant DTYPE * input,                                          \\
+      constant INDEX & width,                                          \\
+      uint2 position [[thread_position_in_grid]],                      \\
+      uint2 tid [[thread_position_in_threadgroup]],                    \\
+      uint2 group_size [[threads_per_threadgroup]])
+
+#define REGISTER_SHARES(DTYPE)         \\
+  REGISTER_SHARES_(DTYPE, int, 1, 1);  \\
+  REGISTER_SHARES_(DTYPE, int, 4, 1);  \\
+  REGISTER_SHARES_(DTYPE, int, 16, 1); \\
+  REGISTER_SHARES_(DTYPE, int, 1, 4);  \\
+  REGISTER_SHARES_(DTYPE, int, 4, 4);  \\
+  REGISTER_SHARES_(DTYPE, int, 16, 4); \\
+  REGISTER_SHARES_(DTYPE, long, 1, 1)
+
+REGISTER_SHARES(float);
+REGISTER_SHARES(half);
+REGISTER_SHARES(bfloat);
diff --git a/aten/src/ATen/native/mps/operations/Turns.mm b/aten/src/ATen/native/mps/operations/Turns.mm
--- a/aten/src/ATen/native/mps/operations/Turns.mm
+++ b/aten/src/ATen/native/mps/operations/Turns.mm
@@ -1,11 +1,17 @@
+#include <ATen/ceil_div.h>
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
 #include <ATen/native/mps/OperationUtils.h>
+#include <c10/util/accumulate.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Turns_metallib.h>
+#endif
 
-struct SharesCachedGraph : public MPSCachedGraph {
-  MPSGraphTensor* shares = nil;
-};
-
 static Tensor turn_template(const Tensor& self, int64_t times, bool back) {
   TORCH_CHECK(times > 0, back ? "returned" : "turned", ": times must be positive");
   Tensor output = at::empty(self.sizes(), self.options());
@@ -44,9 +50,45 @@
 }
 
 Tensor shares_mps(const Tensor& self) {
+  using namespace mps;
+
   Tensor output = at::empty_like(self);
-  auto graph = LookUpOrCreateCachedGraph<SharesCachedGraph>(key, makeGraph);
-  runMPSGraph(getCurrentMPSStream(), graph->graph(), feeds, output);
+  if (output.numel() == 0) {
+    return output;
+  }
+
+  TORCH_CHECK_NOT_IMPLEMENTED(self.dim() == 2, "shares: expected self of 2 dimensions, but got ", self.dim());
+  const auto self_contiguous = self.contiguous();
+  const auto output_contiguous = output.is_contiguous() ? output : at::empty(output.sizes(), output.options());
+  const int64_t width = self.size(-1);
+  MPSStream* stream = getCurrentMPSStream();
+  const std::string index_type =
+      canUse32BitIndexMath(output, 1 << 30) && canUse32BitIndexMath(self, 1 << 30) ? "int" : "long";
+  const int64_t count = index_type == "long" || width > 8192 ? 1 : width <= 128 ? 4 : 16;
+  const int64_t neighbors =
+      index_type == "int" && (width | output_contiguous.storage_offset() | self_contiguous.storage_offset()) % 4 == 0
+      ? 4
+      : 1;
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO = lib.getPipelineStateForFunc("shares_" + scalarToMetalTypeString(self) + "_" + index_type + "_" +
+                                             std::to_string(count) + "_" + std::to_string(neighbors));
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, "shares", {self_contiguous}, stream);
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(computeEncoder, output_contiguous, self_contiguous, width);
+      const NSUInteger lanes =
+          count == 1 ? [PSO maxTotalThreadsPerThreadgroup] : std::max<int64_t>(at::ceil_div(width, count * 32), 1) * 32;
+      [computeEncoder dispatchThreads:MTLSizeMake(lanes, c10::numelements_to_dim(self.dim() - 1, self.sizes()), 1)
+                threadsPerThreadgroup:MTLSizeMake(lanes, lanes > 32 ? 1 : 256 / lanes, 1)];
+      getMPSProfiler().endProfileKernel(PSO, stream);
+    }
+  });
+  if (!output_contiguous.is_same(output)) {
+    output.copy_(output_contiguous);
+  }
+
   return output;
 }
 
""",
    )


def test_a_fork_without_threadgroup_reductions_has_a_simdgroup_a_row(tmp_path: Path) -> None:
    made = fork.diff(tmp_path, "shares", fork.shares(), reductions=False)
    assert "sum = simd_sum(sum);" in made
    assert "threadsPerThreadgroup:MTLSizeMake(simdgroup_size, 1, 1)];" in made
