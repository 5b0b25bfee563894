"""The ports of rows that find distinct values: a whole diff, and the launch of one that sorts."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.dtypes import FLOAT
from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.unique import Unique
from porter.plan.plan import Plan
from porter.plan.planner import plan_operator
from porter.verdict.verify import target_of
from tests.porter.plan.recorded import fork

ROWS = """
- func: runs(Tensor self, bool places, bool counts, int? dim=None) -> (Tensor, Tensor, Tensor)
  dispatch:
    CPU: runs_cpu
    MPS: runs_mps

- func: runs_along(Tensor self, int dim, bool places, bool counts) -> (Tensor, Tensor, Tensor)
  dispatch:
    CPU: runs_along_cpu
    MPS: runs_along_mps

- func: kinds(Tensor self, bool places, bool counts) -> (Tensor, Tensor, Tensor)
  dispatch:
    CPU: kinds_cpu
    MPS: kinds_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

static void runGraph(CachedGraph* graph, const Tensor& input, Tensor& output, Tensor& where, Tensor& last) {
  auto placeholder = Placeholder(graph->input_, input);
  runMPSGraph(getCurrentMPSStream(), graph->graph(), feeds, output);
}

static std::tuple<Tensor, Tensor, Tensor> tell_apart(
    const Tensor& self, bool where, bool many, bool is_sorted, std::optional<int64_t> dimOpt) {
  const Tensor& input = self.contiguous();
  int64_t dim = dimOpt.has_value() ? maybe_wrap_dim(dimOpt.value(), self.dim()) : 0;
  Tensor output = at::empty(input.sizes(), input.options());
  Tensor ranks = at::empty(input.sizes(), input.options().dtype(kLong));
  Tensor counts = at::empty(input.sizes(), input.options().dtype(kLong));
  Tensor last = at::empty({1}, ScalarType::Int, std::nullopt, kMPS, std::nullopt, std::nullopt);
  if (input.numel() == 0) {
    return std::make_tuple(output, ranks, counts);
  }
  @autoreleasepool {
    CachedGraph* graph = getGraph(input, is_sorted);
    runGraph(graph, input, output, ranks, last);
  }
  output = at::slice(output, dim, 0, last.item<int64_t>() + 1);
  return std::make_tuple(output, ranks, counts);
}

std::tuple<Tensor, Tensor, Tensor> runs_mps(
    const Tensor& self, bool places, bool counts, std::optional<int64_t> dim) {
  return tell_apart(self, places, counts, false, dim);
}

std::tuple<Tensor, Tensor, Tensor> runs_along_mps(const Tensor& self, int64_t dim, bool places, bool counts) {
  return tell_apart(self, places, counts, false, dim);
}

