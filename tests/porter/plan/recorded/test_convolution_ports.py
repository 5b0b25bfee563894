"""The ports of rows that compute convolutions, in the functions that make their results."""

from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.convolution import Convolution, Convolved
from porter.plan.plan import Draft, Plan
from porter.plan.planner import plan_operator
from porter.workflows.coverage import find_needed
from porter.workflows.status import IS_NATIVE
from tests.porter.plan.recorded import fork

_NUMBERS = "SymInt[] padding, SymInt[] stride, SymInt[] dilation, SymInt groups"
ROWS = f"""
- func: convolved(Tensor self, Tensor weight, Tensor? bias, {_NUMBERS}) -> Tensor
  dispatch:
    MPS: convolved_mps

- func: convolved_backward(Tensor self, Tensor grad_output, Tensor weight, {_NUMBERS}, bool[2] output_mask) -> (Tensor, Tensor)
  dispatch:
    MPS: convolved_backward_mps

- func: convolved_transpose(Tensor grad_output, Tensor weight, Tensor self, {_NUMBERS}) -> Tensor
  dispatch:
    MPS: convolved_transpose_mps

- func: convolved_transpose_backward(Tensor self, Tensor grad_output, Tensor weight, {_NUMBERS}) -> (Tensor, Tensor)
  dispatch:
    MPS: convolved_transpose_backward_mps
"""
_PASSED = "IntArrayRef padding, IntArrayRef stride, IntArrayRef dilation, int64_t groups"
HOST = f"""#include <ATen/native/mps/OperationUtils.h>

namespace at::native {{

static Tensor convolve(const Tensor& input_, const Tensor& weight, const std::optional<Tensor>& bias, {_PASSED}) {{
  using namespace mps;
  Tensor input = input_;
  bool is3D = input.dim() == 5;
  if (is3D) {{
    input = input.contiguous();
  }}
  TORCH_CHECK(isFloatingType(input.scalar_type()), "only floating types");
  auto output_t = at::empty(conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation), input.options());
  TensorArg output{{output_t, "result", 0}};
  if (output_t.numel() == 0) {{
    return output_t;
  }}
  runMPSGraph(getCurrentMPSStream(), makeGraph(input, weight, bias, is3D), feeds, output_t);
  return *output;
}}

Tensor convolved_mps(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, {_PASSED}) {{
  return convolve(input, weight, bias, padding, stride, dilation, groups);
}}

static Tensor find_input(IntArrayRef size, const Tensor& grad_output, const Tensor& weight, {_PASSED}) {{
  using namespace mps;
  auto grad_input = at::empty(size, grad_output.options());
  runMPSGraph(getCurrentMPSStream(), makeGraph(grad_output, weight), feeds, grad_input);
  return grad_input;
}}

static Tensor find_weight(IntArrayRef size, const Tensor& grad_output, const Tensor& input, {_PASSED}) {{
  using namespace mps;
  auto grad_weight = at::empty(size, grad_output.options());
  runMPSGraph(getCurrentMPSStream(), makeGraph(grad_output, input), feeds, grad_weight);
  return grad_weight;
}}

std::tuple<Tensor, Tensor> convolved_backward_mps(
    const Tensor& input, const Tensor& grad_output, const Tensor& weight, {_PASSED}, std::array<bool, 2> output_mask) {{
  Tensor grad_input, grad_weight;
  if (output_mask[0]) {{
    grad_input = find_input(input.sizes(), grad_output, weight, padding, stride, dilation, groups);
  }}
  if (output_mask[1]) {{
    grad_weight = find_weight(weight.sizes(), grad_output, input, padding, stride, dilation, groups);
  }}
  return std::tuple<Tensor, Tensor>{{grad_input, grad_weight}};
}}

Tensor convolved_transpose_mps(const Tensor& grad_output, const Tensor& weight, const Tensor& input, {_PASSED}) {{
  return convolve(grad_output, weight, std::nullopt, padding, stride, dilation, groups);
}}

std::tuple<Tensor, Tensor> convolved_transpose_backward_mps(
    const Tensor& input, const Tensor& grad_output, const Tensor& weight, {_PASSED}) {{
  Tensor grad_input, grad_weight;
  grad_input = convolve(grad_output, weight, std::nullopt, padding, stride, dilation, groups);
  grad_weight = find_weight(weight.sizes(), input, grad_output, padding, stride, dilation, groups);
  return std::tuple<Tensor, Tensor>{{grad_input, grad_weight}};
}}

}} // namespace at::native
"""
OUTPUT = Convolution("self", "weight", "", (Convolved.OUTPUT,), "bias")
GRADIENTS = Convolution("self", "weight", "grad_output", (Convolved.INPUT, Convolved.WEIGHT))
TRANSPOSED = Convolution("grad_output", "weight", "", (Convolved.OUTPUT,))
SLOPES = Convolution("grad_output", "weight", "self", (Convolved.OUTPUT, Convolved.WEIGHT))


def write_fork(path: Path) -> Checkout:
    copy = fork.copy_fork(path)
    (copy.root / OPERATIONS / "Convolves.mm").write_text(HOST)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    return Checkout(copy.root, "named")


def plan_in(checkout: Checkout, operator: str, form: Convolution) -> Plan:
    return plan_operator(checkout, operator, programs=lambda row: FormProgram(operator, form))


def plan(path: Path, operator: str, form: Convolution) -> str:
    """The port of a row: what changes in its host file, without the function that launches."""
    planned = plan_in(write_fork(path), operator, form)
    [host] = [each for each in planned.changes.diff().split("diff --git ") if "operations/Convolves.mm" in each]
    return host[host.index("\n+}\n", host.index("run_convolution(const")) + 4 :]


