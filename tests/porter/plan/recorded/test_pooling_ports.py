"""Ports of windows: a structured row's whole host diff, and the lists of a function that has variables for them."""

from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.dtypes import FLOAT, HALF
from porter.core.errors import PorterError
from porter.core.layout import METAL_HEADERS, NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.pooling import Pooled, Pooling
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROWS = """
- func: mean_windows.out(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool include=True, int? divisor=None, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  precomputed:
    - kernel_size -> int kH, int kW
    - padding -> int padH, int padW
  dispatch:
    CPU: mean_windows_out_cpu
    MPS: mean_windows_out_mps

- func: top_windows_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] padding, int[2] dilation) -> Tensor
  dispatch:
    MPS: top_windows_backward_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

TORCH_IMPL_FUNC(mean_windows_out_mps)
(const Tensor& input,
 int64_t kH,
 int64_t kW,
 IntArrayRef stride,
 int64_t padH,
 int64_t padW,
 bool include,
 std::optional<int64_t> divisor,
 const Tensor& output) {
  if (include) {
    padH = padW = 0;
  }
  mps::runMPSGraph(getCurrentMPSStream(), makeGraph(kH, kW, padH, padW), feeds, output);
}

Tensor top_windows_backward_mps(const Tensor& grad_output,
                                const Tensor& input,
                                IntArrayRef kernel_size,
                                IntArrayRef stride,
                                IntArrayRef padding,
                                IntArrayRef dilation) {
  using namespace mps;
  const int kH = safe_downcast<int, int64_t>(kernel_size[0]);
  const int kW = kernel_size.size() == 1 ? kH : safe_downcast<int, int64_t>(kernel_size[1]);
  TORCH_CHECK(kH > 0 && kW > 0, "top_windows: no window");
  Tensor grad_input = at::empty(input.sizes(), input.options());
  runMPSGraph(getCurrentMPSStream(), makeGraph(kH, kW), feeds, grad_input);
  return grad_input;
}

} // namespace at::native
"""
LISTS = ("kernel_size", "stride", "padding")
MEAN = Pooling(Pooled.AVERAGE, "self", *LISTS, "", "include", "divisor", dtypes=(FLOAT, HALF))
TOP = Pooling(Pooled.MAXIMUM, "self", *LISTS, "dilation", gradient="grad_output", dtypes=(FLOAT, HALF))

ATOMIC = """template <> struct AtomicType<float> {};
template <typename T> using AtomicType_t = typename AtomicType<T>::type;
"""


def write_host_diff(folder: Path, op: str, found: Pooling, rows: str = ROWS) -> str:
    """The changes of the host file."""
    copy = fork.copy_fork(folder)
    (copy.root / OPERATIONS / "Windows.mm").write_text(HOST)
    file = copy.root / NATIVE_FUNCTIONS
    file.write_text(file.read_text() + rows)
    (copy.root / METAL_HEADERS / "atomic.h").write_text(ATOMIC)
    programs = FormProgram(op, found)
    diff = plan_operator(Checkout(copy.root, "named"), op, programs=lambda row: programs).changes.diff()
    return "diff --git" + next(each for each in diff.split("diff --git") if "Windows.mm" in each)


def test_a_structured_row_is_its_launch(tmp_path: Path) -> None:
    """Its meta function has checked the arguments; numbers that torchgen passes are those of the lists."""
    assert_expected_inline(
        write_host_diff(tmp_path, "mean_windows", MEAN),
        """\
diff --git a/aten/src/ATen/native/mps/operations/Windows.mm b/aten/src/ATen/native/mps/operations/Windows.mm
--- a/aten/src/ATen/native/mps/operations/Windows.mm
+++ b/aten/src/ATen/native/mps/operations/Windows.mm
@@ -1,6 +1,14 @@
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Windows_metallib.h>
+#endif
 
 TORCH_IMPL_FUNC(mean_windows_out_mps)
 (const Tensor& input,
@@ -12,10 +20,39 @@
  bool include,
  std::optional<int64_t> divisor,
  const Tensor& output) {
-  if (include) {
-    padH = padW = 0;
+  using namespace mps;
+
+  if (output.numel() == 0) {
+    return;
   }
-  mps::runMPSGraph(getCurrentMPSStream(), makeGraph(kH, kW, padH, padW), feeds, output);
+
+  const std::array<int64_t, 2> window_stride{stride.empty() ? kH : stride[0], stride.empty() ? kW : stride.back()};
+  MPSStream* stream = getCurrentMPSStream();
+  const std::string index_type = canUse32BitIndexMath(output) && canUse32BitIndexMath(input) ? "int" : "long";
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO = lib.getPipelineStateForFunc("mean_windows_" + scalarToMetalTypeString(input) + "_" + index_type);
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, "mean_windows", {input}, stream);
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(computeEncoder,
+                  output,
+                  input,
+                  output.sizes(),
+                  input.sizes(),
+                  output.strides(),
+                  input.strides(),
+                  output.dim(),
+                  std::array<int64_t, 2>{kH, kW},
+                  window_stride,
+                  std::array<int64_t, 2>{padH, padW},
+                  include,
+                  divisor.value_or(0));
+      mtl_dispatch1DJob(computeEncoder, PSO, output.numel());
+      getMPSProfiler().endProfileKernel(PSO, stream);
+    }
+  });
 }
 
 Tensor top_windows_backward_mps(const Tensor& grad_output,
""",
    )


