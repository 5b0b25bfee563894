"""Stages of scripts as operators: what is written for templates, and what is refused of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.kernels.promotion.reading import Wish, find_subject, read_promotion
from porter.plan.promotion.planner import PromotionPlan, plan_promotion

ROOT = Path(__file__).resolve().parents[4]
HEAD = """
import math
import torch
from porter.kernels import MetalKernel
from porter.kernels.script import Kind, Script, Stage, expect

KERNEL = MetalKernel("k", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = T(x[i]);")
NEEDS = MetalKernel("n", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = T(x[i]) * N;")

def launch(kernel, x, template=(), **other):
    given = dict(
        inputs={"x": x}, template={"T": x.dtype, **dict(template)}, grid=(x.numel(), 1, 1), threadgroup=(64, 1, 1),
        output_shapes={"out": x.shape}, output_dtypes={"out": x.dtype},
    )
    return kernel(**{**given, **other})["out"]

def reference(x):
    return x.clone()
"""
TAIL = """
SCRIPT = Script(
    summary="", kind=Kind.ELEMENTWISE, stages=(Stage("run", run, reference, ("x",)),),
    inputs=lambda case: {"x": case.normal(*case.size)}, sizes=((2, 3),), benchmark=(),
)
"""


def plan(path: Path, op: str, stage: str | None = None, **wish: Any) -> PromotionPlan:
    asked = Wish(op, stage, **wish)
    return plan_promotion(Checkout(EMBEDDED_FORK, "embedded"), read_promotion(find_subject(path, asked), asked))


def written(template: str, op: str, stage: str | None = None) -> str:
    return plan(ROOT / "templates" / f"{template}.py", op, stage).changes.diff().replace(f"{ROOT}/", "")


def texts(template: str, op: str, stage: str, *files: str) -> str:
    """Some of the new files, one after another."""
    found = plan(ROOT / "templates" / f"{template}.py", op, stage).changes.apply()
    return "".join(text for path, text in found.items() if path.endswith(files))


def refused(tmp_path: Path, body: str, op: str = "my_op", **wish: Any) -> str:
    """What is said of a script with this function `run`, with the line's text in place of its number."""
    path = tmp_path / "script.py"
    path.write_text(HEAD + body + TAIL)
    with pytest.raises(PorterError) as caught:
        plan(path, op, **wish)
    place = caught.value.place
    line = path.read_text().splitlines()[place.line - 1].strip() if place and place.line else ""
    return f"{caught.value.code} {caught.value.what} [{line}]"


def promoted(tmp_path: Path, body: str, **wish: Any) -> PromotionPlan:
    path = tmp_path / "script.py"
    path.write_text(HEAD + body + TAIL)
    return plan(path, "my_op", **wish)


def test_an_elementwise_kernel() -> None:
    assert_expected_inline(
        texts("silu", "fast_silu", "silu", "FastSilu.metal", "FastSilu.mm"),
        """\
#include <metal_stdlib>
using namespace metal;

inline float silu(float v) {
  return v / (1.0f + metal::exp(-v));
}

template <typename T, int EACH>
[[kernel]] void fast_silu(
    device const T* x [[buffer(0)]],
    constant const int& count [[buffer(1)]],
    device T* out [[buffer(2)]],
    uint3 thread_position_in_grid [[thread_position_in_grid]],
    uint3 threads_per_grid [[threads_per_grid]]) {
  // Neighboring threads read neighboring elements, so that every load of a
  // simdgroup is one stretch of memory.
  uint threads = threads_per_grid.x;
  uint i = thread_position_in_grid.x;
  for (int k = 0; k < EACH; ++k, i += threads)
    out[i] = T(silu(float(x[i])));
  if (i < uint(count))
    out[i] = T(silu(float(x[i]))); // the last one of some threads
}

#define INSTANTIATE_FAST_SILU(T_, EACH_)              \\
  template [[host_name("fast_silu_" #T_ "_" #EACH_)]] \\
  [[kernel]] decltype(fast_silu<T_, EACH_>) fast_silu<T_, EACH_>;

INSTANTIATE_FAST_SILU(float, 3)
INSTANTIATE_FAST_SILU(float, 0)
INSTANTIATE_FAST_SILU(half, 3)
INSTANTIATE_FAST_SILU(half, 0)
INSTANTIATE_FAST_SILU(bfloat, 3)
INSTANTIATE_FAST_SILU(bfloat, 0)
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/ceil_div.h>
#include <ATen/native/mps/OperationUtils.h>
#include <c10/util/TypeCast.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/fast_silu_native.h>
#endif

namespace at::native {

using namespace mps;

static auto& lib = MetalShaderLibrary::getBundledLibrary();

TORCH_IMPL_FUNC(fast_silu_out_mps)
(const Tensor& x, const Tensor& out) {
  TORCH_CHECK_TYPE(x.scalar_type() == kFloat || x.scalar_type() == kHalf || x.scalar_type() == kBFloat16,
                   "fast_silu: x has to be float, half or bfloat16, not ",
                   x.scalar_type());
  const Tensor x_ = x.contiguous();
  const int64_t threads = x.numel() >= 16 ? at::ceil_div<int64_t>(x.numel(), 4) : x.numel();
  const int64_t each = x.numel() >= 16 ? 3 : 0;
  if (threads == 0) {
    return;
  }
  const std::string kernel = "fast_silu_" + scalarToMetalTypeString(x) + "_" + std::to_string(each);

  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      id<MTLComputePipelineState> pipeline = lib.getPipelineStateForFunc(kernel);
      [encoder setComputePipelineState:pipeline];
      mtl_setArgs(encoder, x_, c10::checked_convert<int32_t>(x.numel(), "int32_t"), out);
      mtl_dispatch1DJob(encoder, pipeline, threads);
    }
  });
}

} // namespace at::native
""",
    )


def test_a_row_wise_kernel_with_barriers() -> None:
    assert_expected_inline(
        written("softmax", "softmax_rows"),
        """\
diff --git a/aten/src/ATen/native/SoftmaxRows.cpp b/aten/src/ATen/native/SoftmaxRows.cpp
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/SoftmaxRows.cpp
@@ -0,0 +1,32 @@
+#include <ATen/core/Tensor.h>
+
+#ifndef AT_PER_OPERATOR_HEADERS
+#include <ATen/Functions.h>
+#include <ATen/NativeFunctions.h>
+#else
+#include <ATen/ops/softmax.h>
+#include <ATen/ops/softmax_rows_meta.h>
+#include <ATen/ops/softmax_rows_native.h>
+#endif
+
+namespace at::meta {
+
+TORCH_META_FUNC(softmax_rows)(const Tensor& x) {
+  TORCH_CHECK_VALUE(
+      x.dim() > 0 && x.size(-1) > 0,
+      "softmax_rows: x has to have a last dimension with elements, not shape ",
+      x.sizes());
+  set_output_contiguous(0, x.sizes(), x.options());
+}
+
+} // namespace at::meta
+
+namespace at::native {
+
+// The reference as it stands: the operator's own kernel is on MPS
+TORCH_IMPL_FUNC(softmax_rows_out_cpu)
+(const Tensor& x, const Tensor& out) {
+  out.copy_(at::softmax(x, -1));
+}
+
+} // namespace at::native
diff --git a/aten/src/ATen/native/mps/kernels/SoftmaxRows.metal b/aten/src/ATen/native/mps/kernels/SoftmaxRows.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/SoftmaxRows.metal
@@ -0,0 +1,54 @@
+#include <metal_stdlib>
+using namespace metal;
+
+template <typename T>
+[[kernel]] void softmax_rows(
+    device const T* x [[buffer(0)]],
+    constant const long* x_strides [[buffer(1)]],
+    constant const int& columns [[buffer(2)]],
+    device T* out [[buffer(3)]],
+    uint simdgroup_index_in_threadgroup [[simdgroup_index_in_threadgroup]],
+    uint simdgroups_per_threadgroup [[simdgroups_per_threadgroup]],
+    uint thread_index_in_simdgroup [[thread_index_in_simdgroup]],
+    uint3 thread_position_in_threadgroup [[thread_position_in_threadgroup]],
+    uint3 threadgroup_position_in_grid [[threadgroup_position_in_grid]],
+    uint3 threads_per_threadgroup [[threads_per_threadgroup]]) {
+  threadgroup float tops[32], sums[32];
+  uint n = uint(columns);
+  uint row = threadgroup_position_in_grid.x;
+  auto from = x + long(row) * x_strides[0];
+  device T* to = out + ulong(row) * n;
+  uint first = thread_position_in_threadgroup.x,
+       step = threads_per_threadgroup.x;
+  uint lane = thread_index_in_simdgroup;
+
+  float top = -INFINITY;
+  for (uint i = first; i < n; i += step)
+    top = max(top, float(from[i]));
+  top = simd_max(top);
+  if (lane == 0)
+    tops[simdgroup_index_in_threadgroup] = top;
+  threadgroup_barrier(mem_flags::mem_threadgroup);
+  top = simd_max(lane < simdgroups_per_threadgroup ? tops[lane] : -INFINITY);
+
+  float sum = 0;
+  for (uint i = first; i < n; i += step)
+    sum += exp(float(from[i]) - top);
+  sum = simd_sum(sum);
+  if (lane == 0)
+    sums[simdgroup_index_in_threadgroup] = sum;
+  threadgroup_barrier(mem_flags::mem_threadgroup);
+  sum = simd_sum(lane < simdgroups_per_threadgroup ? sums[lane] : 0.0f);
+
+  float scale = 1.0f / sum;
+  for (uint i = first; i < n; i += step)
+    to[i] = T(exp(float(from[i]) - top) * scale);
+}
+
+#define INSTANTIATE_SOFTMAX_ROWS(T_)          \\
+  template [[host_name("softmax_rows_" #T_)]] \\
+  [[kernel]] decltype(softmax_rows<T_>) softmax_rows<T_>;
+
+INSTANTIATE_SOFTMAX_ROWS(float)
+INSTANTIATE_SOFTMAX_ROWS(half)
+INSTANTIATE_SOFTMAX_ROWS(bfloat)
diff --git a/aten/src/ATen/native/mps/operations/SoftmaxRows.mm b/aten/src/ATen/native/mps/operations/SoftmaxRows.mm
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/operations/SoftmaxRows.mm
@@ -0,0 +1,50 @@
+#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
+#include <ATen/native/mps/OperationUtils.h>
+#include <c10/util/TypeCast.h>
+
+#ifndef AT_PER_OPERATOR_HEADERS
+#include <ATen/NativeFunctions.h>
+#else
+#include <ATen/ops/softmax_rows_native.h>
+#endif
+
+namespace at::native {
+
+using namespace mps;
+
+static auto& lib = MetalShaderLibrary::getBundledLibrary();
+
+// A tensor without dimensions has one of size 1: Metal takes no empty argument.
+template <typename T>
+static std::vector<T> as_argument(IntArrayRef values) {
+  return values.empty() ? std::vector<T>{1} : std::vector<T>(values.begin(), values.end());
+}
+
+TORCH_IMPL_FUNC(softmax_rows_out_mps)
+(const Tensor& x, const Tensor& out) {
+  TORCH_CHECK_TYPE(x.scalar_type() == kFloat || x.scalar_type() == kHalf || x.scalar_type() == kBFloat16,
+                   "softmax_rows: x has to be float, half or bfloat16, not ",
+                   x.scalar_type());
+  const Tensor rows = x.dim() == 2 && x.stride(1) == 1 ? x : x.reshape({-1, x.size(-1)}).contiguous();
+  const int64_t columns = rows.size(1);
+  const int64_t group = std::min<int64_t>(256, std::max<int64_t>(32, columns / 16 / 32 * 32));
+  const int64_t threads = rows.size(0) * group;
+  if (threads == 0) {
+    return;
+  }
+  const auto rows_strides = as_argument<int64_t>(rows.strides());
+  const std::string kernel = "softmax_rows_" + scalarToMetalTypeString(x);
+
+  MPSStream* stream = getCurrentMPSStream();
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
+      id<MTLComputePipelineState> pipeline = lib.getPipelineStateForFunc(kernel);
+      [encoder setComputePipelineState:pipeline];
+      mtl_setArgs(encoder, rows, rows_strides, c10::checked_convert<int32_t>(columns, "int32_t"), out);
+      [encoder dispatchThreads:MTLSizeMake(threads, 1, 1) threadsPerThreadgroup:MTLSizeMake(group, 1, 1)];
+    }
+  });
+}
+
+} // namespace at::native
diff --git a/aten/src/ATen/native/native_functions.yaml b/aten/src/ATen/native/native_functions.yaml
--- a/aten/src/ATen/native/native_functions.yaml
+++ b/aten/src/ATen/native/native_functions.yaml
@@ -616,3 +616,12 @@
     CPU, CUDA, MPS: remainder
   autogen: remainder.Scalar_Tensor_out
   tags: pointwise
+
+- func: softmax_rows(Tensor x) -> Tensor
+  structured_delegate: softmax_rows.out
+
+- func: softmax_rows.out(Tensor x, *, Tensor(a!) out) -> Tensor(a!)
+  structured: True
+  dispatch:
+    CPU: softmax_rows_out_cpu
+    MPS: softmax_rows_out_mps
diff --git a/test/test_mps.py b/test/test_mps.py
--- a/test/test_mps.py
+++ b/test/test_mps.py
@@ -42,6 +42,33 @@
             self.assertEqual(actual, expected, exact_device=False)
 
 
+class TestSoftmaxRows(TestCase):
+    def check(self, actual, expected):
+        if not actual.is_floating_point():
+            return self.assertEqual(actual, expected, atol=0, rtol=0)
+        # Rounding errors of sums grow with what is summed, not with the sum
+        largest = expected.abs().max().item() if expected.numel() else 0
+        atol = max(1e-5, 4 * torch.finfo(actual.dtype).eps * largest)
+        rtol = {torch.float32: 1.3e-06, torch.float16: 0.001, torch.bfloat16: 0.016}[actual.dtype]
+        self.assertEqual(actual, expected, atol=atol, rtol=rtol)
+
+    def test_softmax_rows(self):
+        from torch.testing._internal.common_methods_invocations import (
+            reference_softmax_rows,
+            sample_inputs_softmax_rows,
+        )
+
+        def widen(a):
+            return a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a
+
+        for dtype in (torch.float32, torch.float16, torch.bfloat16):
+            for sample in sample_inputs_softmax_rows(None, 'cpu', dtype, False):
+                args = (sample.input, *sample.args)
+                expected = reference_softmax_rows(*[widen(a) for a in args])
+                actual = torch.softmax_rows(*[a.to('mps') if isinstance(a, torch.Tensor) else a for a in args])
+                self.check(actual.cpu(), expected.to(actual.dtype))
+
+
 instantiate_device_type_tests(TestConsistency, globals(), only_for="mps", allow_mps=True)
 
 if __name__ == "__main__":
diff --git a/torch/testing/_internal/common_methods_invocations.py b/torch/testing/_internal/common_methods_invocations.py
--- a/torch/testing/_internal/common_methods_invocations.py
+++ b/torch/testing/_internal/common_methods_invocations.py
@@ -28,6 +28,21 @@
         )
 
 
+def sample_inputs_softmax_rows(op_info, device, dtype, requires_grad, **kwargs):
+    def make_arg(shape, dtype=dtype, requires_grad=requires_grad, **bounds):
+        return torch.testing.make_tensor(
+            shape, device=device, dtype=dtype, requires_grad=requires_grad, **bounds)
+
+    yield SampleInput(make_arg((1, 1), low=-60, high=60))
+    yield SampleInput(make_arg((3, 33), low=-60, high=60))
+    yield SampleInput(make_arg((2, 2, 1030), low=-60, high=60))
+    yield SampleInput(make_arg((0, 8), low=-60, high=60))
+
+
+def reference_softmax_rows(x):
+    return torch.softmax(x, -1)
+
+
 op_db = [
     BinaryUfuncInfo('atan2',
                     dtypes=all_types_and(torch.bool, torch.bfloat16, torch.half),
@@ -75,4 +90,11 @@
                        DecorateInfo(unittest.expectedFailure, 'TestCommon', 'test_out', device_type='mps'),
                    ),
                    ),
+    OpInfo('softmax_rows',
+           ref=lambda *args: reference_softmax_rows(
+               *(torch.from_numpy(a) if hasattr(a, 'shape') else a for a in args)).numpy(),
+           dtypes=floating_types_and(torch.half, torch.bfloat16),
+           sample_inputs_func=sample_inputs_softmax_rows,
+           supports_autograd=False,
+           ),
 ]
""",
    )


def test_a_kernel_with_a_scalar() -> None:
    assert_expected_inline(
        texts("quickstart", "axpy", "axpy", "Axpy.cpp", "Axpy.mm"),
        """\
#include <ATen/core/Tensor.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/Functions.h>
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/add.h>
#include <ATen/ops/axpy_meta.h>
#include <ATen/ops/axpy_native.h>
#endif

namespace at::meta {

TORCH_META_FUNC(axpy)(double a, const Tensor& x, const Tensor& y) {
  TORCH_CHECK_TYPE(
      y.scalar_type() == x.scalar_type(),
      "axpy: y has to be ",
      x.scalar_type(),
      " as x is, not ",
      y.scalar_type());
  TORCH_CHECK_VALUE(
      y.sizes() == x.sizes(),
      "axpy: y has to have the shape ",
      x.sizes(),
      " of x, not ",
      y.sizes());
  set_output_contiguous(0, x.sizes(), x.options());
}

} // namespace at::meta

namespace at::native {

// The reference as it stands: the operator's own kernel is on MPS
TORCH_IMPL_FUNC(axpy_out_cpu)
(double a, const Tensor& x, const Tensor& y, const Tensor& out) {
  out.copy_(at::add(y, x, a));
}

} // namespace at::native
#define TORCH_ASSERT_ONLY_METHOD_OPERATORS
#include <ATen/native/mps/OperationUtils.h>

#ifndef AT_PER_OPERATOR_HEADERS
#include <ATen/NativeFunctions.h>
#else
#include <ATen/ops/axpy_native.h>
#endif

namespace at::native {

using namespace mps;

static auto& lib = MetalShaderLibrary::getBundledLibrary();

TORCH_IMPL_FUNC(axpy_out_mps)
(double a, const Tensor& x, const Tensor& y, const Tensor& out) {
  TORCH_CHECK_TYPE(x.scalar_type() == kFloat || x.scalar_type() == kHalf || x.scalar_type() == kBFloat16,
                   "axpy: x has to be float, half or bfloat16, not ",
                   x.scalar_type());
  const Tensor x_ = x.contiguous();
  const Tensor y_ = y.contiguous();
  if (x.numel() == 0) {
    return;
  }
  const std::string kernel = "axpy_" + scalarToMetalTypeString(x);

  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
      id<MTLComputePipelineState> pipeline = lib.getPipelineStateForFunc(kernel);
      [encoder setComputePipelineState:pipeline];
      mtl_setArgs(encoder, static_cast<float>(a), x_, y_, out);
      mtl_dispatch1DJob(encoder, pipeline, x.numel());
    }
  });
}

} // namespace at::native
""",
    )


def test_checks_keep_their_order_and_error(tmp_path: Path) -> None:
    found = promoted(tmp_path, """
def run(x):
    if x.dim() != 2 or x.shape[0] > 5 * x.shape[1]:
        raise TypeError(f"x is {tuple(x.shape)}")
    rows, columns = x.shape
    expect(rows % 2 == 0 or columns == 1, f"{rows} and {columns}")
    return launch(KERNEL, x, grid=(rows * columns, 1, 1))
""")  # fmt: skip
    text = found.changes.apply()["aten/src/ATen/native/MyOp.cpp"]
    checks = text[text.index("TORCH_META_FUNC") : text.index("} // namespace at::meta")]
    assert_expected_inline(
        checks,
        """\
TORCH_META_FUNC(my_op)(const Tensor& x) {
  TORCH_CHECK_TYPE(
      x.dim() == 2 && x.size(0) <= 5 * x.size(1), "my_op: x is ", x.sizes());
  TORCH_CHECK_VALUE(
      x.size(0) % 2 == 0 || x.size(1) == 1,
      "my_op: ",
      x.size(0),
      " and ",
      x.size(1));
  set_output_contiguous(0, x.sizes(), x.options());
}

""",
    )


def test_a_stage_among_several_has_to_be_named() -> None:
    with pytest.raises(PorterError, match=r"PTR241 the script has several stages\n.*fill, axpy"):
        written("quickstart", "my_op")
    with pytest.raises(PorterError, match="PTR241 the script has no stage other"):
        written("quickstart", "my_op", "other")
    with pytest.raises(PorterError, match="PTR241 `My-op` cannot be the name"):
        written("silu", "My-op")


def test_an_operator_or_a_file_that_is_there_stays() -> None:
    with pytest.raises(PorterError, match=r"native_functions.yaml:\d+: PTR242 the fork has the operator exp already"):
        written("silu", "exp")
    with pytest.raises(PorterError, match=r"UnaryKernel.metal: PTR242 the fork has this file already"):
        written("silu", "unary_kernel")


def test_what_cannot_be_carried_is_refused_at_its_line(tmp_path: Path) -> None:
    assert_expected_inline(
        "\n".join(
            refused(tmp_path, body)
            for body in (
                "def run(x):\n    return launch(KERNEL, x, grid=(sum(x.shape[i] for i in range(x.shape[0])), 1, 1))\n",
                "def run(x):\n    rows, columns = x.shape\n    return launch(KERNEL, x)\n",
                "def run(x):\n    return launch(KERNEL, torch.exp(x))\n",
                "def run(x):\n    return launch(KERNEL, x.float())\n",
                "def run(x):\n    return launch(KERNEL, x) + 1\n",
                "def run(x):\n    return launch(KERNEL, x).to(torch.float64)\n",
                "def run(x):\n    launch(KERNEL, x)\n    return launch(KERNEL, x)\n",
                "def run(x):\n    return launch(KERNEL if x.numel() > 3 else NEEDS, x, {} if x.numel() > 3 else {'N': 2})\n",
                "def run(x):\n    return x\n",
                "def run(x):\n    raise ValueError('never')\n",
                "def run(x):\n    return launch(NEEDS, x, {'N': x.shape[0]})\n",
                "def run(x):\n    return launch(KERNEL, x, grid=(4 if x.dtype == torch.float16 else 2, 1, 1))\n",
                "def run(x):\n    n = 0\n    while x.numel() > n:\n        n += 1\n    return launch(KERNEL, x)\n",
                "def run(x):\n    return launch(KERNEL, x)\nreference = lambda x: x\n",
                "def run(x):\n    return launch(KERNEL, x)\ndef reference(x):\n    return launch(KERNEL, x)\n",
            )
        ),
        """\
PTR243 the script needs the value of a size here, which only a call has [return launch(KERNEL, x, grid=(sum(x.shape[i] for i in range(x.shape[0])), 1, 1))]
PTR243 the script needs to know here how many dimensions a tensor has, which it has not checked [rows, columns = x.shape]
PTR244 the script uses torch's `exp` beside its kernel, which host code is not written for [return launch(KERNEL, torch.exp(x))]
PTR244 the script uses a tensor's `float` beside its kernel, which host code is not written for [return launch(KERNEL, x.float())]
PTR244 the script uses arithmetic of a kernel's result, which host code is not written for [return launch(KERNEL, x) + 1]
PTR244 the script converts a result of the kernel from float32 to float64 [return launch(KERNEL, x).to(torch.float64)]
PTR244 the stage launches more than one kernel: k is the second [return kernel(**{**given, **other})["out"]]
PTR244 the stage launches one of several kernels: k, n [return kernel(**{**given, **other})["out"]]
PTR244 the stage returns something else than its kernel's outputs []
PTR245 no call reaches a kernel: never [raise ValueError('never')]
PTR247 template parameter N depends on the call, and kernels are compiled ahead [return kernel(**{**given, **other})["out"]]
PTR244 the script decides by element types how it launches its kernel [def run(x):]
PTR245 the script takes more than 64 decisions on sizes here [while x.numel() > n:]
PTR248 the reference of the stage is not a plain function of the script [def run(x):]
PTR248 the reference of the stage uses `launch` of the script, which the tests would not have [return launch(KERNEL, x)]""",
    )


def test_a_schema_may_name_arguments_but_not_change_them(tmp_path: Path) -> None:
    body = "def run(x):\n    return launch(KERNEL, x)\n"
    found = promoted(tmp_path, body, schema="my_op(Tensor input) -> Tensor")
    assert "- func: my_op(Tensor input) -> Tensor\n" in found.changes.diff().replace("\n+", "\n")
    assert_expected_inline(
        "\n".join(
            refused(tmp_path, body, schema=schema)
            for schema in (
                "my_op(Tensor input, int n) -> Tensor",
                "other(Tensor input) -> Tensor",
                "my_op(int input) -> Tensor",
                "my_op(Tensor input",
            )
        ),
        """\
PTR246 the schema does not fit the stage: my_op(Tensor input, int n) -> Tensor []
PTR246 the schema does not fit the stage: other(Tensor input) -> Tensor []
PTR246 the schema does not fit the stage: my_op(int input) -> Tensor []
PTR246 the schema cannot be read: expected ) but found 'eof' here []""",
    )


def test_chosen_template_values_are_instantiated_and_required(tmp_path: Path) -> None:
    body = "def run(x):\n    return launch(NEEDS, x, {'N': x.shape[-1]})\n"
    texts = promoted(tmp_path, body, instantiate={"N": (3, 8)}).changes.apply()
    kernel = texts["aten/src/ATen/native/mps/kernels/MyOp.metal"]
    assert "INSTANTIATE_MY_OP(half, 3)" in kernel
    assert "INSTANTIATE_MY_OP(half, 8)" in kernel
    assert (
        'TORCH_CHECK_VALUE(x.size(-1) == 3 || x.size(-1) == 8, "my_op: N has to be one of 3, 8, not ", x.size(-1));'
        in (" ".join(texts["aten/src/ATen/native/MyOp.cpp"].split()).replace("( ", "("))
    )


def test_what_is_left_out_is_told(tmp_path: Path) -> None:
    found = promoted(tmp_path, """
TABLE = {}

class Run(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return launch(KERNEL, x, threadgroup=(TABLE.get(x.numel(), 64), 1, 1))

def run(x):
    return Run.apply(x)

def reference(x):
    return x[:] * 1
""")  # fmt: skip
    assert_expected_inline(
        "\n".join(str(each).replace(str(tmp_path), "") for each in found.decisions),
        """\
/script.py:29: PTR249 the gradient of Run is left out: give the operator a row in derivatives.yaml
/script.py:26: PTR249 the script looks up a size in a table of its own: the operator has none, as if it were not in it
/script.py:31: PTR249 the reference is more than calls of ATen (/script.py:32: PTR244 the script uses arithmetic of tensors beside its kernel, which host code is not written for): write an implementation for the CPU and an OpInfo, or leave the operator to MPS
/script.py:15: PTR249 there is no gradient: add a formula to derivatives.yaml, or leave the operator without one""",
    )
