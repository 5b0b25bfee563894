"""Ports of what is computed of scalars alone: in the type of the result, wherever host code runs the graph."""

from pathlib import Path

from expecttest import assert_expected_inline

from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import scalars


def diff(folder: Path, op: str) -> str:
    """The diff of a port."""
    programs = {"set_.Scalar": scalars.set_all(), "numbered.out": scalars.numbered()}
    plan = plan_operator(scalars.copy_fork(folder), op, programs=lambda served: programs.get(served.function.name))
    assert plan.complete
    return plan.changes.diff()


def test_a_helper_is_ported_for_the_call_that_passes_on_the_arguments(tmp_path: Path) -> None:
    assert_expected_inline(
        diff(tmp_path, "set_.Scalar"),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Scalars.metal b/aten/src/ATen/native/mps/kernels/Scalars.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Scalars.metal
@@ -0,0 +1,58 @@
+#include <metal_stdlib>
+
+using namespace metal;
+
+// The offset of an element by its index, which is not divided by the size of
+// the last dimension
+template <typename index_t>
+inline index_t strided_offset(
+    index_t index,
+    constant long* sizes,
+    constant long* strides,
+    uint ndim) {
+  index_t offset = 0;
+  for (uint i = 0; i + 1 < ndim; i++) {
+    const index_t outer = index / index_t(sizes[i]);
+    offset += (index - outer * index_t(sizes[i])) * index_t(strides[i]);
+    index = outer;
+  }
+  return offset + index * index_t(strides[ndim - 1]);
+}
+
+template <typename T, typename index_t>
+kernel void set(
+    device T* output,
+    constant long* sizes,
+    constant long* strides,
+    constant uint& ndim,
+    constant T& value,
+    uint tid [[thread_position_in_grid]]) {
+  const index_t i = index_t(tid);
+  output[strided_offset(i, sizes, strides, ndim)] = value;
+}
+
+#define REGISTER_SET_(DTYPE, INDEX)                            \\
+  template [[host_name("set_" #DTYPE "_" #INDEX)]] kernel void \\
+  set<DTYPE, INDEX>(                                           \\
+      device DTYPE * output,                                   \\
+      constant long* sizes,                                    \\
+      constant long* strides,                                  \\
+      constant uint& ndim,                                     \\
+      constant DTYPE& value,                                   \\
+      uint tid [[thread_position_in_grid]])
+
+#define REGISTER_SET(DTYPE)  \\
+  REGISTER_SET_(DTYPE, int); \\
+  REGISTER_SET_(DTYPE, long)
+
+REGISTER_SET(float);
+REGISTER_SET(half);
+REGISTER_SET(bfloat);
+REGISTER_SET(long);
+REGISTER_SET(int);
+REGISTER_SET(short);
+REGISTER_SET(uchar);
+REGISTER_SET(char);
+REGISTER_SET(bool);
+REGISTER_SET(float2);
+REGISTER_SET(half2);
diff --git a/aten/src/ATen/native/mps/operations/Scalars.mm b/aten/src/ATen/native/mps/operations/Scalars.mm
--- a/aten/src/ATen/native/mps/operations/Scalars.mm
+++ b/aten/src/ATen/native/mps/operations/Scalars.mm
@@ -1,23 +1,71 @@
+#include <ATen/core/DimVector.h>
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
+#include <ATen/native/ReduceOpsUtils.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Scalars_metallib.h>
+#endif
+
+namespace {
+// Some dimensions of a tensor, the innermost first; those that one stride goes over are one.
+struct MergedDims {
+  DimVector sizes{1};
+  DimVector strides{0};
+};
+} // namespace
+
+static MergedDims merge_dims(const Tensor& tensor, const DimMask& mask) {
+  MergedDims dims;
+  for (int64_t dim = tensor.dim() - 1; dim >= 0; dim--) {
+    if (!mask[dim] || tensor.size(dim) == 1) {
+      continue;
+    }
+    if (dims.sizes.back() == 1) {
+      dims.sizes.back() = tensor.size(dim);
+      dims.strides.back() = tensor.stride(dim);
+    } else if (tensor.stride(dim) == dims.sizes.back() * dims.strides.back()) {
+      dims.sizes.back() *= tensor.size(dim);
+    } else {
+      dims.sizes.push_back(tensor.size(dim));
+      dims.strides.push_back(tensor.stride(dim));
+    }
+  }
+  return dims;
+}
 
 static Tensor& set_mps_impl(Tensor& self, const Scalar& value) {
+  using namespace mps;
+
   if (self.numel() == 0) {
     return self;
   }
-  Tensor output = self;
-  bool needs_copy = false;
-  if (needsGather(self)) {
-    output = at::empty(self.sizes(), self.options());
-    needs_copy = true;
-  }
-  auto cachedGraph = LookUpOrCreateCachedGraph<MPSUnaryCachedGraph>(key, makeGraph);
-  Placeholder outputPlaceholder = Placeholder(cachedGraph->outputTensor_, needs_copy ? output : self);
-  runMPSGraph(getCurrentMPSStream(), cachedGraph->graph(), feeds, outputPlaceholder);
-  if (needs_copy) {
-    self.copy_(output);
-  }
+  const auto dims = merge_dims(self, DimMask().set());
+  MPSStream* stream = getCurrentMPSStream();
+  const std::string index_type = canUse32BitIndexMath(self) ? "int" : "long";
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO = lib.getPipelineStateForFunc("set_" + scalarToMetalTypeString(self) + "_" + index_type);
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, "set", {}, stream);
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(computeEncoder,
+                  self,
+                  dims.sizes,
+                  dims.strides,
+                  static_cast<uint32_t>(dims.sizes.size()),
+                  getMPSScalar(value, self.scalar_type()));
+      mtl_dispatch1DJob(computeEncoder, PSO, self.numel());
+      getMPSProfiler().endProfileKernel(PSO, stream);
+    }
+  });
+
   return self;
 }
 
