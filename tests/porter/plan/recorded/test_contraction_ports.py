"""The port of a row that multiplies matrices."""

from pathlib import Path

from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.dtypes import FLOAT
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.contraction import Contraction, Operands
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROWS = """
- func: multiplied.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: multiplied_out_cpu
    MPS: multiplied_out_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

static Tensor& compute_naively(const Tensor& mat1, const Tensor& mat2, Tensor& out) {
  return at::sum_out(out, mat1.unsqueeze(-1) * mat2, 1);
}

Tensor& multiplied_out_mps(
    const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha, Tensor& out) {
  using namespace mps;
  TORCH_CHECK(mat1.dim() == 2 && mat2.dim() == 2, "tensors must be 2-D");
  out.resize_({mat1.size(0), mat2.size(1)});
  if (out.numel() == 0) {
    return out;
  }
  // MPSGraph is wrong for these
  if (mat1.size(0) > 32768) {
    return compute_naively(mat1, mat2, out);
  }
  runMPSGraph(getCurrentMPSStream(), makeGraph(self, mat1, mat2, beta, alpha), feeds, out);
  return out;
}

} // namespace at::native
"""


def test_a_row_that_multiplies_matrices(tmp_path: Path) -> None:
    copy = fork.copy_fork(tmp_path)
    (copy.root / OPERATIONS / "Multiplies.mm").write_text(HOST)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    form = Contraction(
        Operands.MATRICES, "mat1", "mat2", added="self", beta="beta", alpha="alpha", dtypes=(FLOAT,)
    )  # fmt: skip
    plan = plan_operator(
        Checkout(copy.root, "named"), "multiplied", programs=lambda row: FormProgram("multiplied.out", form)
    )
    assert_expected_inline(
        plan.changes.diff(),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Multiplies.metal b/aten/src/ATen/native/mps/kernels/Multiplies.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Multiplies.metal
@@ -0,0 +1,417 @@
+#include <c10/metal/utils.h>
+#include <metal_simdgroup_matrix>
+#include <metal_stdlib>
+
+using namespace metal;
+
+template <typename T>
+inline T add_product(T sum, T a, T b) {
+  return sum + a * b;
+}
+
+inline float2 add_product(float2 sum, float2 a, float2 b) {
+  return sum + float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
+}
+
+template <typename T>
+inline T scale_sum(T sum, float2, long factor) {
+  return sum * static_cast<T>(factor);
+}
+
+inline float scale_sum(float sum, float2 scale, long) {
+  return sum * scale.x;
+}
+
+inline float2 scale_sum(float2 sum, float2 scale, long) {
+  return float2(
+      sum.x * scale.x - sum.y * scale.y, sum.x * scale.y + sum.y * scale.x);
+}
+
+// Stores an element of a product: its sum times a number, and what is added
+// times another
+template <typename T, typename E, typename index_t>
+inline void store_scaled(
+    device E* output,
+    const device E* added,
+    T sum,
+    index_t batch,
+    index_t row,
+    index_t column,
+    constant long* strides,
+    constant float2* scales,
+    constant long* factors) {
+  T value = scale_sum(sum, scales[0], factors[0]);
+  if (scales[1].x != 0 || scales[1].y != 0) {
+    const index_t from = batch * index_t(strides[9]) +
+        row * index_t(strides[10]) + column * index_t(strides[11]);
+    value += scale_sum(static_cast<T>(added[from]), scales[1], factors[1]);
+  }
+  const index_t to = batch * index_t(strides[0]) + row * index_t(strides[1]) +
+      column * index_t(strides[2]);
+  output[to] = static_cast<E>(value);
+}
+
+// What a thread of 128 brings from device memory of N rows of 16 elements, or
+// of as many columns
+template <typename T, uint N>
+struct TileElements {
+  T elements[N / 8];
+
+  static uint2 find_place(uint i, uint thread_index, bool are_lines_adjacent) {
+    const uint at = thread_index + i * 128;
+    return are_lines_adjacent ? uint2(at % N, at / N) : uint2(at / 16, at % 16);
+  }
+
+  // Has zeros beyond the end of the operand
+  template <typename index_t>
+  void load(
+      const device T* from,
+      index_t line_step,
+      index_t step,
+      index_t lines,
+      index_t length,
+      uint thread_index) {
+#pragma unroll
+    for (uint i = 0; i < N / 8; i++) {
+      const uint2 place = find_place(i, thread_index, line_step == 1);
+      const bool is_inside =
+          index_t(place.x) < lines && index_t(place.y) < length;
+      elements[i] = is_inside
+          ? from[index_t(place.x) * line_step + index_t(place.y) * step]
+          : T(0);
+    }
+  }
+
+  void store(
+      threadgroup T* tile,
+      uint line_step,
+      uint step,
+      uint thread_index,
+      bool are_lines_adjacent) {
+#pragma unroll
+    for (uint i = 0; i < N / 8; i++) {
+      const uint2 place = find_place(i, thread_index, are_lines_adjacent);
+      tile[place.x * line_step + place.y * step] = elements[i];
+    }
+  }
+};
+
+// The sums of products of a tile of SIDE rows and columns, of which a lane has
+// rows of a column
+template <typename T, typename E, uint SIDE>
+struct ProductTile {
+  T sums[SIDE * SIDE / 32];
+
+  ProductTile() {
+#pragma unroll
+    for (uint i = 0; i < SIDE * SIDE / 32; i++) {
+      sums[i] = T(0);
+    }
+  }
+
+  // Adds the product of SIDE rows of 8 elements and 8 rows of SIDE elements
+  template <uint LEFT_STRIDE, uint RIGHT_STRIDE>
+  void add(const threadgroup E* left, const threadgroup E* right, uint lane) {
+    left += lane / SIDE * (SIDE * SIDE / 32) * LEFT_STRIDE;
+#pragma unroll
+    for (uint k = 0; k < 8; k++) {
+      const T factor = static_cast<T>(right[k * RIGHT_STRIDE + lane % SIDE]);
+#pragma unroll
+      for (uint i = 0; i < SIDE * SIDE / 32; i++) {
+        sums[i] = add_product(
+            sums[i], static_cast<T>(left[i * LEFT_STRIDE + k]), factor);
+      }
+    }
+  }
+
+  // Adds other sums, which start again
+  void take(thread ProductTile& other) {
+#pragma unroll
+    for (uint i = 0; i < SIDE * SIDE / 32; i++) {
+      sums[i] += other.sums[i];
+      other.sums[i] = T(0);
+    }
+  }
+
+  // Stores 8 rows
+  void store(threadgroup T* strip, uint row, uint lane) {
+#pragma unroll
+    for (uint i = 0; i < SIDE * SIDE / 32; i++) {
+      const uint y = lane / SIDE * (SIDE * SIDE / 32) + i;
+      if (y / 8 == row / 8) {
+        strip[y % 8 * SIDE + lane % SIDE] = sums[i];
+      }
+    }
+  }
+};
+
+template <typename E, uint SIDE>
+struct ProductTile<float, E, SIDE> {
+  simdgroup_float8x8 sums[SIDE / 8][SIDE / 8];
+
+  ProductTile() {
+#pragma unroll
+    for (uint i = 0; i < SIDE * SIDE / 64; i++) {
+      sums[i / (SIDE / 8)][i % (SIDE / 8)] =
+          make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
+    }
+  }
+
+  template <uint LEFT_STRIDE, uint RIGHT_STRIDE>
+  void add(const threadgroup E* left, const threadgroup E* right, uint) {
+    simdgroup_matrix<E, 8, 8> rows[SIDE / 8], columns[SIDE / 8];
+#pragma unroll
+    for (uint i = 0; i < SIDE / 8; i++) {
+      simdgroup_load(rows[i], left + 8 * i * LEFT_STRIDE, LEFT_STRIDE);
+      simdgroup_load(columns[i], right + 8 * i, RIGHT_STRIDE);
+    }
+#pragma unroll
+    for (uint i = 0; i < SIDE * SIDE / 64; i++) {
+      thread simdgroup_float8x8& sum = sums[i / (SIDE / 8)][i % (SIDE / 8)];
+      simdgroup_multiply_accumulate(
+          sum, rows[i / (SIDE / 8)], columns[i % (SIDE / 8)], sum);
+    }
+  }
+
+  void take(thread ProductTile& other) {
+#pragma unroll
+    for (uint i = 0; i < SIDE * SIDE / 64; i++) {
+      thread simdgroup_float8x8& sum =
+          other.sums[i / (SIDE / 8)][i % (SIDE / 8)];
+      sums[i / (SIDE / 8)][i % (SIDE / 8)].thread_elements() +=
+          sum.thread_elements();
+      sum = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
+    }
+  }
+
+  void store(threadgroup float* strip, uint row, uint) {
+#pragma unroll
+    for (uint i = 0; i < SIDE / 8; i++) {
+      simdgroup_store(sums[row / 8][i], strip + 8 * i, SIDE);
+    }
+  }
+};
+
+template <typename T, typename index_t, uint N>
+kernel void multiplied(
+    device T* output,
+    const device T* left,
+    const device T* right,
+    const device T* added,
+    constant long* sizes,
+    constant long* strides,
+    constant float2* scales,
+    constant long* factors,
+    uint3 group [[threadgroup_position_in_grid]],
+    uint thread_index [[thread_index_in_threadgroup]],
+    uint simdgroup [[simdgroup_index_in_threadgroup]],
+    uint lane [[thread_index_in_simdgroup]]) {
+  using total_t = c10::metal::opmath_t<T>;
+  // Each of four simdgroups has a quarter of a tile of N rows and columns
+  constexpr uint SIDE = N / 2, GAP = 16 / sizeof(T), LEFT_STRIDE = 16 + GAP,
+                 RIGHT_STRIDE = N + GAP;
+  threadgroup T left_tile[N * LEFT_STRIDE], right_tile[16 * RIGHT_STRIDE];
+  threadgroup total_t strips[4][8 * SIDE];
+  const index_t rows = sizes[0], columns = sizes[1], inner = sizes[2];
+  const index_t left_row = strides[4], left_column = strides[5];
+  const index_t right_row = strides[7], right_column = strides[8];
+  const index_t row = index_t(group.y) * N, column = index_t(group.x) * N;
+  const uint side_row = simdgroup / 2 * SIDE,
+             side_column = simdgroup % 2 * SIDE;
+  ProductTile<total_t, T, SIDE> totals, sums;
+  TileElements<T, N> next_left, next_right;
+  for (index_t batch = group.z; batch < index_t(group.z) + index_t(sizes[3]);
+       batch++) {
+    const device T* l = left + batch * index_t(strides[3]) + row * left_row;
+    const device T* r =
+        right + batch * index_t(strides[6]) + column * right_column;
+    next_left.load(l, left_row, left_column, rows - row, inner, thread_index);
+    next_right.load(
+        r, right_column, right_row, columns - column, inner, thread_index);
+    for (index_t k = 0; k < inner; k += 16) {
+      threadgroup_barrier(mem_flags::mem_threadgroup);
+      next_left.store(left_tile, LEFT_STRIDE, 1, thread_index, left_row == 1);
+      next_right.store(
+          right_tile, 1, RIGHT_STRIDE, thread_index, right_column == 1);
+      threadgroup_barrier(mem_flags::mem_threadgroup);
+      // What comes next is on its way while products are added
+      if (inner - k > 16) {
+        const index_t next = k + 16;
+        next_left.load(
+            l + next * left_column,
+            left_row,
+            left_column,
+            rows - row,
+            inner - next,
+            thread_index);
+        next_right.load(
+            r + next * right_row,
+            right_column,
+            right_row,
+            columns - column,
+            inner - next,
+            thread_index);
+      }
+      for (uint i = 0; i < 16; i += 8) {
+        const threadgroup T* side = left_tile + side_row * LEFT_STRIDE + i;
+        sums.template add<LEFT_STRIDE, RIGHT_STRIDE>(
+            side, right_tile + i * RIGHT_STRIDE + side_column, lane);
+      }
+      // Few products are added up in a row, so that those of long rows are as
+      // exact
+      if ((k + 16) % 256 == 0) {
+        totals.take(sums);
+      }
+    }
+    totals.take(sums);
+  }
+#pragma unroll
+  for (uint strip = 0; strip < SIDE; strip += 8) {
+    totals.store(strips[simdgroup], strip, lane);
+    simdgroup_barrier(mem_flags::mem_threadgroup);
+    for (uint i = lane; i < 8 * SIDE; i += 32) {
+      const index_t y = row + side_row + strip + i / SIDE,
+                    x = column + side_column + i % SIDE;
+      if (y < rows && x < columns) {
+        store_scaled(
+            output,
+            added,
+            strips[simdgroup][i],
+            index_t(group.z),
+            y,
+            x,
+            strides,
+            scales,
+            factors);
+      }
+    }
+    simdgroup_barrier(mem_flags::mem_threadgroup);
+  }
+}
+
+#define REGISTER_MULTIPLIED_(DTYPE, INDEX, COUNT)                           \\
+  template                                                                  \\
+      [[host_name("multiplied_" #DTYPE "_" #INDEX "_" #COUNT)]] kernel void \\
+      multiplied<DTYPE, INDEX, COUNT>(                                      \\
+          device DTYPE * output,                                            \\
+          const device DTYPE* left,                                         \\
+          const device DTYPE* right,                                        \\
+          const device DTYPE* added,                                        \\
+          constant long* sizes,                                             \\
+          constant long* strides,                                           \\
+          constant float2* scales,                                          \\
+          constant long* factors,                                           \\
+          uint3 group [[threadgroup_position_in_grid]],                     \\
+          uint thread_index [[thread_index_in_threadgroup]],                \\
+          uint simdgroup [[simdgroup_index_in_threadgroup]],                \\
+          uint lane [[thread_index_in_simdgroup]])
+
+#define REGISTER_MULTIPLIED(DTYPE)      \\
+  REGISTER_MULTIPLIED_(DTYPE, int, 32); \\
+  REGISTER_MULTIPLIED_(DTYPE, long, 32)
+
+REGISTER_MULTIPLIED(float);
+REGISTER_MULTIPLIED(half);
+REGISTER_MULTIPLIED(bfloat);
+REGISTER_MULTIPLIED(long);
+REGISTER_MULTIPLIED(int);
+REGISTER_MULTIPLIED(short);
+REGISTER_MULTIPLIED(uchar);
+REGISTER_MULTIPLIED(char);
+REGISTER_MULTIPLIED(float2);
+REGISTER_MULTIPLIED(half2);
+REGISTER_MULTIPLIED_(float, int, 64);
+REGISTER_MULTIPLIED_(half, int, 64);
+REGISTER_MULTIPLIED_(bfloat, int, 64);
+
+template <typename T, typename index_t>
+kernel void multiplied_vector(
+    device T* output,
+    const device T* left,
+    const device T* right,
+    const device T* added,
+    constant long* sizes,
+    constant long* strides,
+    constant float2* scales,
+    constant long* factors,
+    uint3 group [[threadgroup_position_in_grid]],
+    uint simdgroup [[simdgroup_index_in_threadgroup]],
+    uint lane [[thread_index_in_simdgroup]]) {
+  using total_t = c10::metal::opmath_t<T>;
+  threadgroup total_t sums[8][32];
+  const index_t inner = sizes[2];
+  const bool is_column = sizes[1] == 1;
+  const index_t length = is_column ? sizes[0] : sizes[1];
+  const index_t step = strides[is_column ? 4 : 8],
+                inner_step = strides[is_column ? 5 : 7];
+  const index_t vector_step = strides[is_column ? 7 : 5];
+  const bool are_adjacent = step == 1 && inner_step != 1;
+  const index_t at = are_adjacent ? index_t(group.x) * 32 + lane
+                                  : index_t(group.x) * 8 + simdgroup;
+  total_t total(0);
+  for (index_t batch = group.z;
+       batch < index_t(group.z) + index_t(sizes[3]) && at < length;
+       batch++) {
+    const device T* l = left + batch * index_t(strides[3]);
+    const device T* r = right + batch * index_t(strides[6]);
+    const device T* matrix = (is_column ? l : r) + at * step;
+    const device T* vector = is_column ? r : l;
+    const uint first = are_adjacent ? simdgroup : lane,
+               turn = are_adjacent ? 8 : 32;
+    for (index_t start = 0; start < inner; start += 256 * turn) {
+      // Few products are added up in a row, so that those of long rows are as
+      // exact
+      const index_t end =
+          inner - start < 256 * turn ? inner : start + 256 * turn;
+      total_t sum(0);
+#pragma unroll 4
+      for (index_t k = start + first; k < end; k += turn) {
+        const total_t factor = static_cast<total_t>(vector[k * vector_step]);
+        sum = add_product(
+            sum, static_cast<total_t>(matrix[k * inner_step]), factor);
+      }
+      total += sum;
+    }
+  }
+  sums[simdgroup][lane] = total;
+  threadgroup_barrier(mem_flags::mem_threadgroup);
+  if (at >= length || (are_adjacent ? simdgroup : lane) > 0) {
+    return;
+  }
+  for (uint i = 1; i < (are_adjacent ? 8 : 32); i++) {
+    total += are_adjacent ? sums[i][lane] : sums[simdgroup][i];
+  }
+  const index_t y = is_column ? at : 0, x = is_column ? 0 : at;
+  store_scaled(
+      output, added, total, index_t(group.z), y, x, strides, scales, factors);
+}
+
+#define REGISTER_MULTIPLIED_VECTOR_(DTYPE, INDEX)                            \\
+  template [[host_name("multiplied_vector_" #DTYPE "_" #INDEX)]] kernel void \\
+  multiplied_vector<DTYPE, INDEX>(                                           \\
+      device DTYPE * output,                                                 \\
+      const device DTYPE* left,                                              \\
+      const device DTYPE* right,                                             \\
+      const device DTYPE* added,                                             \\
+      constant long* sizes,                                                  \\
+      constant long* strides,                                                \\
+      constant float2* scales,                                               \\
+      constant long* factors,                                                \\
+      uint3 group [[threadgroup_position_in_grid]],                          \\
+      uint simdgroup [[simdgroup_index_in_threadgroup]],                     \\
+      uint lane [[thread_index_in_simdgroup]])
+
+#define REGISTER_MULTIPLIED_VECTOR(DTYPE)  \\
+  REGISTER_MULTIPLIED_VECTOR_(DTYPE, int); \\
+  REGISTER_MULTIPLIED_VECTOR_(DTYPE, long)
+
+REGISTER_MULTIPLIED_VECTOR(float);
+REGISTER_MULTIPLIED_VECTOR(half);
+REGISTER_MULTIPLIED_VECTOR(bfloat);
+REGISTER_MULTIPLIED_VECTOR(long);
+REGISTER_MULTIPLIED_VECTOR(int);
+REGISTER_MULTIPLIED_VECTOR(short);
+REGISTER_MULTIPLIED_VECTOR(uchar);
+REGISTER_MULTIPLIED_VECTOR(char);
+REGISTER_MULTIPLIED_VECTOR(float2);
+REGISTER_MULTIPLIED_VECTOR(half2);
diff --git a/aten/src/ATen/native/mps/operations/Multiplies.mm b/aten/src/ATen/native/mps/operations/Multiplies.mm
--- a/aten/src/ATen/native/mps/operations/Multiplies.mm
+++ b/aten/src/ATen/native/mps/operations/Multiplies.mm
@@ -1,24 +1,109 @@
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
+#include <ATen/native/mps/Multiplies_metallib.h>
+#endif
 
-static Tensor& compute_naively(const Tensor& mat1, const Tensor& mat2, Tensor& out) {
-  return at::sum_out(out, mat1.unsqueeze(-1) * mat2, 1);
-}
-
-Tensor& multiplied_out_mps(
-    const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha, Tensor& out) {
+Tensor& multiplied_out_mps(const Tensor& self,
+                           const Tensor& mat1,
+                           const Tensor& mat2,
+                           const Scalar& beta,
+                           const Scalar& alpha,
+                           Tensor& out) {
   using namespace mps;
   TORCH_CHECK(mat1.dim() == 2 && mat2.dim() == 2, "tensors must be 2-D");
   out.resize_({mat1.size(0), mat2.size(1)});
   if (out.numel() == 0) {
     return out;
   }
-  // MPSGraph is wrong for these
-  if (mat1.size(0) > 32768) {
-    return compute_naively(mat1, mat2, out);
-  }
-  runMPSGraph(getCurrentMPSStream(), makeGraph(self, mat1, mat2, beta, alpha), feeds, out);
+  TORCH_CHECK(mat1.scalar_type() == out.scalar_type() && mat2.scalar_type() == out.scalar_type(),
+              "Expected all tensors of a product to have the same dtype, but got ",
+              mat1.scalar_type(),
+              " and ",
+              mat2.scalar_type(),
+              " for ",
+              out.scalar_type());
+  const auto rows = out.size(-2);
+  const auto columns = out.size(-1);
+  const auto inner = mat1.size(-1);
+  const bool is_added = beta.toComplexDouble() != 0.0;
+  const auto addend = is_added ? self.expand(out.sizes()).to(out.scalar_type()) : out;
+  const std::array<int64_t, 4> sizes = {rows, columns, inner, 1};
+  const std::array<int64_t, 12> strides = {0,
+                                           out.stride(-2),
+                                           out.stride(-1),
+                                           0,
+                                           mat1.stride(-2),
+                                           mat1.stride(-1),
+                                           0,
+                                           mat2.stride(-2),
+                                           mat2.stride(-1),
+                                           0,
+                                           addend.stride(-2),
+                                           addend.stride(-1)};
+  const std::array<c10::complex<float>, 2> scales = {alpha.to<c10::complex<float>>(),
+                                                     is_added ? beta.to<c10::complex<float>>() : 0.0f};
+  const std::array<int64_t, 2> factors = {isIntegralType(out.scalar_type(), false) ? alpha.toLong() : 1,
+                                          isIntegralType(out.scalar_type(), false) ? beta.toLong() : 1};
+  MPSStream* stream = getCurrentMPSStream();
+  const std::string index_type = canUse32BitIndexMath(out) && canUse32BitIndexMath(mat1) &&
+          canUse32BitIndexMath(mat2) && canUse32BitIndexMath(addend)
+      ? "int"
+      : "long";
+  const int64_t tile =
+      isFloatingType(out.scalar_type()) && index_type == "int" && std::min(rows, columns) >= 64 && out.numel() >= 524288
+      ? 64
+      : 32;
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      if (std::min(rows, columns) == 1 && inner >= 32) {
+        auto PSO = lib.getPipelineStateForFunc("multiplied_vector_" + scalarToMetalTypeString(out) + "_" + index_type);
+        // this function call is a no-op if MPS Profiler is not enabled
+        getMPSProfiler().beginProfileKernel(PSO, "multiplied_vector", {mat1, mat2, addend}, stream);
+        [computeEncoder setComputePipelineState:PSO];
+        mtl_setArgs(computeEncoder,
+                    out,
+                    inner > 0 ? mat1 : out,
+                    inner > 0 ? mat2 : out,
+                    addend,
+                    sizes,
+                    strides,
+                    scales,
+                    factors);
+        [computeEncoder dispatchThreadgroups:MTLSizeMake(at::ceil_div<int64_t>(rows * columns, 8), 1, 1)
+                       threadsPerThreadgroup:MTLSizeMake(256, 1, 1)];
+        getMPSProfiler().endProfileKernel(PSO, stream);
+      } else {
+        auto PSO = lib.getPipelineStateForFunc("multiplied_" + scalarToMetalTypeString(out) + "_" + index_type + "_" +
+                                               std::to_string(tile));
+        // this function call is a no-op if MPS Profiler is not enabled
+        getMPSProfiler().beginProfileKernel(PSO, "multiplied", {mat1, mat2, addend}, stream);
+        [computeEncoder setComputePipelineState:PSO];
+        mtl_setArgs(computeEncoder,
+                    out,
+                    inner > 0 ? mat1 : out,
+                    inner > 0 ? mat2 : out,
+                    addend,
+                    sizes,
+                    strides,
+                    scales,
+                    factors);
+        [computeEncoder dispatchThreadgroups:MTLSizeMake(at::ceil_div(columns, tile), at::ceil_div(rows, tile), 1)
+                       threadsPerThreadgroup:MTLSizeMake(128, 1, 1)];
+        getMPSProfiler().endProfileKernel(PSO, stream);
+      }
+    }
+  });
+
   return out;
 }
 
""",
    )
