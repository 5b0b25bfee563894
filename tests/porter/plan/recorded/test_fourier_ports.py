"""The port of rows that compute Fourier transforms: both have the kernels and the host functions of one."""

import re
from functools import partial
from pathlib import Path

from expecttest import assert_expected_inline

from porter.aten.operator import ServedFunction
from porter.core.checkout import Checkout
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.convolution import Fourier
from porter.plan.plan import Draft
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROWS = """
- func: transformed.out(Tensor self, int[] dim, int normalization, bool forward, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: transformed_out_cpu
    MPS: transformed_out_mps

- func: inverted.out(Tensor self, int[] dim, int normalization, int last_dim_size, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: inverted_out_cpu
    MPS: inverted_out_mps
"""
HOST = """#include <ATen/native/SpectralOpsUtils.h>
#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

Tensor& transformed_out_mps(const Tensor& self, IntArrayRef dim, int64_t normalization, bool forward, Tensor& out) {
  using namespace mps;
  TORCH_CHECK(supportsComplex(), "FFT operations are only supported on MacOS 14+");
  runMPSGraph(getCurrentMPSStream(), makeGraph(self, dim, normalization, forward), feeds, out);
  return out;
}

Tensor& inverted_out_mps(const Tensor& self, IntArrayRef dim, int64_t normalization, int64_t last_dim_size, Tensor& out) {
  using namespace mps;
  runMPSGraph(getCurrentMPSStream(), makeGraph(self, dim, normalization, last_dim_size), feeds, out);
  return out;
}

} // namespace at::native
"""
COMMON = ("self", "dim", "normalization")
FORMS = {"transformed": Fourier(*COMMON, forward="forward"), "inverted": Fourier(*COMMON, size="last_dim_size")}


HELPERS = (("inline float2 multiply", "template <typename T, typename T1"), ("namespace {", "Tensor& transformed_out"))


def _read(program: FormProgram, _row: ServedFunction) -> FormProgram:
    return program


def _leave_out_helpers(diff: str) -> str:
    """The diff without the functions that come from the files of `porter/metal/helpers`."""
    lines, end = [], ""
    for line in diff.splitlines():
        end = "" if end and end in line else end
        first = next((last for head, last in HELPERS if line == f"+{head}" or line.startswith(f"+{head}(")), end)
        if first != end:
            end = first
            lines.append("... helpers")
        elif not end:
            lines.append(re.sub("^@@.*", "@@", line))
    return "\n".join(lines) + "\n"