std::tuple<Tensor, Tensor, Tensor> kinds_mps(const Tensor& self, bool places, bool counts) {
  return tell_apart(self, places, counts, true, std::nullopt);
}

} // namespace at::native
"""
RUNS = Unique("self", False, "places", "counts", "dim", (FLOAT,))
KINDS = Unique("self", True, "places", "counts", dtypes=(FLOAT,))


def prepare(folder: Path, host: str = HOST) -> Checkout:
    copy = fork.copy_fork(folder)
    (copy.root / OPERATIONS / "Runs.mm").write_text(host)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    return Checkout(copy.root, "named")


def plan(copy: Checkout, op: str, found: Unique) -> Plan:
    return plan_operator(copy, op, programs=lambda row: FormProgram(op, found))


def read_body(plan: Plan, name: str) -> str:
    host = next(text for path, text in plan.changes.apply().items() if path.endswith("Runs.mm"))
    body = host[host.index(f" {name}(") :]
    return body[: body.index("\n}\n") + 3]


def test_slices_that_differ(tmp_path: Path) -> None:
    assert_expected_inline(
        plan(prepare(tmp_path), "runs", RUNS).changes.diff(),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Runs.metal b/aten/src/ATen/native/mps/kernels/Runs.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Runs.metal
@@ -0,0 +1,165 @@
+#include <metal_stdlib>
+
+using namespace metal;
+
+// The sum of the values of a threadgroup up to that of each thread
+inline uint scan_threadgroup(
+    threadgroup uint* sums,
+    uint value,
+    uint tid,
+    uint group_size) {
+  sums[tid] = value;
+  threadgroup_barrier(mem_flags::mem_threadgroup);
+  for (uint offset = 1; offset < group_size; offset *= 2) {
+    const uint before = tid >= offset ? sums[tid - offset] : 0;
+    threadgroup_barrier(mem_flags::mem_threadgroup);
+    sums[tid] += before;
+    threadgroup_barrier(mem_flags::mem_threadgroup);
+  }
+  return sums[tid];
+}
+
+template <typename T, typename index_t>
+kernel void runs_marks(
+    device atomic_int* marks,
+    device atomic_int* group_counts,
+    constant T* input,
+    constant long& slices,
+    constant long& slice_size,
+    constant long& group_size,
+    uint tid [[thread_position_in_grid]]) {
+  // A slice that differs from the one before is marked; the first is always
+  const index_t slice = index_t(tid) / index_t(slice_size) % index_t(slices);
+  if (slice == 0 ? tid > 0 : input[tid] == input[tid - index_t(slice_size)]) {
+    return;
+  }
+  if (atomic_exchange_explicit(marks + slice, 1, memory_order_relaxed) == 0) {
+    atomic_fetch_add_explicit(
+        group_counts + slice / index_t(group_size), 1, memory_order_relaxed);
+  }
+}
+
+#define REGISTER_RUNS_MARKS_(DTYPE, INDEX)                            \\
+  template [[host_name("runs_marks_" #DTYPE "_" #INDEX)]] kernel void \\
+  runs_marks<DTYPE, INDEX>(                                           \\
+      device atomic_int * marks,                                      \\
+      device atomic_int * group_counts,                               \\
+      constant DTYPE * input,                                         \\
+      constant long& slices,                                          \\
+      constant long& slice_size,                                      \\
+      constant long& group_size,                                      \\
+      uint tid [[thread_position_in_grid]])
+
+#define REGISTER_RUNS_MARKS(DTYPE)  \\
+  REGISTER_RUNS_MARKS_(DTYPE, int); \\
+  REGISTER_RUNS_MARKS_(DTYPE, long)
+
+REGISTER_RUNS_MARKS(float);
+REGISTER_RUNS_MARKS(half);
+REGISTER_RUNS_MARKS(bfloat);
+REGISTER_RUNS_MARKS(long);
+REGISTER_RUNS_MARKS(int);
+REGISTER_RUNS_MARKS(short);
+REGISTER_RUNS_MARKS(uchar);
+REGISTER_RUNS_MARKS(char);
+REGISTER_RUNS_MARKS(bool);
+
+kernel void runs_ends(
+    device long* group_ends,
+    device int* last,
+    constant int* group_counts,
+    constant long& groups,
+    uint tid [[thread_position_in_threadgroup]],
+    uint group_size [[threads_per_threadgroup]]) {
+  threadgroup uint sums[1024];
+  long total = 0;
+  for (long start = 0; start < groups; start += group_size) {
+    const long group = start + tid;
+    const uint sum = scan_threadgroup(
+        sums, group < groups ? group_counts[group] : 0, tid, group_size);
+    if (group < groups) {
+      group_ends[group] = total + sum;
+    }
+    total += sums[group_size - 1];
+    threadgroup_barrier(mem_flags::mem_threadgroup);
+  }
+  if (tid == 0) {
+    *last = total - 1;
+  }
+}
+
+kernel void runs_ranks(
+    device long* starts,
+    device long* inverse,
+    constant int* marks,
+    constant long* group_ends,
+    constant long& slices,
+    constant bool& has_inverse,
+    uint group [[threadgroup_position_in_grid]],
+    uint tid [[thread_position_in_threadgroup]],
+    uint group_size [[threads_per_threadgroup]]) {
+  threadgroup uint sums[1024];
+  const long slice = long(group) * group_size + tid;
+  const uint mark = slice < slices ? marks[slice] : 0;
+  const uint sum = scan_threadgroup(sums, mark, tid, group_size);
+  if (slice >= slices) {
+    return;
+  }
+  const long rank = group_ends[group] - sums[group_size - 1] + sum - 1;
+  if (mark) {
+    starts[rank] = slice;
+  }
+  if (has_inverse) {
+    inverse[slice] = rank;
+  }
+}
+
+template <typename T, typename index_t>
+kernel void runs(
+    device T* output,
+    device long* counts,
+    constant T* input,
+    constant long* starts,
+    constant int* last,
+    constant long& slices,
+    constant long& slice_size,
+    constant bool& has_counts,
+    uint tid [[thread_position_in_grid]]) {
+  const index_t slice = index_t(tid) / index_t(slice_size) % index_t(slices);
+  const index_t found = *last + 1;
+  if (slice < found) {
+    output[tid] =
+        input[tid + (index_t(starts[slice]) - slice) * index_t(slice_size)];
+  }
+  if (has_counts && index_t(tid) < found) {
+    counts[tid] =
+        (index_t(tid) + 1 < found ? starts[tid + 1] : slices) - starts[tid];
+  }
+}
+
+#define REGISTER_RUNS_(DTYPE, INDEX)                            \\
+  template [[host_name("runs_" #DTYPE "_" #INDEX)]] kernel void \\
+  runs<DTYPE, INDEX>(                                           \\
+      device DTYPE * output,                                    \\
+      device long* counts,                                      \\
+      constant DTYPE* input,                                    \\
+      constant long* starts,                                    \\
+      constant int* last,                                       \\
+      constant long& slices,                                    \\
+      constant long& slice_size,                                \\
+      constant bool& has_counts,                                \\
+      uint tid [[thread_position_in_grid]])
+
+#define REGISTER_RUNS(DTYPE)  \\
+  REGISTER_RUNS_(DTYPE, int); \\
+  REGISTER_RUNS_(DTYPE, long)
+
+REGISTER_RUNS(float);
+REGISTER_RUNS(half);
+REGISTER_RUNS(bfloat);
+REGISTER_RUNS(long);
+REGISTER_RUNS(int);
+REGISTER_RUNS(short);
+REGISTER_RUNS(uchar);
+REGISTER_RUNS(char);
+REGISTER_RUNS(bool);
diff --git a/aten/src/ATen/native/mps/operations/Runs.mm b/aten/src/ATen/native/mps/operations/Runs.mm
--- a/aten/src/ATen/native/mps/operations/Runs.mm
+++ b/aten/src/ATen/native/mps/operations/Runs.mm
@@ -1,6 +1,17 @@
+#include <ATen/WrapDimUtils.h>
+#include <ATen/ceil_div.h>
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
 #include <ATen/native/mps/OperationUtils.h>
+#include <c10/util/accumulate.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Runs_metallib.h>
+#endif
 
 static void runGraph(CachedGraph* graph, const Tensor& input, Tensor& output, Tensor& where, Tensor& last) {
   auto placeholder = Placeholder(graph->input_, input);
@@ -26,9 +37,57 @@
   return std::make_tuple(output, ranks, counts);
 }
 
-std::tuple<Tensor, Tensor, Tensor> runs_mps(
-    const Tensor& self, bool places, bool counts, std::optional<int64_t> dim) {
-  return tell_apart(self, places, counts, false, dim);
+std::tuple<Tensor, Tensor, Tensor> runs_mps(const Tensor& self, bool places, bool counts, std::optional<int64_t> dim) {
+  using namespace mps;
+
+  const Tensor& input = self.contiguous();
+  int64_t dim_ = dim.has_value() ? maybe_wrap_dim(dim.value(), self.dim()) : 0;
+  Tensor output = at::empty(input.sizes(), input.options());
+  Tensor ranks = at::empty(input.sizes(), input.options().dtype(kLong));
+  Tensor counts_ = at::empty(input.sizes(), input.options().dtype(kLong));
+  Tensor last = at::empty({1}, ScalarType::Int, std::nullopt, kMPS, std::nullopt, std::nullopt);
+  if (input.numel() == 0) {
+    return std::make_tuple(output, ranks, counts_);
+  }
+  const int64_t slices = dim.has_value() ? input.size(dim_) : input.numel();
+  const int64_t slice_size = dim.has_value() ? c10::multiply_integers(input.sizes().slice(dim_ + 1)) : 1;
+  const auto type = scalarToMetalTypeString(input) + (canUse32BitIndexMath(input) ? "_int" : "_long");
+  MPSStream* stream = getCurrentMPSStream();
+  auto marksPSO = lib.getPipelineStateForFunc("runs_marks_" + type);
+  auto endsPSO = lib.getPipelineStateForFunc("runs_ends");
+  auto ranksPSO = lib.getPipelineStateForFunc("runs_ranks");
+  auto PSO = lib.getPipelineStateForFunc("runs_" + type);
+  const auto group_size = std::min<int64_t>(
+      1024, std::min([endsPSO maxTotalThreadsPerThreadgroup], [ranksPSO maxTotalThreadsPerThreadgroup]));
+  const auto groups = at::ceil_div(slices, group_size);
+  const auto marks = input.new_zeros({slices}, input.options().dtype(kInt));
+  const auto group_counts = input.new_zeros({groups}, input.options().dtype(kInt));
+  const auto group_ends = input.new_empty({groups}, input.options().dtype(kLong));
+  const auto starts = input.new_empty({slices}, input.options().dtype(kLong));
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, "runs", {input}, stream);
+      [computeEncoder setComputePipelineState:marksPSO];
+      mtl_setArgs(computeEncoder, marks, group_counts, input, slices, slice_size, group_size);
+      mtl_dispatch1DJob(computeEncoder, marksPSO, input.numel());
+      [computeEncoder setComputePipelineState:endsPSO];
+      mtl_setArgs(computeEncoder, group_ends, last, group_counts, groups);
+      [computeEncoder dispatchThreadgroups:MTLSizeMake(1, 1, 1) threadsPerThreadgroup:MTLSizeMake(group_size, 1, 1)];
+      [computeEncoder setComputePipelineState:ranksPSO];
+      mtl_setArgs(computeEncoder, starts, ranks, marks, group_ends, slices, places);
+      [computeEncoder dispatchThreadgroups:MTLSizeMake(groups, 1, 1)
+                     threadsPerThreadgroup:MTLSizeMake(group_size, 1, 1)];
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(computeEncoder, output, counts_, input, starts, last, slices, slice_size, counts);
+      mtl_dispatch1DJob(computeEncoder, PSO, input.numel());
+      getMPSProfiler().endProfileKernel(PSO, stream);
+    }
+  });
+
+  output = at::slice(output, dim_, 0, last.item<int64_t>() + 1);
+  return std::make_tuple(output, ranks, counts_);
 }
 
 std::tuple<Tensor, Tensor, Tensor> runs_along_mps(const Tensor& self, int64_t dim, bool places, bool counts) {
""",
    )


