"""Ports of rows that sort: the whole diff of one that keeps some elements, and the launch of a median."""

from pathlib import Path

from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.dtypes import FLOAT, HALF
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.sort import Kept, Sort
from porter.plan.plan import Plan
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROWS = """
- func: ranked.values(Tensor self, int k, int dim, bool largest, *, Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!) values, Tensor(b!) indices)
  dispatch:
    CPU: ranked_out_cpu
    MPS: ranked_out_mps

- func: middle(Tensor self) -> Tensor
  dispatch:
    CPU: middle_cpu
    MPS: middle_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

std::tuple<Tensor&, Tensor&> ranked_out_mps(
    const Tensor& self, int64_t k, int64_t dim_, bool largest, Tensor& values, Tensor& indices) {
  using namespace mps;
  const int64_t dim = maybe_wrap_dim(dim_, self.dim());
  TORCH_CHECK(k <= self.size(dim), "ranked: k is out of range");
  runMPSGraph(getCurrentMPSStream(), makeGraph(dim), feeds, values);
  return {values, indices};
}

Tensor middle_mps(const Tensor& input) {
  using namespace mps;
  Tensor output = at::empty({}, input.options());
  runMPSGraph(getCurrentMPSStream(), makeGraph(input), feeds, output);
  return output;
}

} // namespace at::native
"""
RANKED = Sort("self", Kept.FIRST, "dim", "largest", "k", dtypes=(FLOAT, HALF))
MIDDLE = Sort("self", Kept.MEDIAN, places=False, dtypes=(FLOAT,))


def prepare(folder: Path) -> Checkout:
    copy = fork.copy_fork(folder)
    (copy.root / OPERATIONS / "Ranks.mm").write_text(HOST)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    return Checkout(copy.root, "named")


def plan(copy: Checkout, op: str, found: Sort) -> Plan:
    return plan_operator(copy, op, programs=lambda row: FormProgram(op, found))