def test_rows_that_transform(tmp_path: Path) -> None:
    copy = fork.copy_fork(tmp_path)
    (copy.root / OPERATIONS / "Transforms.mm").write_text(HOST)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    draft, diffs = Draft(Checkout(copy.root, "named")), []
    for name, form in FORMS.items():
        program = FormProgram(f"{name}.out", form)
        changes = plan_operator(draft.fork, name, programs=partial(_read, program)).changes
        diffs.append(_leave_out_helpers(changes.diff()))
        draft = draft.follow(changes)
    assert_expected_inline(
        diffs[0],
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Transforms.metal b/aten/src/ATen/native/mps/kernels/Transforms.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Transforms.metal
@@
+#include <metal_stdlib>
+
+using namespace metal;
+
... helpers
+template <typename T, typename T1, typename index_t>
+kernel void transformed(
+    device T* output,
+    const device T1* input,
+    constant long* sizes,
+    constant long* row_sizes,
+    constant long* output_strides,
+    constant long* input_strides,
+    constant float& scale,
+    constant bool& is_forward,
+    threadgroup float2* rows [[threadgroup(0)]],
+    uint group [[threadgroup_position_in_grid]],
+    uint tid [[thread_position_in_threadgroup]]) {
+  const uint n = sizes[0], input_size = sizes[1], output_size = sizes[2],
+             ndim = sizes[4], group_rows = sizes[5];
+  const uint lanes = n % 16 == 0 ? n / 16 : (n + 7) / 8;
+  const bool is_folded = sizes[8];
+  const index_t first = index_t(group) * index_t(group_rows);
+  const uint count = min(index_t(group_rows), index_t(sizes[3]) - first);
+  const index_t input_stride = input_strides[ndim],
+                output_stride = output_strides[ndim];
+  // Memory is read and written in its order
+  uint row = input_stride == 1 ? tid / lanes : tid % group_rows;
+  uint lane = input_stride == 1 ? tid % lanes : tid / group_rows;
+  const float2 sign = float2(1, is_forward ? 1 : -1);
+  float2 elements[16] = {};
+  if (row < count) {
+    const device T1* from =
+        input + find_row(first + index_t(row), row_sizes, input_strides, ndim);
+    if (is_folded) {
+#pragma unroll
+      for (uint i = 0; i < 16; i++) {
+        elements[i] = sign *
+            load_folded(from,
+                        min(lane + i * lanes, n - 1),
+                        n,
+                        input_size,
+                        input_stride);
+      }
+    } else {
+#pragma unroll
+      for (uint i = 0; i < 16; i++) {
+        elements[i] = load_element(
+            from, min(lane + i * lanes, n - 1), n, input_size, input_stride);
+      }
+#pragma unroll
+      for (uint i = 0; i < 16; i++) {
+        const float2 element = elements[i];
+        elements[i] = sign *
+            (input_size < n ? mirror(element, lane + i * lanes, n, input_size)
+                            : element);
+      }
+    }
+  }
+  uint done = 1;
+  if (n % 16 == 0) {
+    // As few passes as there are sixteens
+    for (uint bits = ctz(n), radix_bits; bits > 0; bits -= radix_bits) {
+      const uint passes = (bits + 3) / 4;
+      radix_bits = (bits + passes - 1) / passes;
+      if (radix_bits == 4) {
+        run_pass<16, 16>(elements, rows, row * n, n, lane, done);
+      } else if (radix_bits == 3) {
+        run_pass<16, 8>(elements, rows, row * n, n, lane, done);
+      } else {
+        run_pass<16, 4>(elements, rows, row * n, n, lane, done);
+      }
+      done <<= radix_bits;
+    }
+  } else if (n % 8 == 0) {
+    run_pass<8, 8>(elements, rows, row * n, n, lane, done);
+    done = 8;
+  }
+  for (uint radix = 4; done < n; done *= radix) {
+    const uint rest = n / done;
+    if (rest % 4 != 0) {
+      for (radix = 2; rest % radix != 0;) {
+        radix++;
+      }
+    }
+    run_sums(elements, rows, row * n, n, lane, lanes, radix, done);
+  }
+  const bool is_half = is_folded && is_same_v<T1, float>;
+  const bool is_turned = (input_stride == 1) != (output_stride == 1);
+  if (is_half || is_turned) {
+    share(elements, rows, row * n, n, lane, lanes);
+    row = output_stride == 1 ? tid / lanes : tid % group_rows;
+    lane = output_stride == 1 ? tid % lanes : tid / group_rows;
+#pragma unroll
+    for (uint i = 0; i < 16; i++) {
+      elements[i] = rows[find_bank(row * n + min(lane + i * lanes, n - 1))];
+    }
+  }
+  if (row >= count) {
+    return;
+  }
+  device T* to =
+      output + find_row(first + index_t(row), row_sizes, output_strides, ndim);
+  if (is_half) {
+    for (uint k = lane; k < output_size; k += lanes) {
+      const uint j = min(k, 2 * n - k);
+      const threadgroup float2& other =
+          rows[find_bank(row * n + (j > 0 ? n - j : 0))];
+      const float2 element =
+          unfold(rows[find_bank(row * n + (j < n ? j : 0))], other, j, n);
+      store_element(
+          to,
+          k,
+          output_stride,
+          scale * float2(element.x, k > n ? -element.y : element.y),
+          false);
+    }
+    return;
+  }
+  // Parts of longer rows are turned by their place in these
+  const uint whole = sizes[6],
+             part = whole > 0
+      ? (first + index_t(row)) / index_t(sizes[7]) % index_t(whole / n)
+      : 0;
+#pragma unroll
+  for (uint i = 0; i < 16; i++) {
+    const uint k = lane + i * lanes;
+    if (k < min(n, output_size)) {
+      const float2 element = whole > 0
+          ? multiply(elements[i], find_root(part * k, whole))
+          : elements[i];
+      store_element(to, k, output_stride, scale * sign * element, is_folded);
+    }
+  }
+}
+
+#define REGISTER_TRANSFORMED_(DTYPE, DTYPE1, INDEX)                           \\
+  template                                                                    \\
+      [[host_name("transformed_" #DTYPE "_" #DTYPE1 "_" #INDEX)]] kernel void \\
+      transformed<DTYPE, DTYPE1, INDEX>(                                      \\
+          device DTYPE * output,                                              \\
+          const device DTYPE1* input,                                         \\
+          constant long* sizes,                                               \\
+          constant long* row_sizes,                                           \\
+          constant long* output_strides,                                      \\
+          constant long* input_strides,                                       \\
+          constant float& scale,                                              \\
+          constant bool& is_forward,                                          \\
+          threadgroup float2* rows [[threadgroup(0)]],                        \\
+          uint group [[threadgroup_position_in_grid]],                        \\
+          uint tid [[thread_position_in_threadgroup]])
+
+#define REGISTER_TRANSFORMED(DTYPE, DTYPE1)  \\
+  REGISTER_TRANSFORMED_(DTYPE, DTYPE1, int); \\
+  REGISTER_TRANSFORMED_(DTYPE, DTYPE1, long)
+
+REGISTER_TRANSFORMED(float2, float2);
+REGISTER_TRANSFORMED(float2, float);
+REGISTER_TRANSFORMED(float, float2);
+
+template <typename T, typename T1, typename index_t>
+kernel void transformed_copy(
+    device T* output,
+    const device T1* input,
+    constant long* sizes,
+    constant long* row_sizes,
+    constant long* output_strides,
+    constant long* input_strides,
+    constant float& scale,
+    const device float2* factors,
+    uint tid [[thread_position_in_grid]]) {
+  const uint n = sizes[0], input_size = sizes[1], output_size = sizes[2],
+             ndim = sizes[3];
+  const index_t row = index_t(tid) / index_t(output_size),
+                input_stride = input_strides[ndim];
+  const uint k = index_t(tid) % index_t(output_size);
+  const device T1* from = input + find_row(row, row_sizes, input_strides, ndim);
+  float2 element = 0;
+  if (sizes[5]) {
+    element = scale *
+        load_folded(from, min(k, 2 * n - k), n, input_size, input_stride);
+    element.y = k > n ? -element.y : element.y;
+  } else if (k < n) {
+    element = load_element(from, k, n, input_size, input_stride);
+    element = input_size < n ? mirror(element, k, n, input_size) : element;
+    element = scale * (sizes[4] ? multiply(element, factors[k]) : element);
+  }
+  device T* to = output + find_row(row, row_sizes, output_strides, ndim);
+  store_element(to, k, index_t(output_strides[ndim]), element, false);
+}
+
+#define REGISTER_TRANSFORMED_COPY_(DTYPE, DTYPE1, INDEX)               \\
+  template [[host_name(                                                \\
+      "transformed_copy_" #DTYPE "_" #DTYPE1 "_" #INDEX)]] kernel void \\
+  transformed_copy<DTYPE, DTYPE1, INDEX>(                              \\
+      device DTYPE * output,                                           \\
+      const device DTYPE1* input,                                      \\
+      constant long* sizes,                                            \\
+      constant long* row_sizes,                                        \\
+      constant long* output_strides,                                   \\
+      constant long* input_strides,                                    \\
+      constant float& scale,                                           \\
+      const device float2* factors,                                    \\
+      uint tid [[thread_position_in_grid]])
+
+#define REGISTER_TRANSFORMED_COPY(DTYPE, DTYPE1)  \\
+  REGISTER_TRANSFORMED_COPY_(DTYPE, DTYPE1, int); \\
+  REGISTER_TRANSFORMED_COPY_(DTYPE, DTYPE1, long)
+
+REGISTER_TRANSFORMED_COPY(float2, float2);
+REGISTER_TRANSFORMED_COPY(float2, float);
+REGISTER_TRANSFORMED_COPY(float, float2);
+
+kernel void transformed_chirp(
+    device float2* chirp,
+    device float2* filter,
+    constant long* sizes,
+    constant bool& is_forward,
+    uint tid [[thread_position_in_grid]]) {
+  // The chirp of n elements, and its conjugate on both sides of the first
+  // element of a filter
+  const ulong n = sizes[0], k = min(ulong(tid), ulong(sizes[1]) - tid);
+  float2 root = k < n ? find_root(k * k % (2 * n), 2 * n) : 0;
+  root.y = is_forward ? root.y : -root.y;
+  filter[tid] = float2(root.x, -root.y);
+  if (tid < n) {
+    chirp[tid] = root;
+  }
+}
diff --git a/aten/src/ATen/native/mps/operations/Transforms.mm b/aten/src/ATen/native/mps/operations/Transforms.mm
--- a/aten/src/ATen/native/mps/operations/Transforms.mm
+++ b/aten/src/ATen/native/mps/operations/Transforms.mm
@@
+#include <ATen/WrapDimUtilsMulti.h>
+#include <ATen/ceil_div.h>
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
+#include <ATen/native/Resize.h>
 #include <ATen/native/SpectralOpsUtils.h>
 #include <ATen/native/mps/OperationUtils.h>
+#include <c10/util/llvmMathExtras.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Transforms_metallib.h>
+#endif
+
... helpers
 Tensor& transformed_out_mps(const Tensor& self, IntArrayRef dim, int64_t normalization, bool forward, Tensor& out) {
   using namespace mps;
   TORCH_CHECK(supportsComplex(), "FFT operations are only supported on MacOS 14+");
-  runMPSGraph(getCurrentMPSStream(), makeGraph(self, dim, normalization, forward), feeds, out);
+  run_fft("transformed", out, self, dim, normalization, forward);
+
   return out;
 }
 
""",
    )
    assert_expected_inline(
        diffs[1],
        """\
diff --git a/aten/src/ATen/native/mps/operations/Transforms.mm b/aten/src/ATen/native/mps/operations/Transforms.mm
--- a/aten/src/ATen/native/mps/operations/Transforms.mm
+++ b/aten/src/ATen/native/mps/operations/Transforms.mm
@@
   return out;
 }
 
-Tensor& inverted_out_mps(const Tensor& self, IntArrayRef dim, int64_t normalization, int64_t last_dim_size, Tensor& out) {
+Tensor& inverted_out_mps(const Tensor& self,
+                         IntArrayRef dim,
+                         int64_t normalization,
+                         int64_t last_dim_size,
+                         Tensor& out) {
   using namespace mps;
-  runMPSGraph(getCurrentMPSStream(), makeGraph(self, dim, normalization, last_dim_size), feeds, out);
+  run_fft("transformed", out, self, dim, normalization, false, last_dim_size);
+
   return out;
 }
 
""",
    )
