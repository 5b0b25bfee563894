"""The port of rows that compute Fourier transforms: both have the kernels and the host functions of one."""

from functools import partial
from pathlib import Path

from expecttest import assert_expected_inline

from porter.aten.operator import ServedFunction
from porter.core.checkout import Checkout
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.fourier import Fourier
from porter.plan.draft import Draft
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


def _read(program: FormProgram, _row: ServedFunction) -> FormProgram:
    return program


def test_rows_that_transform(tmp_path: Path) -> None:
    copy = fork.copy_fork(tmp_path)
    (copy.root / OPERATIONS / "Transforms.mm").write_text(HOST)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    draft, diffs = Draft(Checkout(copy.root, "named")), []
    for name, form in FORMS.items():
        program = FormProgram(f"{name}.out", form)
        changes = plan_operator(draft.fork, name, programs=partial(_read, program)).changes
        diffs.append(changes.diff())
        draft = draft.follow(changes)
    assert_expected_inline(
        diffs[0],
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Transforms.metal b/aten/src/ATen/native/mps/kernels/Transforms.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Transforms.metal
@@ -0,0 +1,354 @@
+#include <metal_stdlib>
+
+using namespace metal;
+
+inline float2 multiply(float2 a, float2 b) {
+  return float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
+}
+
+// exp(-2 pi i k / n) for k < n: the angle is that of an eighth of a turn, which
+// whole numbers reduce it to
+inline float2 find_root(uint k, uint n) {
+  const uint turned = 2 * min(k, n - k);
+  const uint slope = min(turned, n - turned);
+  const bool is_steep = 4 * slope > n;
+  const float x = float(is_steep ? n - 2 * slope : 2 * slope) *
+      (1.0f / float(n)),
+              square = x * x;
+  // The sine and cosine of pi / 2 times x, which is at most a half
+  float sine = fma(square, 1.6044118e-4f, -4.6817541e-3f);
+  sine = x *
+      fma(square,
+          fma(square, fma(square, sine, 7.9692626e-2f), -6.4596410e-1f),
+          1.5707963f);
+  float cosine =
+      fma(square, fma(square, -2.5202042e-5f, 9.1926027e-4f), -2.0863481e-2f);
+  cosine =
+      fma(square,
+          fma(square, fma(square, cosine, 2.5366951e-1f), -1.2337006f),
+          1.0f);
+  const float2 root = is_steep ? float2(sine, cosine) : float2(cosine, sine);
+  return float2(
+      turned == slope ? root.x : -root.x, 2 * k < n ? -root.y : root.y);
+}
+
+// Turns a number back by some eighths of a turn, fewer than four
+inline float2 turn_back(float2 a, uint eighths) {
+  if (eighths & 1) {
+    a = M_SQRT1_2_F * float2(a.x + a.y, a.y - a.x);
+  }
+  return eighths & 2 ? float2(a.y, -a.x) : a;
+}
+
+// Transforms R elements, of which k comes to where its bits are reversed
+template <uint R>
+inline void transform(thread float2* elements) {
+#pragma unroll
+  for (uint i = 0; i < R / 2; i++) {
+    const float2 a = elements[i], b = elements[i + R / 2];
+    elements[i] = a + b;
+    elements[i + R / 2] = turn_back(a - b, i * 8 / R);
+  }
+  transform<R / 2>(elements);
+  transform<R / 2>(elements + R / 2);
+}
+
+template <>
+inline void transform<1>(thread float2*) {}
+
+// Makes transforms of R times as many elements of those of `done`, in rows of
+// n; a thread has eight elements
+template <uint R>
+inline void run_pass(
+    threadgroup float2* rows,
+    uint total,
+    uint n,
+    uint done,
+    uint tid,
+    uint group_size) {
+  float2 elements[8];
+  const uint step = n / R;
+#pragma unroll
+  for (uint u = 0; u < 8 / R; u++) {
+    const uint i = tid + u * group_size;
+    if (i < total / R) {
+      const threadgroup float2* row = rows + i / step * n + i % step;
+      const uint k = i % step % done;
+#pragma unroll
+      for (uint q = 0; q < R; q++) {
+        const float2 element = row[q * step];
+        elements[u * R + q] = q > 0 && done > 1
+            ? multiply(element, find_root(q * k, R * done))
+            : element;
+      }
+      transform<R>(elements + u * R);
+    }
+  }
+  threadgroup_barrier(mem_flags::mem_threadgroup);
+#pragma unroll
+  for (uint u = 0; u < 8 / R; u++) {
+    const uint i = tid + u * group_size;
+    if (i < total / R) {
+      const uint k = i % step % done;
+      threadgroup float2* row = rows + i / step * n + (i % step - k) * R + k;
+#pragma unroll
+      for (uint q = 0; q < R; q++) {
+        row[q * done] = elements[u * R + (reverse_bits(q) >> (clz(R) + 1))];
+      }
+    }
+  }
+  threadgroup_barrier(mem_flags::mem_threadgroup);
+}
+
+// The same for any other factor of n, by adding up the elements of each sum
+inline void run_sums(
+    threadgroup float2* rows,
+    uint total,
+    uint n,
+    uint radix,
+    uint done,
+    uint tid,
+    uint group_size) {
+  float2 sums[8];
+  const uint length = radix * done;
+  for (uint u = 0; u < 8; u++) {
+    const uint i = tid + u * group_size;
+    if (i < total) {
+      const uint place = i % n, k = place % length;
+      const threadgroup float2* row =
+          rows + i - place + place / length * done + k % done;
+      // What all elements share adds up to nothing, which rounded roots would
+      // not
+      const float2 shared = k > 0 && k % done == 0 ? row[0] : 0;
+      float2 total = row[0] - shared, sum = 0;
+      for (uint q = 1, turned = k; q < radix; q++) {
+        sum +=
+            multiply(row[q * (n / radix)] - shared, find_root(turned, length));
+        turned = turned + k < length ? turned + k : turned + k - length;
+        // Few products are added up in a row, so that those of great factors
+        // are as exact
+        if (q % 8 == 0) {
+          total += sum;
+          sum = 0;
+        }
+      }
+      sums[u] = total + sum;
+    }
+  }
+  threadgroup_barrier(mem_flags::mem_threadgroup);
+  for (uint u = 0; u < 8; u++) {
+    const uint i = tid + u * group_size;
+    if (i < total) {
+      rows[i] = sums[u];
+    }
+  }
+  threadgroup_barrier(mem_flags::mem_threadgroup);
+}
+
+// Where a row begins, by the sizes and strides of the other dimensions
+template <typename index_t>
+inline index_t find_row(
+    index_t row,
+    constant long* sizes,
+    constant long* strides,
+    uint ndim) {
+  index_t offset = 0;
+  for (uint dim = ndim - 1; dim > 0; dim--) {
+    offset += row % index_t(sizes[dim]) * index_t(strides[dim]);
+    row /= index_t(sizes[dim]);
+  }
+  return offset + row * index_t(strides[0]);
+}
+
+template <typename index_t>
+inline float2 load_element(
+    const device float* row,
+    uint k,
+    uint,
+    uint,
+    index_t stride) {
+  return float2(row[k * stride], 0);
+}
+
+// Of n elements, those beyond `size` mirror the others; two mirror themselves
+template <typename index_t>
+inline float2 load_element(
+    const device float2* row,
+    uint k,
+    uint n,
+    uint size,
+    index_t stride) {
+  if (size == n) {
+    return row[k * stride];
+  }
+  const float2 element = row[(k < size ? k : n - k) * stride];
+  return float2(
+      element.x,
+      k == 0 || 2 * k == n ? 0
+          : k < size       ? element.y
+                           : -element.y);
+}
+
+inline void store_element(device float* output, float2 value) {
+  *output = value.x;
+}
+
+inline void store_element(device float2* output, float2 value) {
+  *output = value;
+}
+
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
+    uint tid [[thread_position_in_threadgroup]],
+    uint group_size [[threads_per_threadgroup]]) {
+  const uint n = sizes[0], input_size = sizes[1], output_size = sizes[2],
+             ndim = sizes[4];
+  const index_t first = index_t(group) * index_t(sizes[5]);
+  const uint count = min(index_t(sizes[5]), index_t(sizes[3]) - first);
+  const index_t input_stride = input_strides[ndim],
+                output_stride = output_strides[ndim];
+  // Memory is read and written in its order
+  for (uint i = tid; i < count * n; i += group_size) {
+    const uint row = input_stride == 1 ? i / n : i % count,
+               k = input_stride == 1 ? i % n : i / count;
+    const device T1* from =
+        input + find_row(first + index_t(row), row_sizes, input_strides, ndim);
+    const float2 element = load_element(from, k, n, input_size, input_stride);
+    rows[row * n + k] = is_forward ? element : float2(element.x, -element.y);
+  }
+  threadgroup_barrier(mem_flags::mem_threadgroup);
+  for (uint done = 1, radix; done < n; done *= radix) {
+    const uint rest = n / done;
+    // Where eights would leave a two, fours do not
+    if (rest % 64 == 0 || rest % 16 == 8) {
+      run_pass<8>(rows, count * n, n, done, tid, group_size);
+      radix = 8;
+    } else if (rest % 4 == 0) {
+      run_pass<4>(rows, count * n, n, done, tid, group_size);
+      radix = 4;
+    } else {
+      for (radix = 2; rest % radix != 0;) {
+        radix++;
+      }
+      run_sums(rows, count * n, n, radix, done, tid, group_size);
+    }
+  }
+  // Parts of longer rows are turned by their place in these
+  const uint whole = sizes[6];
+  for (uint i = tid; i < count * output_size; i += group_size) {
+    const uint row = output_stride == 1 ? i / output_size : i % count;
+    const uint k = output_stride == 1 ? i % output_size : i / count;
+    float2 element = rows[row * n + k];
+    if (whole > 0) {
+      const uint part =
+          (first + index_t(row)) / index_t(sizes[7]) % index_t(whole / n);
+      element = multiply(element, find_root(part * k, whole));
+    }
+    device T* to = output +
+        find_row(first + index_t(row), row_sizes, output_strides, ndim);
+    store_element(
+        to + k * output_stride,
+        scale * (is_forward ? element : float2(element.x, -element.y)));
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
+          uint tid [[thread_position_in_threadgroup]],                        \\
+          uint group_size [[threads_per_threadgroup]])
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
+  const index_t row = index_t(tid) / index_t(output_size);
+  const uint k = index_t(tid) % index_t(output_size);
+  float2 element = 0;
+  if (k < n) {
+    const device T1* from =
+        input + find_row(row, row_sizes, input_strides, ndim);
+    element =
+        load_element(from, k, n, input_size, index_t(input_strides[ndim]));
+    element = scale * (sizes[4] ? multiply(element, factors[k]) : element);
+  }
+  device T* to = output + find_row(row, row_sizes, output_strides, ndim);
+  store_element(to + index_t(k) * index_t(output_strides[ndim]), element);
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
+// The chirp of n elements, and its conjugate on both sides of the first element
+// of a filter
+kernel void transformed_chirp(
+    device float2* chirp,
+    device float2* filter,
+    constant long* sizes,
+    constant bool& is_forward,
+    uint tid [[thread_position_in_grid]]) {
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
@@ -1,12 +1,294 @@
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
+namespace {
+// The rows of two tensors along a dimension: what sizes and strides the others have, and behind them the steps along it
+struct FFTRows {
+  DimVector sizes{1};
+  DimVector output_strides{0};
+  DimVector input_strides{0};
+  std::string types;
+};
+} // namespace
+
+static FFTRows find_rows(const Tensor& output, const Tensor& input, int64_t dim) {
+  FFTRows rows;
+  for (int64_t i = 0; i < input.dim(); i++) {
+    const auto size = input.size(i), output_stride = output.stride(i), input_stride = input.stride(i);
+    if (i == dim || size == 1) {
+      continue;
+    }
+    // Dimensions that one stride goes over are one
+    if (rows.sizes.back() > 1 &&
+        (rows.output_strides.back() != size * output_stride || rows.input_strides.back() != size * input_stride)) {
+      rows.sizes.push_back(1);
+      rows.output_strides.push_back(0);
+      rows.input_strides.push_back(0);
+    }
+    rows.sizes.back() *= size;
+    rows.output_strides.back() = output_stride;
+    rows.input_strides.back() = input_stride;
+  }
+  rows.output_strides.push_back(output.stride(dim));
+  rows.input_strides.push_back(input.stride(dim));
+  const bool fits = canUse32BitIndexMath(output) && canUse32BitIndexMath(input);
+  rows.types = mps::scalarToMetalTypeString(output) + "_" + mps::scalarToMetalTypeString(input);
+  rows.types += fits ? "_int" : "_long";
+  return rows;
+}
+
+// Transforms rows of `size` elements; where they are parts of `whole` elements, the results are turned by their place
+static void launch_fft(const std::string& kernel,
+                       const Tensor& output,
+                       const Tensor& input,
+                       int64_t dim,
+                       int64_t size,
+                       bool is_forward,
+                       double scale,
+                       int64_t whole = 0) {
+  using namespace mps;
+  const auto rows = find_rows(output, input, dim);
+  const auto count = c10::multiply_integers(rows.sizes);
+  const bool is_dense = output.stride(dim) == 1 && input.stride(dim) == 1;
+  // Rows beside each other share a threadgroup
+  const auto group_rows = std::clamp<int64_t>((is_dense ? 2048 : 4096) / size, 1, count);
+  const auto inner = whole > 0 ? c10::multiply_integers(input.sizes().slice(dim + 2)) : 1;
+  const std::array<int64_t, 8> sizes = {
+      size, input.size(dim), output.size(dim), count, static_cast<int64_t>(rows.sizes.size()), group_rows, whole, inner};
+  MPSStream* stream = getCurrentMPSStream();
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO = lib.getPipelineStateForFunc(kernel + "_" + rows.types);
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, kernel, {input});
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(computeEncoder,
+                  output,
+                  input,
+                  sizes,
+                  rows.sizes,
+                  rows.output_strides,
+                  rows.input_strides,
+                  static_cast<float>(scale),
+                  is_forward);
+      const auto elements = group_rows * size;
+      [computeEncoder setThreadgroupMemoryLength:at::round_up<int64_t>(elements * 8, 16) atIndex:0];
+      [computeEncoder dispatchThreadgroups:MTLSizeMake(at::ceil_div(count, group_rows), 1, 1)
+                     threadsPerThreadgroup:MTLSizeMake(at::ceil_div<int64_t>(elements, 8), 1, 1)];
+      getMPSProfiler().endProfileKernel(PSO);
+    }
+  });
+}
+
+// Copies rows of a spectrum of `size` elements, times factors if there are any, with zeros behind
+static void copy_rows(const std::string& kernel,
+                      const Tensor& output,
+                      const Tensor& input,
+                      int64_t dim,
+                      int64_t size,
+                      const std::optional<Tensor>& factors = std::nullopt,
+                      double scale = 1) {
+  using namespace mps;
+  const auto rows = find_rows(output, input, dim);
+  const std::array<int64_t, 5> sizes = {
+      size, input.size(dim), output.size(dim), static_cast<int64_t>(rows.sizes.size()), factors.has_value()};
+  MPSStream* stream = getCurrentMPSStream();
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO = lib.getPipelineStateForFunc(kernel + "_copy_" + rows.types);
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, kernel, {input});
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(computeEncoder,
+                  output,
+                  input,
+                  sizes,
+                  rows.sizes,
+                  rows.output_strides,
+                  rows.input_strides,
+                  static_cast<float>(scale),
+                  factors.value_or(output));
+      mtl_dispatch1DJob(computeEncoder, PSO, output.numel());
+      getMPSProfiler().endProfileKernel(PSO);
+    }
+  });
+}
+
+static int64_t find_greatest_factor(int64_t size) {
+  int64_t greatest = 1;
+  for (int64_t factor = 2; factor * factor <= size; factor++) {
+    while (size % factor == 0) {
+      greatest = factor;
+      size /= factor;
+    }
+  }
+  return std::max(greatest, size);
+}
+
+static void transform_along(const std::string& kernel,
+                            const Tensor& output,
+                            const Tensor& input,
+                            int64_t dim,
+                            bool is_forward,
+                            double scale = 1);
+
+// Any size: as a convolution with a chirp (Bluestein's algorithm), whose length is a power of two
+static void convolve_with_chirp(const std::string& kernel,
+                                const Tensor& output,
+                                const Tensor& padded,
+                                const Tensor& input,
+                                int64_t dim,
+                                int64_t size,
+                                bool is_forward,
+                                double scale) {
+  using namespace mps;
+  const int64_t length = padded.size(dim);
+  const std::array<int64_t, 2> sizes = {size, length};
+  const auto chirp = padded.new_empty({size}), filter = padded.new_empty({length});
+  MPSStream* stream = getCurrentMPSStream();
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO = lib.getPipelineStateForFunc(kernel + "_chirp");
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, kernel, {input});
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(computeEncoder, chirp, filter, sizes, is_forward);
+      mtl_dispatch1DJob(computeEncoder, PSO, length);
+      getMPSProfiler().endProfileKernel(PSO);
+    }
+  });
+  transform_along(kernel, filter, filter, 0, true);
+  copy_rows(kernel, padded, input, dim, size, chirp);
+  transform_along(kernel, padded, padded, dim, true);
+  copy_rows(kernel, padded, padded, dim, length, filter);
+  transform_along(kernel, padded, padded, dim, false);
+  copy_rows(kernel, output, padded.narrow(dim, 0, size), dim, size, chirp, scale / length);
+}
+
+static void transform_along(const std::string& kernel,
+                            const Tensor& output,
+                            const Tensor& input,
+                            int64_t dim,
+                            bool is_forward,
+                            double scale) {
+  const int64_t input_size = input.size(dim), output_size = output.size(dim), size = std::max(input_size, output_size);
+  const auto make_rows = [&](int64_t length) {
+    DimVector sizes(input.sizes());
+    sizes[dim] = length;
+    return at::empty(sizes, input.options().dtype(kComplexFloat));
+  };
+  if (find_greatest_factor(size) > 128) {
+    const auto padded = make_rows(c10::llvm::PowerOf2Ceil(2 * size - 1));
+    convolve_with_chirp(kernel, output, padded, input, dim, size, is_forward, scale);
+    return;
+  }
+  const bool is_dense = output.stride(dim) == 1 && input.stride(dim) == 1;
+  if (size <= (is_dense ? 4096 : 1024)) {
+    launch_fft(kernel, output, input, dim, size, is_forward, scale);
+    return;
+  }
+  // Longer rows are transformed in two parts, with all elements of a spectrum
+  if (input_size < size) {
+    const auto spectrum = make_rows(size);
+    copy_rows(kernel, spectrum, input, dim, size);
+    transform_along(kernel, output, spectrum, dim, is_forward, scale);
+    return;
+  }
+  if (output_size < size) {
+    const auto spectrum = make_rows(size);
+    transform_along(kernel, spectrum, input, dim, is_forward, scale);
+    copy_rows(kernel, output, spectrum.narrow(dim, 0, output_size), dim, output_size);
+    return;
+  }
+  int64_t part = std::min<int64_t>(1024, std::sqrt(size));
+  while (size % part != 0) {
+    part--;
+  }
+  const int64_t other = size / part;
+  const auto parts = make_rows(size).unflatten(dim, {part, other});
+  launch_fft(kernel, parts, input.unflatten(dim, {part, other}), dim, part, is_forward, 1, size);
+  const auto results = output.unflatten(dim, {other, part}).transpose(dim, dim + 1);
+  transform_along(kernel, results, parts, dim + 1, is_forward, scale);
+}
+
+// Transforms along dimensions. Real numbers have half of a spectrum along the last of these, or all of it
+static void run_fft(const std::string& kernel,
+                    const Tensor& output,
+                    const Tensor& input,
+                    IntArrayRef dims,
+                    int64_t normalization,
+                    bool is_forward,
+                    std::optional<int64_t> last_size = std::nullopt) {
+  dim_list_to_bitset(dims, input.dim()); // which refuses those that are there twice
+  for (const auto dim : dims) {
+    TORCH_CHECK(dim >= 0, "Expected dimensions from the first on, but got ", dim);
+  }
+  const auto mode = static_cast<fft_norm_mode>(normalization);
+  TORCH_CHECK(mode == fft_norm_mode::none || mode == fft_norm_mode::by_root_n || mode == fft_norm_mode::by_n,
+              "Unsupported normalization type ",
+              normalization);
+  DimVector sizes(input.sizes());
+  if (last_size) {
+    TORCH_CHECK(*last_size > 0, "Invalid number of data points (", *last_size, ") specified");
+    sizes[dims.back()] = *last_size;
+  }
+  resize_output(output, sizes);
+  if (output.numel() == 0) {
+    return;
+  }
+  if (dims.empty()) {
+    output.copy_(input);
+    return;
+  }
+  const bool is_real = !output.is_complex();
+  const auto dtype = is_real ? kFloat : kComplexFloat;
+  if (output.scalar_type() != dtype) {
+    const auto result = at::empty(sizes, output.options().dtype(dtype));
+    run_fft(kernel, result, input, dims, normalization, is_forward, last_size);
+    output.copy_(result);
+    return;
+  }
+  double count = 1;
+  for (const auto dim : dims) {
+    count *= (is_real ? output : input).size(dim);
+  }
+  const double scale = mode == fft_norm_mode::none ? 1 : 1 / (mode == fft_norm_mode::by_n ? count : std::sqrt(count));
+  const auto between = is_real && dims.size() > 1 ? at::empty_like(input) : output;
+  Tensor from = input;
+  for (size_t i = 1; i <= dims.size(); i++) {
+    const auto dim = is_real ? dims[i - 1] : dims[dims.size() - i];
+    if (i < dims.size()) {
+      transform_along(kernel, between, from, dim, is_forward);
+      from = between;
+    } else {
+      const auto half = is_real ? from.narrow(dim, 0, output.size(dim) / 2 + 1) : from;
+      transform_along(kernel, output, half, dim, is_forward, scale);
+    }
+  }
+}
 
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
@@ -292,9 +292,14 @@
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
