"""The port of a concatenation: its whole diff, on a copy of the embedded fork."""

from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.dtypes import FLOAT, HALF
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.concatenation import Concatenation
from porter.plan.plan import Plan
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROWS = """
- func: joined.out(Tensor[] tensors, int dim=0, *, Tensor(a!) out) -> Tensor(a!)
  structured: True
  precomputed:
    - dim -> int dim, int valid, bool all_same_dtype
  dispatch:
    CPU: joined_out_cpu
    MPS: joined_out_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

TORCH_IMPL_FUNC(joined_out_mps)
(const ITensorListRef& inputs, int64_t dimension, int64_t valid, bool all_same_dtype, const Tensor& out) {
  using namespace mps;
  TORCH_CHECK(inputs.size() > 0, "what the meta function has checked");
  if (needsGather(out)) {
    out.unsafeGetTensorImpl()->empty_tensor_restride(MemoryFormat::Contiguous);
  }
  runMPSGraph(getCurrentMPSStream(), makeGraph(dimension), feeds, out);
}

} // namespace at::native
"""
JOINED = Concatenation("tensors", "dim", (FLOAT, HALF))


def plan(folder: Path, host: str = HOST) -> Plan:
    copy = fork.copy_fork(folder)
    (copy.root / OPERATIONS / "Joins.mm").write_text(host)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    programs = FormProgram("joined.out", JOINED)
    return plan_operator(Checkout(copy.root, "named"), "joined", programs=lambda row: programs)


def test_a_concatenation(tmp_path: Path) -> None:
    """The meta function checks and resizes: of the row's own code, the launches alone are left."""
    assert_expected_inline(
        plan(tmp_path).changes.diff(),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Joins.metal b/aten/src/ATen/native/mps/kernels/Joins.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Joins.metal
@@ -0,0 +1,59 @@
+#include <metal_stdlib>
+
+using namespace metal;
+
+template <typename T, typename index_t>
+kernel void joined(
+    device T* output,
+    constant T* input,
+    constant long* sizes,
+    constant long* output_strides,
+    constant long* input_strides,
+    constant long& ndim,
+    constant long& count,
+    uint tid [[thread_position_in_grid]]) {
+  // Sizes and strides are read once for four elements
+  const long threads = (count + 3) / 4;
+  vec<index_t, 4> rest =
+      index_t(tid) + index_t(threads) * vec<index_t, 4>(0, 1, 2, 3);
+  vec<index_t, 4> output_offset = 0, input_offset = 0;
+  for (long d = ndim - 1; d >= 0; d--) {
+    const vec<index_t, 4> i = rest % index_t(sizes[d]);
+    rest /= index_t(sizes[d]);
+    output_offset += i * index_t(output_strides[d]);
+    input_offset += i * index_t(input_strides[d]);
+  }
+  for (uint e = 0; e < 4; e++) {
+    if (tid + e * threads < count) {
+      output[output_offset[e]] = input[input_offset[e]];
+    }
+  }
+}
+
+#define REGISTER_JOINED_(DTYPE, INDEX)                            \\
+  template [[host_name("joined_" #DTYPE "_" #INDEX)]] kernel void \\
+  joined<DTYPE, INDEX>(                                           \\
+      device DTYPE * output,                                      \\
+      constant DTYPE * input,                                     \\
+      constant long* sizes,                                       \\
+      constant long* output_strides,                              \\
+      constant long* input_strides,                               \\
+      constant long& ndim,                                        \\
+      constant long& count,                                       \\
+      uint tid [[thread_position_in_grid]])
+
+#define REGISTER_JOINED(DTYPE)  \\
+  REGISTER_JOINED_(DTYPE, int); \\
+  REGISTER_JOINED_(DTYPE, long)
+
+REGISTER_JOINED(float);
+REGISTER_JOINED(half);
+REGISTER_JOINED(bfloat);
+REGISTER_JOINED(long);
+REGISTER_JOINED(int);
+REGISTER_JOINED(short);
+REGISTER_JOINED(uchar);
+REGISTER_JOINED(char);
+REGISTER_JOINED(bool);
+REGISTER_JOINED(float2);
+REGISTER_JOINED(half2);
diff --git a/aten/src/ATen/native/mps/operations/Joins.mm b/aten/src/ATen/native/mps/operations/Joins.mm
--- a/aten/src/ATen/native/mps/operations/Joins.mm
+++ b/aten/src/ATen/native/mps/operations/Joins.mm
@@ -1,15 +1,46 @@
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Joins_metallib.h>
+#endif
 
 TORCH_IMPL_FUNC(joined_out_mps)
 (const ITensorListRef& inputs, int64_t dimension, int64_t valid, bool all_same_dtype, const Tensor& out) {
   using namespace mps;
-  TORCH_CHECK(inputs.size() > 0, "what the meta function has checked");
-  if (needsGather(out)) {
-    out.unsafeGetTensorImpl()->empty_tensor_restride(MemoryFormat::Contiguous);
+
+  if (out.numel() == 0) {
+    return;
   }
-  runMPSGraph(getCurrentMPSStream(), makeGraph(dimension), feeds, out);
+
+  MPSStream* stream = getCurrentMPSStream();
+  int64_t start = 0;
+  for (const Tensor& tensor : inputs) {
+    if (tensor.numel() == 0) {
+      continue;
+    }
+    const auto from = tensor.to(out.scalar_type());
+    const auto part = out.narrow(dimension, start, tensor.size(dimension));
+    start += tensor.size(dimension);
+    const std::string index_type = canUse32BitIndexMath(part) && canUse32BitIndexMath(from) ? "int" : "long";
+    dispatch_sync_with_rethrow(stream->queue(), ^() {
+      @autoreleasepool {
+        auto computeEncoder = stream->commandEncoder();
+        auto PSO = lib.getPipelineStateForFunc("joined_" + scalarToMetalTypeString(part) + "_" + index_type);
+        // this function call is a no-op if MPS Profiler is not enabled
+        getMPSProfiler().beginProfileKernel(PSO, "joined", {from}, stream);
+        [computeEncoder setComputePipelineState:PSO];
+        mtl_setArgs(computeEncoder, part, from, from.sizes(), part.strides(), from.strides(), from.dim(), from.numel());
+        mtl_dispatch1DJob(computeEncoder, PSO, (from.numel() + 3) / 4);
+        getMPSProfiler().endProfileKernel(PSO, stream);
+      }
+    });
+  }
 }
 
 } // namespace at::native
""",
    )


def test_other_parameters_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PorterError) as refused:
        plan(tmp_path, HOST.replace("int64_t valid, ", ""))
    assert "PTR371" in (refused.value.code, *str(refused.value.hint).split())