def test_the_first_elements_of_sorted_rows(tmp_path: Path) -> None:
    assert_expected_inline(
        plan(prepare(tmp_path), "ranked", RANKED).changes.diff(),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Ranks.metal b/aten/src/ATen/native/mps/kernels/Ranks.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Ranks.metal
@@ -0,0 +1,253 @@
+#include <metal_stdlib>
+
+using namespace metal;
+
+template <typename T>
+using order_t = conditional_t<sizeof(T) == 8, ulong, uint>;
+
+// A number that is larger where an element comes later: a NaN is larger than
+// all numbers, as it is on the CPU, and both zeros are alike
+template <typename T, enable_if_t<is_floating_point_v<T>, bool> = true>
+inline uint order_of(T element) {
+  const uint bits = as_type<uint>(static_cast<float>(element));
+  const uint magnitude = bits & 0x7FFFFFFF;
+  if (magnitude > 0x7F800000) {
+    return 0xFFFFFFFF;
+  }
+  return bits > 0x80000000 ? ~bits : magnitude | 0x80000000;
+}
+
+template <typename T, enable_if_t<!is_floating_point_v<T>, bool> = true>
+inline order_t<T> order_of(T element) {
+  const order_t<T> sign = order_t<T>(1) << (8 * sizeof(order_t<T>) - 1);
+  return static_cast<order_t<T>>(element) ^ (T(-1) < T(0) ? sign : 0);
+}
+
+// How many of the first elements of two merged runs are those of the left one;
+// equal elements keep their order, and no sum is larger than the runs
+template <typename P, typename index_t, typename M>
+inline index_t count_left(
+    P left,
+    index_t left_size,
+    P right,
+    index_t right_size,
+    index_t count,
+    M mask) {
+  index_t low = count > right_size ? count - right_size : 0;
+  index_t high = min(count, left_size);
+  while (low < high) {
+    const index_t at = low + (high - low) / 2;
+    const bool is_right =
+        (order_of(right[count - 1 - at]) ^ mask) < (order_of(left[at]) ^ mask);
+    low = is_right ? low : at + 1;
+    high = is_right ? at : high;
+  }
+  return low;
+}
+
+template <typename T, typename index_t>
+kernel void ranked_blocks(
+    device T* values,
+    device long* indices,
+    constant T* input,
+    constant long* sizes,
+    constant long* input_strides,
+    constant long* values_strides,
+    constant long* indices_strides,
+    constant long& ndim,
+    constant long& kept,
+    constant bool& descending,
+    uint group [[threadgroup_position_in_grid]],
+    uint tid [[thread_position_in_threadgroup]],
+    uint group_size [[threads_per_threadgroup]]) {
+  threadgroup order_t<T> shared_orders[1024];
+  threadgroup ushort shared_indices[1024];
+  const index_t size = sizes[ndim - 1];
+  const uint block = 4 * group_size;
+  const index_t blocks = (size + block - 1) / block;
+  const index_t start = index_t(group) % blocks * block;
+  const uint count = min(index_t(block), size - start);
+  index_t rest = index_t(group) / blocks;
+  index_t input_offset = 0;
+  index_t values_offset = 0;
+  index_t indices_offset = 0;
+  for (long d = ndim - 2; d >= 0; d--) {
+    const index_t i = rest % index_t(sizes[d]);
+    rest /= index_t(sizes[d]);
+    input_offset += i * index_t(input_strides[d]);
+    values_offset += i * index_t(values_strides[d]);
+    indices_offset += i * index_t(indices_strides[d]);
+  }
+  // What is past the row comes last, as its indices are larger
+  const order_t<T> mask = descending ? ~order_t<T>(0) : 0;
+  T elements[4];
+  for (uint i = 0; i < 4; i++) {
+    const uint at = tid + i * group_size;
+    elements[i] = at < count
+        ? input[input_offset + (start + at) * index_t(input_strides[ndim - 1])]
+        : T(0);
+    shared_orders[at] =
+        at < count ? order_of(elements[i]) ^ mask : ~order_t<T>(0);
+  }
+  threadgroup_barrier(mem_flags::mem_threadgroup);
+  // A thread sorts four elements by how many of them come before each
+  const uint first = 4 * tid;
+  order_t<T> orders[4];
+  ushort indices_of[4];
+  for (uint i = 0; i < 4; i++) {
+    orders[i] = shared_orders[first + i];
+  }
+  for (uint i = 0; i < 4; i++) {
+    uint place = first;
+    for (uint j = 0; j < 4; j++) {
+      place += j < i ? orders[j] <= orders[i] : orders[j] < orders[i];
+    }
+    shared_orders[place] = orders[i];
+    shared_indices[place] = first + i;
+  }
+  for (uint width = 4; width < count; width *= 2) {
+    threadgroup_barrier(mem_flags::mem_threadgroup);
+    const uint pair = first / width / 2 * 2 * width;
+    const uint middle = pair + width;
+    uint left = pair +
+        count_left(&shared_orders[pair],
+                   width,
+                   &shared_orders[middle],
+                   width,
+                   first - pair,
+                   order_t<T>(0));
+    uint right = middle + (first - left);
+    for (uint i = 0; i < 4; i++) {
+      const order_t<T> of_left = left < middle ? shared_orders[left] : 0;
+      const order_t<T> of_right =
+          right < middle + width ? shared_orders[right] : 0;
+      const bool is_right =
+          left == middle || (right < middle + width && of_right < of_left);
+      orders[i] = is_right ? of_right : of_left;
+      indices_of[i] = shared_indices[is_right ? right++ : left++];
+    }
+    threadgroup_barrier(mem_flags::mem_threadgroup);
+    for (uint i = 0; i < 4; i++) {
+      shared_orders[first + i] = orders[i];
+      shared_indices[first + i] = indices_of[i];
+    }
+  }
+  // Elements take the place of what they were sorted by
+  threadgroup_barrier(mem_flags::mem_threadgroup);
+  threadgroup T* shared_values =
+      reinterpret_cast<threadgroup T*>(shared_orders);
+  for (uint i = 0; i < 4; i++) {
+    shared_values[tid + i * group_size] = elements[i];
+  }
+  threadgroup_barrier(mem_flags::mem_threadgroup);
+  for (uint i = tid; i < count && start + i < kept; i += group_size) {
+    values[values_offset + (start + i) * index_t(values_strides[ndim - 1])] =
+        shared_values[shared_indices[i]];
+    indices[indices_offset + (start + i) * index_t(indices_strides[ndim - 1])] =
+        start + shared_indices[i];
+  }
+}
+
+#define REGISTER_RANKED_BLOCKS_(DTYPE, INDEX)                            \\
+  template [[host_name("ranked_blocks_" #DTYPE "_" #INDEX)]] kernel void \\
+  ranked_blocks<DTYPE, INDEX>(                                           \\
+      device DTYPE * values,                                             \\
+      device long* indices,                                              \\
+      constant DTYPE* input,                                             \\
+      constant long* sizes,                                              \\
+      constant long* input_strides,                                      \\
+      constant long* values_strides,                                     \\
+      constant long* indices_strides,                                    \\
+      constant long& ndim,                                               \\
+      constant long& kept,                                               \\
+      constant bool& descending,                                         \\
+      uint group [[threadgroup_position_in_grid]],                       \\
+      uint tid [[thread_position_in_threadgroup]],                       \\
+      uint group_size [[threads_per_threadgroup]])
+
+#define REGISTER_RANKED_BLOCKS(DTYPE)  \\
+  REGISTER_RANKED_BLOCKS_(DTYPE, int); \\
+  REGISTER_RANKED_BLOCKS_(DTYPE, long)
+
+REGISTER_RANKED_BLOCKS(float);
+REGISTER_RANKED_BLOCKS(half);
+REGISTER_RANKED_BLOCKS(bfloat);
+
+template <typename T, typename index_t>
+kernel void ranked_merge(
+    device T* values,
+    device long* indices,
+    constant T* run_values,
+    constant long* run_indices,
+    constant long* sizes,
+    constant long* values_strides,
+    constant long* indices_strides,
+    constant long& ndim,
+    constant long& kept,
+    constant bool& descending,
+    constant long& width,
+    uint tid [[thread_position_in_grid]]) {
+  const index_t size = sizes[ndim - 1];
+  const index_t threads = (size - 1) / 4 + 1;
+  const index_t first = index_t(tid) % threads * 4;
+  const index_t row_start = index_t(tid) / threads * size;
+  index_t rest = index_t(tid) / threads;
+  index_t values_offset = 0;
+  index_t indices_offset = 0;
+  for (long d = ndim - 2; d >= 0; d--) {
+    const index_t i = rest % index_t(sizes[d]);
+    rest /= index_t(sizes[d]);
+    values_offset += i * index_t(values_strides[d]);
+    indices_offset += i * index_t(indices_strides[d]);
+  }
+  const index_t pair = first / index_t(width) / 2 * 2 * index_t(width);
+  const index_t middle = pair + min(index_t(width), size - pair);
+  const index_t end = middle + min(index_t(width), size - middle);
+  constant T* row_values = run_values + row_start;
+  const order_t<T> mask = descending ? ~order_t<T>(0) : 0;
+  index_t left = pair +
+      count_left(row_values + pair,
+                 middle - pair,
+                 row_values + middle,
+                 end - middle,
+                 first - pair,
+                 mask);
+  index_t right = middle + (first - left);
+  for (index_t to = first;
+       to < first + min(index_t(4), min(size, index_t(kept)) - first);
+       to++) {
+    const bool is_right = left == middle ||
+        (right < end &&
+         (order_of(row_values[right]) ^ mask) <
+             (order_of(row_values[left]) ^ mask));
+    const index_t from = row_start + (is_right ? right++ : left++);
+    values[values_offset + to * index_t(values_strides[ndim - 1])] =
+        run_values[from];
+    indices[indices_offset + to * index_t(indices_strides[ndim - 1])] =
+        run_indices[from];
+  }
+}
+
+#define REGISTER_RANKED_MERGE_(DTYPE, INDEX)                            \\
+  template [[host_name("ranked_merge_" #DTYPE "_" #INDEX)]] kernel void \\
+  ranked_merge<DTYPE, INDEX>(                                           \\
+      device DTYPE * values,                                            \\
+      device long* indices,                                             \\
+      constant DTYPE* run_values,                                       \\
+      constant long* run_indices,                                       \\
+      constant long* sizes,                                             \\
+      constant long* values_strides,                                    \\
+      constant long* indices_strides,                                   \\
+      constant long& ndim,                                              \\
+      constant long& kept,                                              \\
+      constant bool& descending,                                        \\
+      constant long& width,                                             \\
+      uint tid [[thread_position_in_grid]])
+
+#define REGISTER_RANKED_MERGE(DTYPE)  \\
+  REGISTER_RANKED_MERGE_(DTYPE, int); \\
+  REGISTER_RANKED_MERGE_(DTYPE, long)
+
+REGISTER_RANKED_MERGE(float);
+REGISTER_RANKED_MERGE(half);
+REGISTER_RANKED_MERGE(bfloat);
diff --git a/aten/src/ATen/native/mps/operations/Ranks.mm b/aten/src/ATen/native/mps/operations/Ranks.mm
--- a/aten/src/ATen/native/mps/operations/Ranks.mm
+++ b/aten/src/ATen/native/mps/operations/Ranks.mm
@@ -1,13 +1,91 @@
+#include <ATen/ceil_div.h>
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Ranks_metallib.h>
+#endif
 
-std::tuple<Tensor&, Tensor&> ranked_out_mps(
-    const Tensor& self, int64_t k, int64_t dim_, bool largest, Tensor& values, Tensor& indices) {
+std::tuple<Tensor&, Tensor&> ranked_out_mps(const Tensor& self,
+                                            int64_t k,
+                                            int64_t dim_,
+                                            bool largest,
+                                            Tensor& values,
+                                            Tensor& indices) {
   using namespace mps;
   const int64_t dim = maybe_wrap_dim(dim_, self.dim());
   TORCH_CHECK(k <= self.size(dim), "ranked: k is out of range");
-  runMPSGraph(getCurrentMPSStream(), makeGraph(dim), feeds, values);
+  if (values.numel() == 0) {
+    return {values, indices};
+  }
+
+  const auto input = self.movedim(dim, -1);
+  const auto kept_values = values.movedim(dim, -1);
+  const auto kept_indices = indices.movedim(dim, -1);
+  const int64_t row_size = input.size(-1);
+  const auto type = scalarToMetalTypeString(input) +
+      (canUse32BitIndexMath(input) && canUse32BitIndexMath(kept_values) && canUse32BitIndexMath(kept_indices)
+           ? "_int"
+           : "_long");
+  MPSStream* stream = getCurrentMPSStream();
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto blocksPSO = lib.getPipelineStateForFunc("ranked_blocks_" + type);
+      auto mergePSO = lib.getPipelineStateForFunc("ranked_merge_" + type);
+      const auto most = std::min<int64_t>(1024, 4 * [blocksPSO maxTotalThreadsPerThreadgroup]);
+      int64_t width = 128;
+      while (width < row_size && 2 * width <= most) {
+        width *= 2;
+      }
+      Tensor run_values = width < row_size ? kept_values.new_empty(input.sizes()) : kept_values;
+      Tensor run_indices = width < row_size ? kept_indices.new_empty(input.sizes()) : kept_indices;
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(blocksPSO, "ranked", {input}, stream);
+      [computeEncoder setComputePipelineState:blocksPSO];
+      mtl_setArgs(computeEncoder,
+                  run_values,
+                  run_indices,
+                  input,
+                  input.sizes(),
+                  input.strides(),
+                  run_values.strides(),
+                  run_indices.strides(),
+                  input.dim(),
+                  run_values.size(-1),
+                  largest);
+      const auto blocks = input.numel() / row_size * at::ceil_div(row_size, width);
+      [computeEncoder dispatchThreadgroups:MTLSizeMake(blocks, 1, 1)
+                     threadsPerThreadgroup:MTLSizeMake(width / 4, 1, 1)];
+      for (; width < row_size; width *= 2) {
+        const auto merged_values = 2 * width < row_size ? kept_values.new_empty(input.sizes()) : kept_values;
+        const auto merged_indices = 2 * width < row_size ? kept_indices.new_empty(input.sizes()) : kept_indices;
+        [computeEncoder setComputePipelineState:mergePSO];
+        mtl_setArgs(computeEncoder,
+                    merged_values,
+                    merged_indices,
+                    run_values,
+                    run_indices,
+                    input.sizes(),
+                    merged_values.strides(),
+                    merged_indices.strides(),
+                    input.dim(),
+                    merged_values.size(-1),
+                    largest,
+                    width);
+        mtl_dispatch1DJob(computeEncoder, mergePSO, input.numel() / row_size * at::ceil_div<int64_t>(row_size, 4));
+        run_values = merged_values;
+        run_indices = merged_indices;
+      }
+      getMPSProfiler().endProfileKernel(blocksPSO, stream);
+    }
+  });
+
   return {values, indices};
 }
 
""",
    )


def test_a_median_of_all_elements(tmp_path: Path) -> None:
    made = plan(prepare(tmp_path), "middle", MIDDLE).changes.apply()
    host = next(text for path, text in made.items() if path.endswith("Ranks.mm"))
    assert_expected_inline(
        host[host.index("Tensor middle_mps") :],
        """\
Tensor middle_mps(const Tensor& input) {
  using namespace mps;
  Tensor output = at::empty({}, input.options());
  if (output.numel() == 0) {
    return output;
  }

  const auto input_ = input.flatten();
  const auto kept_values = output.unsqueeze(-1);
  const auto kept_indices = output.new_empty({1}, output.options().dtype(kLong));
  const int64_t row_size = input_.size(-1);
  const auto type = scalarToMetalTypeString(input_) +
      (canUse32BitIndexMath(input_) && canUse32BitIndexMath(kept_values) && canUse32BitIndexMath(kept_indices)
           ? "_int"
           : "_long");
  MPSStream* stream = getCurrentMPSStream();
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = stream->commandEncoder();
      auto blocksPSO = lib.getPipelineStateForFunc("middle_blocks_" + type);
      auto mergePSO = lib.getPipelineStateForFunc("middle_merge_" + type);
      const auto most = std::min<int64_t>(1024, 4 * [blocksPSO maxTotalThreadsPerThreadgroup]);
      int64_t width = 128;
      while (width < row_size && 2 * width <= most) {
        width *= 2;
      }
      Tensor run_values = kept_values.new_empty(input_.sizes());
      Tensor run_indices = kept_indices.new_empty(input_.sizes());
      // this function call is a no-op if MPS Profiler is not enabled
      getMPSProfiler().beginProfileKernel(blocksPSO, "middle", {input_}, stream);
      [computeEncoder setComputePipelineState:blocksPSO];
      mtl_setArgs(computeEncoder,
                  run_values,
                  run_indices,
                  input_,
                  input_.sizes(),
                  input_.strides(),
                  run_values.strides(),
                  run_indices.strides(),
                  input_.dim(),
                  run_values.size(-1),
                  false);
      const auto blocks = input_.numel() / row_size * at::ceil_div(row_size, width);
      [computeEncoder dispatchThreadgroups:MTLSizeMake(blocks, 1, 1)
                     threadsPerThreadgroup:MTLSizeMake(width / 4, 1, 1)];
      for (; width < row_size; width *= 2) {
        const auto merged_values = kept_values.new_empty(input_.sizes());
        const auto merged_indices = kept_indices.new_empty(input_.sizes());
        [computeEncoder setComputePipelineState:mergePSO];
        mtl_setArgs(computeEncoder,
                    merged_values,
                    merged_indices,
                    run_values,
                    run_indices,
                    input_.sizes(),
                    merged_values.strides(),
                    merged_indices.strides(),
                    input_.dim(),
                    merged_values.size(-1),
                    false,
                    width);
        mtl_dispatch1DJob(computeEncoder, mergePSO, input_.numel() / row_size * at::ceil_div<int64_t>(row_size, 4));
        run_values = merged_values;
        run_indices = merged_indices;
      }
      auto medianPSO = lib.getPipelineStateForFunc("middle_" + type);
      [computeEncoder setComputePipelineState:medianPSO];
      mtl_setArgs(computeEncoder,
                  kept_values,
                  kept_indices,
                  run_values,
                  run_indices,
                  input_.sizes(),
                  kept_values.strides(),
                  kept_indices.strides(),
                  input_.dim());
      mtl_dispatch1DJob(computeEncoder, medianPSO, input_.numel() / row_size);
      getMPSProfiler().endProfileKernel(blocksPSO, stream);
    }
  });

  return output;
}

} // namespace at::native
""",
    )


def test_a_file_has_the_helpers_once(tmp_path: Path) -> None:
    copy = prepare(tmp_path)
    for path, text in plan(copy, "ranked", RANKED).changes.apply().items():
        (copy.root / path).parent.mkdir(parents=True, exist_ok=True)
        (copy.root / path).write_text(text)
    both = plan(Checkout(copy.root, "named"), "middle", MIDDLE).changes.apply()
    kernels = next(text for path, text in both.items() if path.endswith("Ranks.metal"))
    assert kernels.count("inline index_t count_left(") == 1 and "kernel void middle(" in kernels
