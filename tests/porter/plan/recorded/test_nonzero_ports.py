"""The port of a row that finds nonzero elements."""

from pathlib import Path

from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.dtypes import FLOAT
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.unique import Nonzero
from porter.plan.planner import plan_operator
from porter.verdict.suite.context import Context
from porter.verdict.verify import target_of
from tests.porter.plan.recorded import fork

ROWS = """
- func: found.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: found_out_cpu
    MPS: found_out_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

Tensor& found_out_mps(const Tensor& self, Tensor& out) {
  using namespace mps;
  const auto total = at::count_nonzero(self).item<int64_t>();
  at::native::resize_output(out, {total, self.dim()});
  runMPSGraph(getCurrentMPSStream(), makeGraph(self), feeds, out);
  return out;
}

} // namespace at::native
"""


def test_a_row_that_finds_elements(tmp_path: Path) -> None:
    copy = fork.copy_fork(tmp_path)
    (copy.root / OPERATIONS / "Finds.mm").write_text(HOST)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    places = FormProgram("found.out", Nonzero("self", (FLOAT,)))
    plan = plan_operator(Checkout(copy.root, "named"), "found", programs=lambda row: places)
    assert_expected_inline(
        plan.changes.diff(),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Finds.metal b/aten/src/ATen/native/mps/kernels/Finds.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Finds.metal
@@ -0,0 +1,143 @@
+#include <metal_stdlib>
+
+using namespace metal;
+
+// Whether there is an element of this index, and it is not zero
+template <typename T, typename index_t>
+inline bool is_nonzero(
+    constant T* input,
+    index_t index,
+    constant long* sizes,
+    constant long* strides,
+    long ndim,
+    long numel) {
+  index_t rest = index;
+  index_t offset = 0;
+  for (long d = ndim - 1; d >= 0; d--) {
+    offset += rest % index_t(sizes[d]) * index_t(strides[d]);
+    rest /= index_t(sizes[d]);
+  }
+  return index < numel && input[offset] != T(0);
+}
+
+// The sum of the values of a threadgroup up to that of each thread
+inline uint scan_threadgroup(
+    threadgroup uint* sums,
+    uint value,
+    uint tid,
+    uint group_size) {
+  sums[tid] = value;
+  threadgroup_barrier(mem_flags::mem_threadgroup);
+  for (uint offset = 1; offset < group_size; offset *= 2) {
+    const uint before = tid >= offset ? sums[tid - offset] : 0;
+    threadgroup_barrier(mem_flags::mem_threadgroup);
+    sums[tid] += before;
+    threadgroup_barrier(mem_flags::mem_threadgroup);
+  }
+  return sums[tid];
+}
+
+template <typename T, typename index_t>
+kernel void found_count(
+    device int* counts,
+    constant T* input,
+    constant long* sizes,
+    constant long* strides,
+    constant long& ndim,
+    constant long& numel,
+    uint group [[threadgroup_position_in_grid]],
+    uint tid [[thread_position_in_threadgroup]],
+    uint group_size [[threads_per_threadgroup]]) {
+  threadgroup uint sums[1024];
+  const index_t index = index_t(group) * group_size + tid;
+  const bool is_found = is_nonzero(input, index, sizes, strides, ndim, numel);
+  const uint rank = scan_threadgroup(sums, is_found, tid, group_size);
+  if (tid == group_size - 1) {
+    counts[group] = rank;
+  }
+}
+
+#define REGISTER_FOUND_COUNT_(DTYPE, INDEX)                            \\
+  template [[host_name("found_count_" #DTYPE "_" #INDEX)]] kernel void \\
+  found_count<DTYPE, INDEX>(                                           \\
+      device int* counts,                                              \\
+      constant DTYPE* input,                                           \\
+      constant long* sizes,                                            \\
+      constant long* strides,                                          \\
+      constant long& ndim,                                             \\
+      constant long& numel,                                            \\
+      uint group [[threadgroup_position_in_grid]],                     \\
+      uint tid [[thread_position_in_threadgroup]],                     \\
+      uint group_size [[threads_per_threadgroup]])
+
+#define REGISTER_FOUND_COUNT(DTYPE)  \\
+  REGISTER_FOUND_COUNT_(DTYPE, int); \\
+  REGISTER_FOUND_COUNT_(DTYPE, long)
+
+REGISTER_FOUND_COUNT(float);
+REGISTER_FOUND_COUNT(half);
+REGISTER_FOUND_COUNT(bfloat);
+REGISTER_FOUND_COUNT(long);
+REGISTER_FOUND_COUNT(int);
+REGISTER_FOUND_COUNT(short);
+REGISTER_FOUND_COUNT(uchar);
+REGISTER_FOUND_COUNT(char);
+REGISTER_FOUND_COUNT(bool);
+
+template <typename T, typename index_t>
+kernel void found(
+    device long* output,
+    constant int* ends,
+    constant T* input,
+    constant long* sizes,
+    constant long* strides,
+    constant long& ndim,
+    constant long& numel,
+    constant long* output_strides,
+    uint group [[threadgroup_position_in_grid]],
+    uint tid [[thread_position_in_threadgroup]],
+    uint group_size [[threads_per_threadgroup]]) {
+  threadgroup uint sums[1024];
+  const index_t index = index_t(group) * group_size + tid;
+  const bool is_found = is_nonzero(input, index, sizes, strides, ndim, numel);
+  const uint rank = scan_threadgroup(sums, is_found, tid, group_size);
+  if (!is_found) {
+    return;
+  }
+  const index_t row = ends[group] - sums[group_size - 1] + rank - 1;
+  index_t rest = index;
+  for (long d = ndim - 1; d >= 0; d--) {
+    output[row * index_t(output_strides[0]) + d * index_t(output_strides[1])] =
+        rest % index_t(sizes[d]);
+    rest /= index_t(sizes[d]);
+  }
+}
+
+#define REGISTER_FOUND_(DTYPE, INDEX)                            \\
+  template [[host_name("found_" #DTYPE "_" #INDEX)]] kernel void \\
+  found<DTYPE, INDEX>(                                           \\
+      device long* output,                                       \\
+      constant int* ends,                                        \\
+      constant DTYPE* input,                                     \\
+      constant long* sizes,                                      \\
+      constant long* strides,                                    \\
+      constant long& ndim,                                       \\
+      constant long& numel,                                      \\
+      constant long* output_strides,                             \\
+      uint group [[threadgroup_position_in_grid]],               \\
+      uint tid [[thread_position_in_threadgroup]],               \\
+      uint group_size [[threads_per_threadgroup]])
+
+#define REGISTER_FOUND(DTYPE)  \\
+  REGISTER_FOUND_(DTYPE, int); \\
+  REGISTER_FOUND_(DTYPE, long)
+
+REGISTER_FOUND(float);
+REGISTER_FOUND(half);
+REGISTER_FOUND(bfloat);
+REGISTER_FOUND(long);
+REGISTER_FOUND(int);
+REGISTER_FOUND(short);
+REGISTER_FOUND(uchar);
+REGISTER_FOUND(char);
+REGISTER_FOUND(bool);
diff --git a/aten/src/ATen/native/mps/operations/Finds.mm b/aten/src/ATen/native/mps/operations/Finds.mm
--- a/aten/src/ATen/native/mps/operations/Finds.mm
+++ b/aten/src/ATen/native/mps/operations/Finds.mm
@@ -1,12 +1,60 @@
+#include <ATen/ceil_div.h>
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Finds_metallib.h>
+#endif
 
 Tensor& found_out_mps(const Tensor& self, Tensor& out) {
   using namespace mps;
   const auto total = at::count_nonzero(self).item<int64_t>();
   at::native::resize_output(out, {total, self.dim()});
-  runMPSGraph(getCurrentMPSStream(), makeGraph(self), feeds, out);
+  if (out.numel() == 0) {
+    return out;
+  }
+
+  MPSStream* stream = getCurrentMPSStream();
+  const auto type =
+      scalarToMetalTypeString(self) + (canUse32BitIndexMath(self) && canUse32BitIndexMath(out) ? "_int" : "_long");
+  auto countPSO = lib.getPipelineStateForFunc("found_count_" + type);
+  auto PSO = lib.getPipelineStateForFunc("found_" + type);
+  const auto group_size =
+      std::min<int64_t>(1024, std::min([countPSO maxTotalThreadsPerThreadgroup], [PSO maxTotalThreadsPerThreadgroup]));
+  const auto groups = at::ceil_div(self.numel(), group_size);
+  const auto counts = self.new_empty({groups}, self.options().dtype(kInt));
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(countPSO, "found_count", {self}, stream);
+      [computeEncoder setComputePipelineState:countPSO];
+      mtl_setArgs(computeEncoder, counts, self, self.sizes(), self.strides(), self.dim(), self.numel());
+      [computeEncoder dispatchThreadgroups:MTLSizeMake(groups, 1, 1)
+                     threadsPerThreadgroup:MTLSizeMake(group_size, 1, 1)];
+      getMPSProfiler().endProfileKernel(countPSO, stream);
+    }
+  });
+  const auto ends = counts.cumsum(0, kInt);
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, "found", {self}, stream);
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(
+          computeEncoder, out, ends, self, self.sizes(), self.strides(), self.dim(), self.numel(), out.strides());
+      [computeEncoder dispatchThreadgroups:MTLSizeMake(groups, 1, 1)
+                     threadsPerThreadgroup:MTLSizeMake(group_size, 1, 1)];
+      getMPSProfiler().endProfileKernel(PSO, stream);
+    }
+  });
+
   return out;
 }
 
""",
    )
    assert plan.elsewhere == ("complex64", "complex32") == target_of(plan, "found").elsewhere


def test_a_type_that_is_computed_elsewhere_needs_no_kernel() -> None:
    context = Context(bases=("found",), kernels=("found",), elsewhere=("complex64",))
    assert context.demands("float32") and not context.demands("complex64")