def test_a_dimension_that_is_always_there(tmp_path: Path) -> None:
    body = read_body(plan(prepare(tmp_path), "runs_along", RUNS), "runs_along_mps")
    assert_expected_inline(
        "\n".join(line for line in body.splitlines() if "const int64_t " in line),
        """\
  const int64_t slices = input.size(dim_);
  const int64_t slice_size = c10::multiply_integers(input.sizes().slice(dim_ + 1));""",
    )


def test_elements_are_sorted_first(tmp_path: Path) -> None:
    body = read_body(plan(prepare(tmp_path), "kinds", KINDS), "kinds_mps")
    start = body[body.index("  const int64_t slices") : body.index("  dispatch_sync")]
    assert_expected_inline(
        start,
        """\
  const int64_t slices = input.numel();
  const int64_t slice_size = 1;
  const auto type = scalarToMetalTypeString(input) + (canUse32BitIndexMath(input) ? "_int" : "_long");
  MPSStream* stream = getCurrentMPSStream();
  const auto elements = input.new_empty({slices});
  const auto places_ = input.new_empty({slices}, input.options().dtype(kLong));
  const auto input_ = input.flatten();
  const auto kept_values = elements;
  const auto kept_indices = places_;
  const int64_t row_size = input_.size(-1);
  const auto type_ = scalarToMetalTypeString(input_) +
      (canUse32BitIndexMath(input_) && canUse32BitIndexMath(kept_values) && canUse32BitIndexMath(kept_indices)
           ? "_int"
           : "_long");
""",
    )
    launched = re.findall(r"\[computeEncoder setComputePipelineState:(\w+)\];|(mtl_setArgs\(computeEncoder, .*)", body)
    assert_expected_inline(
        "\n".join(map("".join, launched)),
        """\
blocksPSO
mergePSO
marksPSO
mtl_setArgs(computeEncoder, marks, group_counts, elements, slices, slice_size, group_size);
endsPSO
mtl_setArgs(computeEncoder, group_ends, last, group_counts, groups);
ranksPSO
mtl_setArgs(computeEncoder, starts, ranks, marks, group_ends, places_, slices, places);
PSO
mtl_setArgs(computeEncoder, output, counts_, elements, starts, last, slices, slice_size, counts);""",
    )