""",
    )


def test_a_row_that_calls_the_function_of_another_is_ported_with_it(tmp_path: Path) -> None:
    alone, both = diff(tmp_path / "alone", "set_.Tensor"), diff(tmp_path / "both", "set_.Scalar")
    assert alone == both


def test_a_graph_in_a_dispatch_is_replaced_there(tmp_path: Path) -> None:
    assert_expected_inline(
        diff(tmp_path, "numbered.out"),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Scalars.metal b/aten/src/ATen/native/mps/kernels/Scalars.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Scalars.metal
@@ -0,0 +1,40 @@
+#include <c10/metal/utils.h>
+#include <metal_stdlib>
+
+using namespace metal;
+
+// The type that ATen accumulates in
+template <typename T>
+using acc_t = ::metal::
+    conditional_t<::metal::is_integral_v<T>, long, c10::metal::opmath_t<T>>;
+
+template <typename T, typename index_t>
+kernel void numbered(
+    device T* output,
+    constant acc_t<T>& start,
+    constant acc_t<T>& step,
+    uint tid [[thread_position_in_grid]]) {
+  const index_t i = index_t(tid);
+  output[i] = static_cast<T>(start + (static_cast<acc_t<T>>(i) * step));
+}
+
+#define REGISTER_NUMBERED_(DTYPE, INDEX)                            \\
+  template [[host_name("numbered_" #DTYPE "_" #INDEX)]] kernel void \\
+  numbered<DTYPE, INDEX>(                                           \\
+      device DTYPE * output,                                        \\
+      constant acc_t<DTYPE> & start,                                \\
+      constant acc_t<DTYPE> & step,                                 \\
+      uint tid [[thread_position_in_grid]])
+
+#define REGISTER_NUMBERED(DTYPE)  \\
+  REGISTER_NUMBERED_(DTYPE, int); \\
+  REGISTER_NUMBERED_(DTYPE, long)
+
+REGISTER_NUMBERED(float);
+REGISTER_NUMBERED(half);
+REGISTER_NUMBERED(bfloat);
+REGISTER_NUMBERED(long);
+REGISTER_NUMBERED(int);
+REGISTER_NUMBERED(short);
+REGISTER_NUMBERED(uchar);
+REGISTER_NUMBERED(char);
diff --git a/aten/src/ATen/native/mps/operations/Scalars.mm b/aten/src/ATen/native/mps/operations/Scalars.mm
--- a/aten/src/ATen/native/mps/operations/Scalars.mm
+++ b/aten/src/ATen/native/mps/operations/Scalars.mm
@@ -1,6 +1,15 @@
+#include <ATen/AccumulateType.h>
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Scalars_metallib.h>
+#endif
 
 static Tensor& set_mps_impl(Tensor& self, const Scalar& value) {
   if (self.numel() == 0) {
@@ -38,22 +47,38 @@
 }
 
 Tensor& numbered_out_mps(const Scalar& start, const Scalar& step, int64_t count, Tensor& out) {
+  using namespace mps;
+
   AT_DISPATCH_MPS_TYPES(out.scalar_type(), "numbered_mps", [&]() {
     TORCH_CHECK(step.to<scalar_t>() != 0, "numbered: step must not be zero");
     int64_t numel = out.numel();
     if (numel != count) {
       out.resize_({count});
     }
-    bool is_whole = !needsGather(out);
-    Tensor r = is_whole ? out : at::empty_like(out, LEGACY_CONTIGUOUS_MEMORY_FORMAT);
-    auto stream = getCurrentMPSStream();
-    @autoreleasepool {
-      auto cachedGraph = cache->LookUpAs<MPSUnaryCachedGraph>(key);
-      Placeholder outputPlaceholder = Placeholder(cachedGraph->outputTensor_, r);
-      runMPSGraph(stream, cachedGraph->graph(), feeds, outputPlaceholder);
+    if (out.numel() == 0) {
+      return;
     }
-    if (!is_whole) {
-      out.copy_(r);
+
+    const auto out_contiguous = out.is_contiguous() ? out : at::empty(out.sizes(), out.options());
+    MPSStream* stream = getCurrentMPSStream();
+    const std::string index_type = canUse32BitIndexMath(out) ? "int" : "long";
+    dispatch_sync_with_rethrow(stream->queue(), ^() {
+      @autoreleasepool {
+        auto computeEncoder = stream->commandEncoder();
+        auto PSO = lib.getPipelineStateForFunc("numbered_" + scalarToMetalTypeString(out) + "_" + index_type);
+        // this function call is a no-op if MPS Profiler is not enabled
+        getMPSProfiler().beginProfileKernel(PSO, "numbered", {}, stream);
+        [computeEncoder setComputePipelineState:PSO];
+        mtl_setArgs(computeEncoder,
+                    out_contiguous,
+                    getMPSScalar(start, toAccumulateType(out.scalar_type(), kMPS)),
+                    getMPSScalar(step, toAccumulateType(out.scalar_type(), kMPS)));
+        mtl_dispatch1DJob(computeEncoder, PSO, out.numel());
+        getMPSProfiler().endProfileKernel(PSO, stream);
+      }
+    });
+    if (!out_contiguous.is_same(out)) {
+      out.copy_(out_contiguous);
     }
   });
   return out;
""",
    )
