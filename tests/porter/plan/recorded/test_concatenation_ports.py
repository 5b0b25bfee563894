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
@@ -0,0 +1,65 @@
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
+template <typename T, typename index_t, uint N>
+[[max_total_threads_per_threadgroup(256)]] kernel void joined(
+    device T* output,
+    constant T* input,
+    constant long* sizes,
+    constant long* output_strides,
+    constant long* input_strides,
+    constant long& ndim,
+    uint tid [[thread_position_in_grid]]) {
+  // Sizes and strides, in bytes, are read once for 4 * N elements of a row
+  const index_t columns = sizes[0], turns = (columns - 1) / (4 * N) + 1;
+  for (index_t d = 1, rest = tid / turns; d < ndim; d++) {
+    const index_t i = rest % index_t(sizes[d]);
+    rest /= index_t(sizes[d]);
+    output += i * index_t(output_strides[d] / sizeof(T));
+    input += i * index_t(input_strides[d] / sizeof(T));
+  }
+  for (uint e = 0; e < 4; e++) {
+    const index_t i = (tid % turns + e * turns) * N;
+    if (i < columns) {
+      auto to = output + i * index_t(output_strides[0] / sizeof(T));
+      auto from = input + i * index_t(input_strides[0] / sizeof(T));
+      *reinterpret_cast<device neighbors<T, N>*>(to) =
+          *reinterpret_cast<constant neighbors<T, N>*>(from);
+    }
+  }
+}
+
+#define REGISTER_JOINED_(DTYPE, INDEX, COUNT)                                \\
+  template [[host_name("joined_" #DTYPE "_" #INDEX "_" #COUNT)]] kernel void \\
+  joined<DTYPE, INDEX, COUNT>(                                               \\
+      device DTYPE * output,                                                 \\
+      constant DTYPE * input,                                                \\
+      constant long* sizes,                                                  \\
+      constant long* output_strides,                                         \\
+      constant long* input_strides,                                          \\
+      constant long& ndim,                                                   \\
+      uint tid [[thread_position_in_grid]])
+
+#define REGISTER_JOINED(DTYPE)     \\
+  REGISTER_JOINED_(DTYPE, int, 1); \\
+  REGISTER_JOINED_(DTYPE, int, 4); \\
+  REGISTER_JOINED_(DTYPE, long, 1)
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
@@ -1,15 +1,59 @@
+#include <ATen/TensorIterator.h>
+#include <ATen/ceil_div.h>
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
+    const auto iter = TensorIteratorConfig().add_output(part).add_const_input(from).build();
+    const auto sizes = iter.shape(), part_strides = iter.strides(0), from_strides = iter.strides(1);
+    const std::string index_type =
+        canUse32BitIndexMath(part, 1 << 30) && canUse32BitIndexMath(from, 1 << 30) ? "int" : "long";
+    const int64_t bytes = part.element_size();
+    int64_t multiple = sizes[0] | part.storage_offset() | from.storage_offset();
+    for (const auto d : c10::irange(1, sizes.size())) {
+      multiple |= (part_strides[d] | from_strides[d]) / bytes;
+    }
+    const int64_t count =
+        index_type == "int" && part_strides[0] == bytes && from_strides[0] == bytes && multiple % 4 == 0 ? 4 : 1;
+    dispatch_sync_with_rethrow(stream->queue(), ^() {
+      @autoreleasepool {
+        auto computeEncoder = stream->commandEncoder();
+        auto PSO = lib.getPipelineStateForFunc("joined_" + scalarToMetalTypeString(part) + "_" + index_type + "_" +
+                                               std::to_string(count));
+        // this function call is a no-op if MPS Profiler is not enabled
+        getMPSProfiler().beginProfileKernel(PSO, "joined", {from}, stream);
+        [computeEncoder setComputePipelineState:PSO];
+        mtl_setArgs(computeEncoder, part, from, sizes, part_strides, from_strides, sizes.size());
+        mtl_dispatch1DJob(computeEncoder, PSO, iter.numel() / sizes[0] * at::ceil_div(sizes[0], 4 * count));
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