def write(copy: Checkout, op: str, found: Unique) -> Checkout:
    for path, text in plan(copy, op, found).changes.apply().items():
        (copy.root / path).parent.mkdir(parents=True, exist_ok=True)
        (copy.root / path).write_text(text)
    return Checkout(copy.root, "named")


def test_helpers_are_in_a_file_once(tmp_path: Path) -> None:
    both = plan(write(prepare(tmp_path), "runs", RUNS), "kinds", KINDS).changes.apply()
    kernels = next(text for path, text in both.items() if path.endswith("Runs.metal"))
    assert kernels.count("inline uint scan_threadgroup(") == 1 and kernels.count("inline index_t count_left(") == 1


def test_rows_of_a_file_share_kernels(tmp_path: Path) -> None:
    made = plan(write(prepare(tmp_path), "runs", RUNS), "runs_along", RUNS)
    assert not any(path.endswith("Runs.metal") for path in made.changes.apply())
    assert 'lib.getPipelineStateForFunc("runs_marks_" + type)' in read_body(made, "runs_along_mps")
    assert target_of(made, "runs_along").kernels == ("runs",)


def test_what_only_the_last_row_calls_is_ported_in_its_place(tmp_path: Path) -> None:
    copy = write(write(prepare(tmp_path), "runs", RUNS), "kinds", KINDS)
    last = plan(copy, "runs_along", RUNS)
    host = next(text for path, text in last.changes.apply().items() if path.endswith("Runs.mm"))
    assert "runMPSGraph" not in host and "runGraph" not in host
    assert "const int64_t slices = dimOpt.has_value() ? input.size(dim) : input.numel();" in read_body(
        last, "tell_apart"
    )
    assert "return tell_apart(self, places, counts, false, dim);" in read_body(last, "runs_along_mps")


def test_nothing_reads_how_many_there_are(tmp_path: Path) -> None:
    copy = prepare(tmp_path, HOST.replace("last.item<int64_t>() + 1", "1"))
    with pytest.raises(PorterError, match="the host code reads from no tensor how many values there are"):
        plan(copy, "runs", replace(RUNS, dim="dim"))
