"""Ports of what resamples: a gradient's whole diff, on a copy of the embedded fork."""

from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.dtypes import FLOAT, HALF
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.resampling import Resampling, Sampling
from porter.plan.plan import Plan
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROWS = """
- func: stretched(Tensor self, int[1] output_size, float? scales=None) -> Tensor
  dispatch:
    CPU: stretched_cpu
    MPS: stretched_mps

- func: stretched_backward.grad_input(Tensor grad_output, int[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None, *, Tensor(a!) grad_input) -> Tensor(a!)
  dispatch:
    CPU: stretched_backward_out_cpu
    MPS: stretched_backward_out_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {
namespace mps {

static void stretch(const Tensor& input, std::optional<double> scale_h, std::optional<double> scale_w, const Tensor& output, bool align_corners) {
  if (input.numel() == 0) {
    return;
  }
  Tensor out;
  if (needsGather(output)) {
    out = at::empty_like(output, MemoryFormat::Contiguous);
  }
  @autoreleasepool {
    auto graph = LookUpOrCreateCachedGraph<CachedGraph>(getTensorsStringKey({input}), make(scale_h, scale_w));
    Placeholder outputPlaceholder = Placeholder(graph->outputTensor, out.has_storage() ? out : output, nil, false);
    runMPSGraph(getCurrentMPSStream(), graph->graph(), feeds, outputPlaceholder);
    if (out.has_storage()) {
      output.copy_(out);
    }
  }
}

} // namespace mps

Tensor stretched_mps(const Tensor& self, IntArrayRef output_size, std::optional<double> scales) {
  Tensor result = at::empty({self.size(0), self.size(1), output_size[0]}, self.options());
  mps::stretch(self, std::nullopt, scales, result, false);
  return result;
}

Tensor& stretched_backward_out_mps(const Tensor& grad_output, IntArrayRef output_size, bool align_corners, std::optional<double> scales_h, std::optional<double> scales_w, Tensor& grad_input) {
  mps::stretch(grad_output, scales_h, scales_w, grad_input, align_corners);
  return grad_input;
}

} // namespace at::native
"""
STRETCHED = Resampling(Sampling.NEAREST, "self", ("scales",), dtypes=(FLOAT, HALF))
BACKWARD = Resampling(
    Sampling.LINEAR, "grad_output", ("scales_h", "scales_w"), "align_corners", True, dtypes=(FLOAT, HALF)
)


def plan(folder: Path, op: str, found: Resampling, host: str = HOST) -> Plan:
    copy = fork.copy_fork(folder)
    (copy.root / OPERATIONS / "Stretch.mm").write_text(host)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    return plan_operator(Checkout(copy.root, "named"), op, programs=lambda row: FormProgram(op, found))


