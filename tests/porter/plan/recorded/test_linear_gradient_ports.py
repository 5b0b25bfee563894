"""The port of a row whose functions make the gradients of a linear layer, one of them two."""

import re
from pathlib import Path

from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.contraction import LinearGradients
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

# What the launches of all products have in common, which the golden of products has.
LAUNCH = re.compile(r"\+ +const std::array<c10::complex<float>, 2> scales[\s\S]*?\n\+ +\}\);\n")
ROWS = """
- func: sloped(Tensor self, Tensor grad_output, Tensor weight, bool[3] output_mask) -> (Tensor, Tensor, Tensor)
  dispatch:
    MPS: sloped_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

static Tensor slope_input(IntArrayRef size, const Tensor& grad_output, const Tensor& weight) {
  using namespace mps;
  Tensor output = at::empty(size, grad_output.options());
  if (grad_output.numel() == 0) {
    return output;
  }
  runMPSGraph(getCurrentMPSStream(), makeGraph(grad_output, weight), feeds, output);
  return output;
}

static std::tuple<Tensor, Tensor> slope_weight(const Tensor& grad_output, const Tensor& input, bool has_bias) {
  using namespace mps;
  Tensor output = at::empty({grad_output.size(-1), input.size(-1)}, grad_output.options());
  Tensor bias = at::empty({grad_output.size(-1)}, grad_output.options());
  if (grad_output.numel() == 0) {
    output.zero_();
    bias.zero_();
    return std::tuple<Tensor, Tensor>{output, bias};
  }
  @autoreleasepool {
    runMPSGraph(getCurrentMPSStream(), makeGraph(grad_output, input, has_bias), feeds, output);
    return std::tuple<Tensor, Tensor>{output, bias};
  }
}

std::tuple<Tensor, Tensor, Tensor> sloped_mps(
    const Tensor& input, const Tensor& grad_output, const Tensor& weight, std::array<bool, 3> output_mask) {
  Tensor grad_input, grad_weight, grad_bias;
  if (output_mask[0]) {
    grad_input = slope_input(input.sizes(), grad_output, weight);
  }
  if (output_mask[1] || output_mask[2]) {
    std::tie(grad_weight, grad_bias) = slope_weight(grad_output, input, output_mask[2]);
  }
  return std::tuple<Tensor, Tensor, Tensor>{grad_input, grad_weight, grad_bias};
}

} // namespace at::native
"""


def test_functions_that_make_gradients_launch_products(tmp_path: Path) -> None:
    copy = fork.copy_fork(tmp_path)
    (copy.root / OPERATIONS / "Slopes.mm").write_text(HOST)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    form = LinearGradients("self", "weight", "grad_output")
    planned = plan_operator(Checkout(copy.root, "named"), "sloped", programs=lambda row: FormProgram("sloped", form))
    [host] = [each for each in planned.changes.diff().split("diff --git ") if "operations/Slopes.mm" in each]
    assert [launch.count('"sloped') for launch in LAUNCH.findall(host)] == [4, 4]
    assert_expected_inline(
        LAUNCH.sub("+ THE LAUNCH OF A PRODUCT\n", host),
        """\
a/aten/src/ATen/native/mps/operations/Slopes.mm b/aten/src/ATen/native/mps/operations/Slopes.mm
--- a/aten/src/ATen/native/mps/operations/Slopes.mm
+++ b/aten/src/ATen/native/mps/operations/Slopes.mm
@@ -1,6 +1,16 @@
+#include <ATen/ceil_div.h>
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
 #include <ATen/native/mps/OperationUtils.h>
+#include <c10/util/complex.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Slopes_metallib.h>
+#endif
 
 static Tensor slope_input(IntArrayRef size, const Tensor& grad_output, const Tensor& weight) {
   using namespace mps;
@@ -8,7 +18,89 @@
   if (grad_output.numel() == 0) {
     return output;
   }
-  runMPSGraph(getCurrentMPSStream(), makeGraph(grad_output, weight), feeds, output);
+  if (output.numel() == 0) {
+    return output;
+  }
+
+  TORCH_CHECK(grad_output.scalar_type() == output.scalar_type() && weight.scalar_type() == output.scalar_type(),
+              "Expected all tensors of a product to have the same dtype, but got ",
+              grad_output.scalar_type(),
+              " and ",
+              weight.scalar_type(),
+              " for ",
+              output.scalar_type());
+  TORCH_CHECK(weight.dim() <= 2, "Expected a matrix, but got a tensor of ", weight.dim(), " dimensions");
+  const auto right_rows = weight;
+  const auto left_rows = grad_output.reshape({output.numel() / output.size(-1), grad_output.size(-1)});
+  const auto product = output.view({-1, output.size(-1)});
+  const auto rows = product.size(-2);
+  const auto columns = product.size(-1);
+  const auto inner = left_rows.size(-1);
+  const std::array<int64_t, 4> sizes = {rows, columns, inner, 1};
+  const std::array<int64_t, 12> strides = {0,
+                                           product.stride(-2),
+                                           product.stride(-1),
+                                           0,
+                                           left_rows.stride(-2),
+                                           left_rows.stride(-1),
+                                           0,
+                                           right_rows.stride(-2),
+                                           right_rows.stride(-1),
+                                           0,
+                                           0,
+                                           0};
+ THE LAUNCH OF A PRODUCT
+
   return output;
 }
 
@@ -21,10 +113,91 @@
     bias.zero_();
     return std::tuple<Tensor, Tensor>{output, bias};
   }
-  @autoreleasepool {
-    runMPSGraph(getCurrentMPSStream(), makeGraph(grad_output, input, has_bias), feeds, output);
+  if (output.numel() == 0 && bias.numel() == 0) {
     return std::tuple<Tensor, Tensor>{output, bias};
   }
+
+  bias.copy_(grad_output.reshape({-1, grad_output.size(-1)}).sum(0));
+  if (output.numel() > 0) {
+    TORCH_CHECK(grad_output.scalar_type() == output.scalar_type() && input.scalar_type() == output.scalar_type(),
+                "Expected all tensors of a product to have the same dtype, but got ",
+                grad_output.scalar_type(),
+                " and ",
+                input.scalar_type(),
+                " for ",
+                output.scalar_type());
+    const auto left_rows = grad_output.reshape({-1, grad_output.size(-1)});
+    const auto right_rows = input.reshape({-1, input.size(-1)});
+    const auto rows = output.size(-2);
+    const auto columns = output.size(-1);
+    const auto inner = left_rows.size(-2);
+    const std::array<int64_t, 4> sizes = {rows, columns, inner, 1};
+    const std::array<int64_t, 12> strides = {0,
+                                             output.stride(-2),
+                                             output.stride(-1),
+                                             0,
+                                             left_rows.stride(-1),
+                                             left_rows.stride(-2),
+                                             0,
+                                             right_rows.stride(-2),
+                                             right_rows.stride(-1),
+                                             0,
+                                             0,
+                                             0};
+ THE LAUNCH OF A PRODUCT
+  }
+
+  return std::tuple<Tensor, Tensor>{output, bias};
 }
 
 std::tuple<Tensor, Tensor, Tensor> sloped_mps(
""",
    )
