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
@@ -0,0 +1,276 @@
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
+// The sums of products of a tile of 32 rows and columns, of which each lane has
+// a column
+template <typename T>
+struct TileSums {
+  T sums[32];
+
+  TileSums() {
+#pragma unroll
+    for (uint i = 0; i < 32; i++) {
+      sums[i] = T(0);
+    }
+  }
+
+  // Adds the product of 32 rows of 8 elements and 8 rows of 32 elements
+  template <typename L, typename R, typename S>
+  void add(
+      L left,
+      S left_row,
+      S left_column,
+      R right,
+      S right_row,
+      S right_column,
+      uint lane) {
+#pragma unroll
+    for (uint k = 0; k < 8; k++) {
+      const T factor =
+          static_cast<T>(right[k * right_row + lane * right_column]);
+#pragma unroll
+      for (uint i = 0; i < 32; i++) {
+        sums[i] = add_product(
+            sums[i],
+            static_cast<T>(left[i * left_row + k * left_column]),
+            factor);
+      }
+    }
+  }
+
+  // Adds other sums, which start again
+  void take(thread TileSums& other) {
+#pragma unroll
+    for (uint i = 0; i < 32; i++) {
+      sums[i] += other.sums[i];
+      other.sums[i] = T(0);
+    }
+  }
+
+  void store(threadgroup T* tile, uint lane) {
+#pragma unroll
+    for (uint i = 0; i < 32; i++) {
+      tile[i * 32 + lane] = sums[i];
+    }
+  }
+};
+
+// A block of 8 rows and columns as floats: each lane has the same elements of a
+// matrix of any type
+template <typename T, typename S>
+inline void load_block(
+    thread simdgroup_float8x8& block,
+    const device T* from,
+    S row,
+    S column) {
+  simdgroup_matrix<T, 8, 8> loaded;
+  simdgroup_load(
+      loaded, from, column == 1 ? row : column, ulong2(0), column != 1);
+  block.thread_elements() = float2(loaded.thread_elements());
+}
+
+inline void load_block(
+    thread simdgroup_float8x8& block,
+    const threadgroup float* from,
+    uint row,
+    uint) {
+  simdgroup_load(block, from, row);
+}
+
+template <>
+struct TileSums<float> {
+  simdgroup_float8x8 sums[4][4];
+
+  TileSums() {
+#pragma unroll
+    for (uint i = 0; i < 16; i++) {
+      sums[i / 4][i % 4] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
+    }
+  }
+
+  template <typename L, typename R, typename S>
+  void add(
+      L left,
+      S left_row,
+      S left_column,
+      R right,
+      S right_row,
+      S right_column,
+      uint) {
+    simdgroup_float8x8 rows[4], columns[4];
+#pragma unroll
+    for (uint i = 0; i < 4; i++) {
+      load_block(rows[i], left + 8 * i * left_row, left_row, left_column);
+      load_block(
+          columns[i], right + 8 * i * right_column, right_row, right_column);
+    }
+#pragma unroll
+    for (uint i = 0; i < 16; i++) {
+      simdgroup_multiply_accumulate(
+          sums[i / 4][i % 4], rows[i / 4], columns[i % 4], sums[i / 4][i % 4]);
+    }
+  }
+
+  void take(thread TileSums& other) {
+#pragma unroll
+    for (uint i = 0; i < 16; i++) {
+      sums[i / 4][i % 4].thread_elements() +=
+          other.sums[i / 4][i % 4].thread_elements();
+      other.sums[i / 4][i % 4] =
+          make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
+    }
+  }
+
+  void store(threadgroup float* tile, uint) {
+#pragma unroll
+    for (uint i = 0; i < 16; i++) {
+      simdgroup_store(sums[i / 4][i % 4], tile + i / 4 * 256 + i % 4 * 8, 32);
+    }
+  }
+};
+
+template <typename T, typename index_t>
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
+    uint lane [[thread_index_in_simdgroup]]) {
+  using total_t = c10::metal::opmath_t<T>;
+  // 32 rows and 8 columns, then 8 rows and 32 columns; in the end the whole
+  // tile
+  threadgroup total_t memory[32 * 32];
+  threadgroup total_t* left_rows = memory;
+  threadgroup total_t* right_rows = memory + 32 * 8;
+  const index_t rows = sizes[0], columns = sizes[1], inner = sizes[2];
+  const index_t left_row = strides[4], left_column = strides[5];
+  const index_t right_row = strides[7], right_column = strides[8];
+  const index_t row = index_t(group.y) * 32, column = index_t(group.x) * 32;
+  // The last tiles begin earlier, so that they end where the matrices do
+  const bool fits = rows >= 32 && columns >= 32;
+  const index_t top = fits ? min(row, rows - 32) : row;
+  const index_t first = fits ? min(column, columns - 32) : column;
+  const bool has_neighbors = (left_row == 1 || left_column == 1) &&
+      (right_row == 1 || right_column == 1);
+  const bool is_whole = fits && has_neighbors;
+  TileSums<total_t> totals, sums;
+  for (index_t batch = group.z; batch < index_t(group.z) + index_t(sizes[3]);
+       batch++) {
+    const device T* l = left + batch * index_t(strides[3]) + top * left_row;
+    const device T* r =
+        right + batch * index_t(strides[6]) + first * right_column;
+    for (index_t start = 0; start < inner; start += 256) {
+      // Few products are added up in a row, so that those of long rows are as
+      // exact
+      const index_t end = min(inner, start + 256);
+      index_t k = start;
+      for (; k + 8 <= end && is_whole; k += 8) {
+        sums.add(
+            l + k * left_column,
+            left_row,
+            left_column,
+            r + k * right_row,
+            right_row,
+            right_column,
+            lane);
+      }
+      for (; k < end; k += 8) {
+        for (uint i = lane; i < 32 * 8; i += 32) {
+          const index_t from = k + i % 8, to = k + i / 32;
+          const bool has_left = top + i / 8 < rows && from < inner;
+          left_rows[i] = has_left
+              ? static_cast<total_t>(l[i / 8 * left_row + from * left_column])
+              : total_t(0);
+          const bool has_right = to < inner && first + i % 32 < columns;
+          right_rows[i] = has_right
+              ? static_cast<total_t>(r[to * right_row + i % 32 * right_column])
+              : total_t(0);
+        }
+        simdgroup_barrier(mem_flags::mem_threadgroup);
+        sums.add(left_rows, 8u, 1u, right_rows, 32u, 1u, lane);
+        simdgroup_barrier(mem_flags::mem_threadgroup);
+      }
+      totals.take(sums);
+    }
+  }
+  // A tile writes what lies inside the product and belongs to no other tile
+  totals.store(memory, lane);
+  simdgroup_barrier(mem_flags::mem_threadgroup);
+  const bool is_added = scales[1].x != 0 || scales[1].y != 0;
+  for (uint i = lane; i < 32 * 32; i += 32) {
+    const index_t y = top + i / 32, x = first + i % 32;
+    if (y < row || y >= rows || x < column || x >= columns) {
+      continue;
+    }
+    total_t value = scale_sum(memory[i], scales[0], factors[0]);
+    if (is_added) {
+      const index_t at = index_t(group.z) * index_t(strides[9]) +
+          y * index_t(strides[10]) + x * index_t(strides[11]);
+      value +=
+          scale_sum(static_cast<total_t>(added[at]), scales[1], factors[1]);
+    }
+    const index_t to = index_t(group.z) * index_t(strides[0]) +
+        y * index_t(strides[1]) + x * index_t(strides[2]);
+    output[to] = static_cast<T>(value);
+  }
+}
+
+#define REGISTER_MULTIPLIED_(DTYPE, INDEX)                            \\
+  template [[host_name("multiplied_" #DTYPE "_" #INDEX)]] kernel void \\
+  multiplied<DTYPE, INDEX>(                                           \\
+      device DTYPE * output,                                          \\
+      const device DTYPE* left,                                       \\
+      const device DTYPE* right,                                      \\
+      const device DTYPE* added,                                      \\
+      constant long* sizes,                                           \\
+      constant long* strides,                                         \\
+      constant float2* scales,                                        \\
+      constant long* factors,                                         \\
+      uint3 group [[threadgroup_position_in_grid]],                   \\
+      uint lane [[thread_index_in_simdgroup]])
+
+#define REGISTER_MULTIPLIED(DTYPE)  \\
+  REGISTER_MULTIPLIED_(DTYPE, int); \\
+  REGISTER_MULTIPLIED_(DTYPE, long)
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
diff --git a/aten/src/ATen/native/mps/operations/Multiplies.mm b/aten/src/ATen/native/mps/operations/Multiplies.mm
--- a/aten/src/ATen/native/mps/operations/Multiplies.mm
+++ b/aten/src/ATen/native/mps/operations/Multiplies.mm
@@ -1,24 +1,79 @@
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
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO = lib.getPipelineStateForFunc("multiplied_" + scalarToMetalTypeString(out) + "_" + index_type);
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, "multiplied", {mat1, mat2, addend}, stream);
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(
+          computeEncoder, out, inner > 0 ? mat1 : out, inner > 0 ? mat2 : out, addend, sizes, strides, scales, factors);
+      [computeEncoder
+           dispatchThreadgroups:MTLSizeMake(at::ceil_div<int64_t>(columns, 32), at::ceil_div<int64_t>(rows, 32), 1)
+          threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
+      getMPSProfiler().endProfileKernel(PSO, stream);
+    }
+  });
+
   return out;
 }
 
""",
    )