def test_a_gradient(tmp_path: Path) -> None:
    assert_expected_inline(
        plan(tmp_path, "stretched_backward", BACKWARD).changes.diff(),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Stretch.metal b/aten/src/ATen/native/mps/kernels/Stretch.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Stretch.metal
@@ -0,0 +1,87 @@
+#include <c10/metal/utils.h>
+#include <metal_stdlib>
+
+using namespace metal;
+
+template <typename T, typename index_t>
+[[max_total_threads_per_threadgroup(256)]] kernel void stretched_backward(
+    device T* grad_input,
+    constant T* grad_output,
+    constant long* sizes,
+    constant long* grad_output_sizes,
+    constant long* grad_input_strides,
+    constant long* grad_output_strides,
+    constant float* ratios,
+    constant bool& align_corners,
+    uint tid [[thread_position_in_grid]]) {
+  const index_t w = tid % index_t(sizes[3]);
+  index_t rest = tid / index_t(sizes[3]);
+  const index_t h = rest % index_t(sizes[2]);
+  rest /= index_t(sizes[2]);
+  const index_t c = rest % index_t(sizes[1]);
+  const index_t n = rest / index_t(sizes[1]);
+  const float shift = align_corners ? 0 : 0.5f;
+  const index_t first_h = ratios[0] > 0
+      ? max(index_t((h - 1 + shift) / ratios[0] - shift) - 2, index_t(0))
+      : 0;
+  const index_t end_h = ratios[0] > 0 && h + 1 < index_t(sizes[2])
+      ? min(index_t((h + 1 + shift) / ratios[0] - shift) + 3,
+            index_t(grad_output_sizes[2]))
+      : index_t(grad_output_sizes[2]);
+  const index_t first_w = ratios[1] > 0
+      ? max(index_t((w - 1 + shift) / ratios[1] - shift) - 2, index_t(0))
+      : 0;
+  const index_t end_w = ratios[1] > 0 && w + 1 < index_t(sizes[3])
+      ? min(index_t((w + 1 + shift) / ratios[1] - shift) + 3,
+            index_t(grad_output_sizes[3]))
+      : index_t(grad_output_sizes[3]);
+  c10::metal::opmath_t<T> sum = 0;
+  for (index_t out_h = first_h; out_h < end_h; out_h++) {
+    const float at_h =
+        min(max((out_h + shift) * ratios[0] - shift, 0.0f),
+            float(index_t(sizes[2]) - 1));
+    const float weight_h = max(1 - abs(at_h - h), 0.0f);
+    if (weight_h == 0) {
+      continue;
+    }
+    for (index_t out_w = first_w; out_w < end_w; out_w++) {
+      const float at_w =
+          min(max((out_w + shift) * ratios[1] - shift, 0.0f),
+              float(index_t(sizes[3]) - 1));
+      const float weight_w = max(1 - abs(at_w - w), 0.0f);
+      if (weight_w == 0) {
+        continue;
+      }
+      sum += weight_h * weight_w *
+          grad_output
+              [n * index_t(grad_output_strides[0]) +
+               c * index_t(grad_output_strides[1]) +
+               out_h * index_t(grad_output_strides[2]) +
+               out_w * index_t(grad_output_strides[3])];
+    }
+  }
+  grad_input
+      [n * index_t(grad_input_strides[0]) + c * index_t(grad_input_strides[1]) +
+       h * index_t(grad_input_strides[2]) +
+       w * index_t(grad_input_strides[3])] = static_cast<T>(sum);
+}
+
+#define REGISTER_STRETCHED_BACKWARD_(DTYPE, INDEX)                            \\
+  template [[host_name("stretched_backward_" #DTYPE "_" #INDEX)]] kernel void \\
+  stretched_backward<DTYPE, INDEX>(                                           \\
+      device DTYPE * grad_input,                                              \\
+      constant DTYPE * grad_output,                                           \\
+      constant long* sizes,                                                   \\
+      constant long* grad_output_sizes,                                       \\
+      constant long* grad_input_strides,                                      \\
+      constant long* grad_output_strides,                                     \\
+      constant float* ratios,                                                 \\
+      constant bool& align_corners,                                           \\
+      uint tid [[thread_position_in_grid]])
+
+#define REGISTER_STRETCHED_BACKWARD(DTYPE)  \\
+  REGISTER_STRETCHED_BACKWARD_(DTYPE, int); \\
+  REGISTER_STRETCHED_BACKWARD_(DTYPE, long)
+
+REGISTER_STRETCHED_BACKWARD(float);
+REGISTER_STRETCHED_BACKWARD(half);
diff --git a/aten/src/ATen/native/mps/operations/Stretch.mm b/aten/src/ATen/native/mps/operations/Stretch.mm
--- a/aten/src/ATen/native/mps/operations/Stretch.mm
+++ b/aten/src/ATen/native/mps/operations/Stretch.mm
@@ -1,6 +1,16 @@
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
+#include <ATen/native/UpSample.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Stretch_metallib.h>
+#endif
+
 namespace mps {
 
 static void stretch(const Tensor& input, std::optional<double> scale_h, std::optional<double> scale_w, const Tensor& output, bool align_corners) {
@@ -29,8 +39,48 @@
   return result;
 }
 
-Tensor& stretched_backward_out_mps(const Tensor& grad_output, IntArrayRef output_size, bool align_corners, std::optional<double> scales_h, std::optional<double> scales_w, Tensor& grad_input) {
-  mps::stretch(grad_output, scales_h, scales_w, grad_input, align_corners);
+Tensor& stretched_backward_out_mps(const Tensor& grad_output,
+                                   IntArrayRef output_size,
+                                   bool align_corners,
+                                   std::optional<double> scales_h,
+                                   std::optional<double> scales_w,
+                                   Tensor& grad_input) {
+  using namespace mps;
+
+  if (grad_output.numel() == 0) {
+    return grad_input;
+  }
+  if (grad_input.numel() == 0) {
+    return grad_input;
+  }
+
+  const std::array<float, 2> ratios{
+      at::native::area_pixel_compute_scale<float>(grad_input.size(2), grad_output.size(2), align_corners, scales_h),
+      at::native::area_pixel_compute_scale<float>(grad_input.size(3), grad_output.size(3), align_corners, scales_w)};
+  MPSStream* stream = getCurrentMPSStream();
+  const std::string index_type = canUse32BitIndexMath(grad_input) && canUse32BitIndexMath(grad_output) ? "int" : "long";
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO =
+          lib.getPipelineStateForFunc("stretched_backward_" + scalarToMetalTypeString(grad_input) + "_" + index_type);
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, "stretched_backward", {grad_output}, stream);
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(computeEncoder,
+                  grad_input,
+                  grad_output,
+                  grad_input.sizes(),
+                  grad_output.sizes(),
+                  grad_input.strides(),
+                  grad_output.strides(),
+                  ratios,
+                  align_corners);
+      mtl_dispatch1DJob(computeEncoder, PSO, grad_input.numel());
+      getMPSProfiler().endProfileKernel(PSO, stream);
+    }
+  });
+
   return grad_input;
 }
 
""",
    )


def test_no_memory_stands_in_for_a_result(tmp_path: Path) -> None:
    diff = plan(tmp_path, "stretched", STRETCHED).changes.diff()
    added = [line[1:].strip() for line in diff.splitlines() if line.startswith("+")]
    assert not any("needsGather" in line or "has_storage" in line or "copy_" in line for line in added)
    assert any("compute_scales_value<float>(scales, self.size(2), result.size(2))" in line for line in added)


def test_other_memory_is_not_taken_for_the_result(tmp_path: Path) -> None:
    """It is made for another reason too, and copied to the result then."""
    other = HOST.replace("if (needsGather(output)) {", "if (needsGather(output) || input.is_complex()) {")
    with pytest.raises(PorterError, match="copies to result from out, which only its graph wrote") as error:
        plan(tmp_path, "stretched", STRETCHED, other)
    assert error.value.code == "PTR359"