def test_the_function_that_convolves_serves_all_its_callers(tmp_path: Path) -> None:
    assert_expected_inline(
        plan(tmp_path, "convolved", OUTPUT),
        """\
 
-static Tensor convolve(const Tensor& input_, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef padding, IntArrayRef stride, IntArrayRef dilation, int64_t groups) {
+static Tensor convolve(const Tensor& input_,
+                       const Tensor& weight,
+                       const std::optional<Tensor>& bias,
+                       IntArrayRef padding,
+                       IntArrayRef stride,
+                       IntArrayRef dilation,
+                       int64_t groups) {
   using namespace mps;
-  Tensor input = input_;
-  bool is3D = input.dim() == 5;
-  if (is3D) {
-    input = input.contiguous();
-  }
-  TORCH_CHECK(isFloatingType(input.scalar_type()), "only floating types");
-  auto output_t = at::empty(conv_output_size(input.sizes(), weight.sizes(), padding, stride, dilation), input.options());
+  TORCH_CHECK(isFloatingType(input_.scalar_type()), "only floating types");
+  auto output_t =
+      at::empty(conv_output_size(input_.sizes(), weight.sizes(), padding, stride, dilation), input_.options());
   TensorArg output{output_t, "result", 0};
   if (output_t.numel() == 0) {
     return output_t;
   }
-  runMPSGraph(getCurrentMPSStream(), makeGraph(input, weight, bias, is3D), feeds, output_t);
+  run_convolution("convolved", Convolved::Output, input_, weight, output_t, bias, padding, stride, dilation, groups);
+
   return *output;
 }
 
""",
    )


def test_each_gradient_has_a_launch(tmp_path: Path) -> None:
    assert_expected_inline(
        plan(tmp_path, "convolved_backward", GRADIENTS),
        """\
 
 static Tensor convolve(const Tensor& input_, const Tensor& weight, const std::optional<Tensor>& bias, IntArrayRef padding, IntArrayRef stride, IntArrayRef dilation, int64_t groups) {
   using namespace mps;
@@ -23,17 +176,57 @@
   return convolve(input, weight, bias, padding, stride, dilation, groups);
 }
 
-static Tensor find_input(IntArrayRef size, const Tensor& grad_output, const Tensor& weight, IntArrayRef padding, IntArrayRef stride, IntArrayRef dilation, int64_t groups) {
+static Tensor find_input(IntArrayRef size,
+                         const Tensor& grad_output,
+                         const Tensor& weight,
+                         IntArrayRef padding,
+                         IntArrayRef stride,
+                         IntArrayRef dilation,
+                         int64_t groups) {
   using namespace mps;
   auto grad_input = at::empty(size, grad_output.options());
-  runMPSGraph(getCurrentMPSStream(), makeGraph(grad_output, weight), feeds, grad_input);
+  if (grad_input.numel() == 0) {
+    return grad_input;
+  }
+
+  run_convolution("convolved_backward",
+                  Convolved::Input,
+                  grad_input,
+                  weight,
+                  grad_output,
+                  std::nullopt,
+                  padding,
+                  stride,
+                  dilation,
+                  groups);
+
   return grad_input;
 }
 
-static Tensor find_weight(IntArrayRef size, const Tensor& grad_output, const Tensor& input, IntArrayRef padding, IntArrayRef stride, IntArrayRef dilation, int64_t groups) {
+static Tensor find_weight(IntArrayRef size,
+                          const Tensor& grad_output,
+                          const Tensor& input,
+                          IntArrayRef padding,
+                          IntArrayRef stride,
+                          IntArrayRef dilation,
+                          int64_t groups) {
   using namespace mps;
   auto grad_weight = at::empty(size, grad_output.options());
-  runMPSGraph(getCurrentMPSStream(), makeGraph(grad_output, input), feeds, grad_weight);
+  if (grad_weight.numel() == 0) {
+    return grad_weight;
+  }
+
+  run_convolution("convolved_backward",
+                  Convolved::Weight,
+                  input,
+                  grad_weight,
+                  grad_output,
+                  std::nullopt,
+                  padding,
+                  stride,
+                  dilation,
+                  groups);
+
   return grad_weight;
 }
 
""",
    )


def test_a_row_that_lacks_a_tensor_of_the_function_waits_for_another(tmp_path: Path) -> None:
    with pytest.raises(PorterError, match="PTR043 convolve takes bias, which no call of this row gives"):
        plan(tmp_path, "convolved_transpose", TRANSPOSED)


def test_a_function_that_another_row_ported_is_left_as_it_is(tmp_path: Path) -> None:
    """Its other function has the only graph that is left."""
    draft = Draft(write_fork(tmp_path))
    assert find_needed(draft.fork, "convolved_transpose_backward") == ("convolved",)
    assert find_needed(draft.fork, "convolved") == () == find_needed(draft.fork, "convolved_backward")
    draft = draft.follow(plan_in(draft.fork, "convolved", OUTPUT).changes)
    host = draft.fork.read(f"{OPERATIONS}/Convolves.mm")
    draft = draft.follow(plan_in(draft.fork, "convolved_transpose_backward", SLOPES).changes)
    ported = draft.fork.read(f"{OPERATIONS}/Convolves.mm")
    assert (host.count("runMPSGraph("), ported.count("runMPSGraph(")) == (2, 1)
    assert ported.count("Convolved::Output") == 1 == ported.count("Convolved::Weight,")
    with pytest.raises(PorterError, match=IS_NATIVE):
        plan_in(draft.fork, "convolved_transpose", TRANSPOSED)
