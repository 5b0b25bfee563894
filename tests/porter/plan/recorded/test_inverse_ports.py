"""The port of a row that inverts matrices."""

from pathlib import Path

from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.contraction import Inverse
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROWS = """
- func: inverted_ex.inverse(Tensor A, *, bool check_errors=False, Tensor(a!) inverse, Tensor(b!) info) -> (Tensor(a!) inverse, Tensor(b!) info)
  dispatch:
    CPU: inverted_out_cpu
    MPS: inverted_out_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

std::tuple<Tensor&, Tensor&> inverted_out_mps(const Tensor& A, bool check_errors, Tensor& inverse, Tensor& info) {
  using namespace mps;
  info.zero_();
  if (A.numel() == 0) {
    return {inverse, info};
  }
  runMPSGraph(getCurrentMPSStream(), makeGraph(A), feeds, inverse);
  return {inverse, info};
}

} // namespace at::native
"""


def test_a_row_that_inverts_matrices(tmp_path: Path) -> None:
    copy = fork.copy_fork(tmp_path)
    (copy.root / OPERATIONS / "Inverts.mm").write_text(HOST)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    form = Inverse("A", "check_errors")
    plan = plan_operator(
        Checkout(copy.root, "named"), "inverted_ex", programs=lambda row: FormProgram("inverted_ex.inverse", form)
    )
    _, host = plan.changes.diff().split("diff --git ")[1:]
    assert "#include <ATen/ops/_linalg_check_errors.h>" in host
    assert_expected_inline(
        host[host.index("   using namespace mps;") :],
        """\
   using namespace mps;
@@ -8,7 +18,30 @@
   if (A.numel() == 0) {
     return {inverse, info};
   }
-  runMPSGraph(getCurrentMPSStream(), makeGraph(A), feeds, inverse);
+  const int64_t size = A.size(-1), count = A.numel() / (size * size);
+  const auto work = A.clone(at::MemoryFormat::Contiguous);
+  const auto factors = A.new_empty({count, size});
+  const auto order = A.new_empty({count, size}, kInt);
+  const auto inverses = inverse.dim() > 2 ? inverse.flatten(0, -3) : inverse.unsqueeze(0);
+  const int64_t threads = std::min<int64_t>(256, at::ceil_div<int64_t>(size * size, 32) * 32);
+  MPSStream* stream = getCurrentMPSStream();
+  const std::string index_type = canUse32BitIndexMath(work) && canUse32BitIndexMath(inverses) ? "int" : "long";
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO = lib.getPipelineStateForFunc("inverted_ex_" + scalarToMetalTypeString(inverse) + "_" + index_type);
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, "inverted_ex", {A}, stream);
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(computeEncoder, info, inverses, work, factors, order, size, inverses.strides());
+      [computeEncoder dispatchThreadgroups:MTLSizeMake(count, 1, 1) threadsPerThreadgroup:MTLSizeMake(threads, 1, 1)];
+      getMPSProfiler().endProfileKernel(PSO, stream);
+    }
+  });
+  if (check_errors) {
+    at::_linalg_check_errors(info, "inverted.ex", A.dim() == 2);
+  }
+
   return {inverse, info};
 }
 
""",
    )