def test_a_function_keeps_its_checks_and_its_variables(tmp_path: Path) -> None:
    assert_expected_inline(
        write_host_diff(tmp_path, "top_windows_backward", TOP),
        """\
diff --git a/aten/src/ATen/native/mps/operations/Windows.mm b/aten/src/ATen/native/mps/operations/Windows.mm
--- a/aten/src/ATen/native/mps/operations/Windows.mm
+++ b/aten/src/ATen/native/mps/operations/Windows.mm
@@ -1,6 +1,15 @@
+#include <ATen/Context.h>
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Windows_metallib.h>
+#endif
 
 TORCH_IMPL_FUNC(mean_windows_out_mps)
 (const Tensor& input,
@@ -29,7 +38,49 @@
   const int kW = kernel_size.size() == 1 ? kH : safe_downcast<int, int64_t>(kernel_size[1]);
   TORCH_CHECK(kH > 0 && kW > 0, "top_windows: no window");
   Tensor grad_input = at::empty(input.sizes(), input.options());
-  runMPSGraph(getCurrentMPSStream(), makeGraph(kH, kW), feeds, grad_input);
+  if (grad_input.numel() == 0) {
+    return grad_input;
+  }
+
+  TORCH_CHECK(grad_output.scalar_type() == input.scalar_type(),
+              "Expected grad_output to have dtype ",
+              input.scalar_type(),
+              ", but got ",
+              grad_output.scalar_type());
+  at::globalContext().alertNotDeterministic("top_windows_backward_mps");
+  grad_input.zero_();
+  const std::array<int64_t, 2> window_stride{stride.empty() ? kH : stride[0], stride.empty() ? kW : stride.back()};
+  MPSStream* stream = getCurrentMPSStream();
+  const std::string index_type =
+      canUse32BitIndexMath(grad_input) && canUse32BitIndexMath(grad_output) && canUse32BitIndexMath(input) ? "int"
+                                                                                                           : "long";
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO =
+          lib.getPipelineStateForFunc("top_windows_backward_" + scalarToMetalTypeString(input) + "_" + index_type);
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, "top_windows_backward", {grad_output, input}, stream);
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(computeEncoder,
+                  grad_input,
+                  grad_output,
+                  input,
+                  grad_output.sizes(),
+                  input.sizes(),
+                  grad_input.strides(),
+                  grad_output.strides(),
+                  input.strides(),
+                  grad_output.dim(),
+                  std::array<int64_t, 2>{kH, kW},
+                  window_stride,
+                  std::array<int64_t, 2>{padding[0], padding.back()},
+                  std::array<int64_t, 2>{dilation[0], dilation.back()});
+      mtl_dispatch1DJob(computeEncoder, PSO, grad_output.numel());
+      getMPSProfiler().endProfileKernel(PSO, stream);
+    }
+  });
+
   return grad_input;
 }
 
""",
    )


def test_other_parameters_than_the_schema_has(tmp_path: Path) -> None:
    with pytest.raises(PorterError, match="mean_windows_out_mps takes other arguments") as error:
        write_host_diff(tmp_path, "mean_windows", MEAN, ROWS.replace("    - padding -> int padH, int padW\n", ""))
    assert error.value.code == "PTR371"


def test_an_argument_that_the_function_of_an_older_release_lacks_is_named(tmp_path: Path) -> None:
    rows = ROWS.replace("int[2] padding, int[2] dilation)", "int[2] padding, int[2] dilation, bool ceil_mode=False)")
    with pytest.raises(PorterError, match=r"arguments than top_windows_backward has, as `ceil_mode`\n") as error:
        write_host_diff(tmp_path, "top_windows_backward", TOP, rows)
    assert error.value.code == "PTR371"
