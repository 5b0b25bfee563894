"""Ports of coordinate maps: whole diffs of one that reads and one that adds, on a copy of the embedded fork."""

import re
from dataclasses import replace
from pathlib import Path

from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.dtypes import FLOAT, HALF, INT, LONG
from porter.core.layout import KERNELS, METAL_HEADERS, NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.index_map import AccessMode, IndexMap, IndexRule
from porter.metal.forms.sums import Bincount
from porter.plan.plan import Plan
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROWS = """
- func: mirrored(Tensor self, int[] dims) -> Tensor
  dispatch:
    CPU: mirrored_cpu
    MPS: mirrored_mps

- func: rows_backward(Tensor grad_output, Tensor indices, int count) -> Tensor
  dispatch:
    CPU: rows_backward_cpu
    MPS: rows_backward_mps

- func: added_at.out(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: added_at_out_cpu
    MPS: added_at_out_mps

- func: binned(Tensor self, Tensor? weights=None, int least=0) -> Tensor
  dispatch:
    CPU: binned_cpu
    MPS: binned_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

Tensor mirrored_mps(const Tensor& self, IntArrayRef dims) {
  using namespace mps;
  Tensor result = at::empty(self.sizes(), self.options());
  NSMutableArray<NSNumber*>* axes = [NSMutableArray<NSNumber*> new];
  for (const auto dim : dims) {
    [axes addObject:@(dim)];
  }
  if (self.numel() <= 1 || axes.count == 0) {
    return result.copy_(self);
  }
  runMPSGraph(getCurrentMPSStream(), makeGraph(axes), feeds, result);
  return result;
}

Tensor rows_backward_mps(const Tensor& grad_, const Tensor& indices, int64_t count) {
  using namespace mps;
  Tensor grad_weight = at::empty({count, grad_.size(-1)}, grad_.options());
  if (grad_weight.numel() == 0) {
    return grad_weight;
  }
  runMPSGraph(getCurrentMPSStream(), makeGraph(count), feeds, grad_weight);
  return grad_weight;
}

Tensor& added_at_out_mps(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src, Tensor& out) {
  using namespace mps;
  TORCH_CHECK(!self.is_complex(), "added_at: no complex numbers");
  dim = maybe_wrap_dim(dim, self.dim());
  runMPSGraph(getCurrentMPSStream(), makeGraph(dim), feeds, out);
  return out;
}

} // namespace at::native
"""
BINS_HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

static Tensor& binned_impl(const Tensor& self, const Tensor& weights, Tensor& output) {
  using namespace mps;
  bool has_weights = weights.defined();
  auto graph = makeMPSGraph(self, has_weights);
  // Run the graph
  runMPSGraph(getCurrentMPSStream(), graph, feeds, output);
  return output;
}

Tensor binned_mps(const Tensor& self, const std::optional<Tensor>& weights_opt, int64_t least) {
  c10::MaybeOwned<Tensor> weights_maybe_owned = at::borrow_from_optional_tensor(weights_opt);
  const Tensor& weights = *weights_maybe_owned;
  if (self.dim() == 1 && self.numel() == 0) {
    return at::zeros({least}, kLong, std::nullopt, kMPS);
  }
  const int64_t count = std::max(self.max().item<int64_t>() + 1L, least);
  Tensor output;
  Tensor weights_ = weights;
  if (weights.defined()) {
    if (weights.scalar_type() != ScalarType::Float) {
      weights_ = weights.to(kInt);
    }
    output = at::zeros({count}, weights_.options());
  } else {
    output = at::zeros({count}, kLong, std::nullopt, kMPS);
  }
  return binned_impl(self, weights_, output);
}

} // namespace at::native
"""
BINS = Bincount("self", "weights", dtypes=(FLOAT, LONG, INT), index_dtypes=(INT, LONG))
MIRRORED = IndexMap(IndexRule.REVERSED, AccessMode.READ, "dims", source="self", dtypes=(FLOAT, HALF))
ADDED = IndexMap(
    IndexRule.ELEMENT,
    AccessMode.ADD,
    "dim",
    "index",
    "src",
    start="self",
    dtypes=(FLOAT, HALF),
    index_dtypes=(INT, LONG),
)
ROWS_ADDED = IndexMap(
    IndexRule.ROW, AccessMode.ADD, index="indices", source="grad_output", dtypes=(FLOAT, HALF), index_dtypes=(INT, LONG)
)
ATOMIC = """template <> struct AtomicType<float> {};
template <> struct AtomicType<half> {};
template <typename T> using AtomicType_t = typename AtomicType<T>::type;
"""


LIBRARY = """#ifndef PYTORCH_JIT_COMPILE_SHADERS
static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
#else
#include <ATen/native/mps/Puts_metallib.h>
#endif

"""


def plan(folder: Path, op: str, found: IndexMap | Bincount, atomic: str = ATOMIC, host: str = HOST) -> Plan:
    copy = fork.copy_fork(folder)
    (copy.root / OPERATIONS / "Puts.mm").write_text(host)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    header = copy.root / METAL_HEADERS / "atomic.h"
    header.unlink(missing_ok=True)
    if atomic:
        header.write_text(atomic)
    return plan_operator(Checkout(copy.root, "named"), op, programs=lambda row: FormProgram(op, found))


def test_a_map_that_reads(tmp_path: Path) -> None:
    assert_expected_inline(
        plan(tmp_path, "mirrored", MIRRORED).changes.diff(),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Puts.metal b/aten/src/ATen/native/mps/kernels/Puts.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Puts.metal
@@ -0,0 +1,54 @@
+#include <metal_stdlib>
+
+using namespace metal;
+
+template <typename T, typename index_t>
+[[max_total_threads_per_threadgroup(256)]] kernel void mirrored(
+    device T* output,
+    constant T* input,
+    constant long* sizes,
+    constant long* output_strides,
+    constant long* input_strides,
+    constant long& ndim,
+    constant ulong& reversed,
+    uint tid [[thread_position_in_grid]]) {
+  index_t rest = tid;
+  index_t output_offset = 0;
+  index_t input_offset = 0;
+  for (long d = ndim - 1; d >= 0; d--) {
+    const index_t i = rest % index_t(sizes[d]);
+    rest /= index_t(sizes[d]);
+    const index_t at = reversed >> d & 1 ? index_t(sizes[d]) - 1 - i : i;
+    output_offset += i * index_t(output_strides[d]);
+    input_offset += at * index_t(input_strides[d]);
+  }
+  output[output_offset] = input[input_offset];
+}
+
+#define REGISTER_MIRRORED_(DTYPE, INDEX)                            \\
+  template [[host_name("mirrored_" #DTYPE "_" #INDEX)]] kernel void \\
+  mirrored<DTYPE, INDEX>(                                           \\
+      device DTYPE * output,                                        \\
+      constant DTYPE * input,                                       \\
+      constant long* sizes,                                         \\
+      constant long* output_strides,                                \\
+      constant long* input_strides,                                 \\
+      constant long& ndim,                                          \\
+      constant ulong& reversed,                                     \\
+      uint tid [[thread_position_in_grid]])
+
+#define REGISTER_MIRRORED(DTYPE)  \\
+  REGISTER_MIRRORED_(DTYPE, int); \\
+  REGISTER_MIRRORED_(DTYPE, long)
+
+REGISTER_MIRRORED(float);
+REGISTER_MIRRORED(half);
+REGISTER_MIRRORED(bfloat);
+REGISTER_MIRRORED(long);
+REGISTER_MIRRORED(int);
+REGISTER_MIRRORED(short);
+REGISTER_MIRRORED(uchar);
+REGISTER_MIRRORED(char);
+REGISTER_MIRRORED(bool);
+REGISTER_MIRRORED(float2);
+REGISTER_MIRRORED(half2);
diff --git a/aten/src/ATen/native/mps/operations/Puts.mm b/aten/src/ATen/native/mps/operations/Puts.mm
--- a/aten/src/ATen/native/mps/operations/Puts.mm
+++ b/aten/src/ATen/native/mps/operations/Puts.mm
@@ -1,18 +1,43 @@
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
+#include <ATen/native/ReduceOpsUtils.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Puts_metallib.h>
+#endif
 
 Tensor mirrored_mps(const Tensor& self, IntArrayRef dims) {
   using namespace mps;
   Tensor result = at::empty(self.sizes(), self.options());
-  NSMutableArray<NSNumber*>* axes = [NSMutableArray<NSNumber*> new];
-  for (const auto dim : dims) {
-    [axes addObject:@(dim)];
-  }
-  if (self.numel() <= 1 || axes.count == 0) {
+  if (self.numel() <= 1) {
     return result.copy_(self);
   }
-  runMPSGraph(getCurrentMPSStream(), makeGraph(axes), feeds, result);
+  if (result.numel() == 0) {
+    return result;
+  }
+
+  const uint64_t reversed = make_dim_mask(dims, result.dim(), /*allow_empty_dims=*/true).to_ullong();
+  MPSStream* stream = getCurrentMPSStream();
+  const std::string index_type = canUse32BitIndexMath(result) && canUse32BitIndexMath(self) ? "int" : "long";
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO = lib.getPipelineStateForFunc("mirrored_" + scalarToMetalTypeString(result) + "_" + index_type);
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, "mirrored", {self}, stream);
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(
+          computeEncoder, result, self, result.sizes(), result.strides(), self.strides(), result.dim(), reversed);
+      mtl_dispatch1DJob(computeEncoder, PSO, result.numel());
+      getMPSProfiler().endProfileKernel(PSO, stream);
+    }
+  });
+
   return result;
 }
 
""",
    )


def test_a_map_that_looks_up(tmp_path: Path) -> None:
    """A thread has four places along the dimension of the index, which tensors without dimensions do not have."""
    looked_up = IndexMap(IndexRule.ELEMENT, AccessMode.READ, "dim", "index", "self", index_dtypes=(LONG,))
    diff = plan(tmp_path, "added_at", looked_up).changes.diff()
    assert "+[[max_total_threads_per_threadgroup(256)]] kernel void added_at(\n" in diff
    assert "+  const int64_t width = ensure_nonempty_size(out, dim);\n" in diff
    assert "+      mtl_dispatch1DJob(computeEncoder, PSO, out.numel() / width * ((width + 3) / 4));\n" in diff


def test_rows_that_are_added(tmp_path: Path) -> None:
    """Where there are no indices, the kernel is not launched: all gradients are zero."""
    assert_expected_inline(
        plan(tmp_path, "rows_backward", ROWS_ADDED).changes.diff(),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Puts.metal b/aten/src/ATen/native/mps/kernels/Puts.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Puts.metal
@@ -0,0 +1,75 @@
+#include <c10/metal/atomic.h>
+#include <c10/metal/utils.h>
+#include <metal_stdlib>
+
+using namespace metal;
+
+// The type that elements are added up in: of 32 bits for floating-point ones of
+// 16
+template <typename T>
+using sum_t = ::metal::
+    conditional_t<::metal::is_integral_v<T>, T, c10::metal::opmath_t<T>>;
+
+template <typename T, typename I, typename index_t>
+[[max_total_threads_per_threadgroup(256)]] kernel void rows_backward(
+    device c10::metal::AtomicType_t<sum_t<T>>* output,
+    constant T* grad_output,
+    constant I* index,
+    constant long* sizes,
+    constant long* output_strides,
+    constant long* grad_output_strides,
+    constant long* index_strides,
+    constant index_t& output_size,
+    constant long& ndim,
+    constant long& index_ndim,
+    uint tid [[thread_position_in_grid]]) {
+  index_t rest = tid;
+  index_t output_offset = 0;
+  index_t grad_output_offset = 0;
+  index_t index_offset = 0;
+  for (long d = ndim - 1; d >= 0; d--) {
+    const index_t i = rest % index_t(sizes[d]);
+    rest /= index_t(sizes[d]);
+    grad_output_offset += i * index_t(grad_output_strides[d]);
+    if (d < index_ndim) {
+      index_offset += i * index_t(index_strides[d]);
+    } else {
+      output_offset += i * index_t(output_strides[d - index_ndim + 1]);
+    }
+  }
+  const long at = index[index_offset];
+  if (at >= 0 && at < output_size) {
+    output_offset += index_t(at) * index_t(output_strides[0]);
+    c10::metal::AtomicType<sum_t<T>>::atomic_add(
+        output,
+        output_offset,
+        static_cast<sum_t<T>>(grad_output[grad_output_offset]));
+  }
+}
+
+#define REGISTER_ROWS_BACKWARD_(DTYPE, DTYPE1, INDEX)               \\
+  template [[host_name(                                             \\
+      "rows_backward_" #DTYPE "_" #DTYPE1 "_" #INDEX)]] kernel void \\
+  rows_backward<DTYPE, DTYPE1, INDEX>(                              \\
+      device c10::metal::AtomicType_t<sum_t<DTYPE>> * output,       \\
+      constant DTYPE * grad_output,                                 \\
+      constant DTYPE1 * index,                                      \\
+      constant long* sizes,                                         \\
+      constant long* output_strides,                                \\
+      constant long* grad_output_strides,                           \\
+      constant long* index_strides,                                 \\
+      constant INDEX& output_size,                                  \\
+      constant long& ndim,                                          \\
+      constant long& index_ndim,                                    \\
+      uint tid [[thread_position_in_grid]])
+
+#define REGISTER_ROWS_BACKWARD(DTYPE, DTYPE1)  \\
+  REGISTER_ROWS_BACKWARD_(DTYPE, DTYPE1, int); \\
+  REGISTER_ROWS_BACKWARD_(DTYPE, DTYPE1, long)
+
+REGISTER_ROWS_BACKWARD(float, int);
+REGISTER_ROWS_BACKWARD(float, long);
+REGISTER_ROWS_BACKWARD(half, int);
+REGISTER_ROWS_BACKWARD(half, long);
+REGISTER_ROWS_BACKWARD(bfloat, int);
+REGISTER_ROWS_BACKWARD(bfloat, long);
diff --git a/aten/src/ATen/native/mps/operations/Puts.mm b/aten/src/ATen/native/mps/operations/Puts.mm
--- a/aten/src/ATen/native/mps/operations/Puts.mm
+++ b/aten/src/ATen/native/mps/operations/Puts.mm
@@ -1,6 +1,16 @@
+#include <ATen/Context.h>
+#include <ATen/OpMathType.h>
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Puts_metallib.h>
+#endif
 
 Tensor mirrored_mps(const Tensor& self, IntArrayRef dims) {
   using namespace mps;
@@ -22,7 +32,41 @@
   if (grad_weight.numel() == 0) {
     return grad_weight;
   }
-  runMPSGraph(getCurrentMPSStream(), makeGraph(count), feeds, grad_weight);
+  at::globalContext().alertNotDeterministic("rows_backward_mps");
+  grad_weight.zero_();
+  const auto sums = grad_weight.to(toOpMathType(grad_weight.scalar_type()));
+  MPSStream* stream = getCurrentMPSStream();
+  const std::string index_type =
+      canUse32BitIndexMath(sums) && canUse32BitIndexMath(grad_) && canUse32BitIndexMath(indices) ? "int" : "long";
+  if (grad_.numel() > 0) {
+    dispatch_sync_with_rethrow(stream->queue(), ^() {
+      @autoreleasepool {
+        auto computeEncoder = stream->commandEncoder();
+        auto PSO = lib.getPipelineStateForFunc("rows_backward_" + scalarToMetalTypeString(grad_weight) + "_" +
+                                               scalarToMetalTypeString(indices) + "_" + index_type);
+        // this function call is a no-op if MPS Profiler is not enabled
+        getMPSProfiler().beginProfileKernel(PSO, "rows_backward", {grad_, indices}, stream);
+        [computeEncoder setComputePipelineState:PSO];
+        mtl_setArgs(computeEncoder,
+                    sums,
+                    grad_,
+                    indices,
+                    grad_.sizes(),
+                    sums.strides(),
+                    grad_.strides(),
+                    indices.strides(),
+                    sums.size(0),
+                    grad_.dim(),
+                    indices.dim());
+        mtl_dispatch1DJob(computeEncoder, PSO, grad_.numel());
+        getMPSProfiler().endProfileKernel(PSO, stream);
+      }
+    });
+  }
+  if (!sums.is_same(grad_weight)) {
+    grad_weight.copy_(sums);
+  }
+
   return grad_weight;
 }
 
""",
    )


def test_a_row_that_is_skipped(tmp_path: Path) -> None:
    """The kernel is passed the number of the index that has no row."""
    diff = plan(tmp_path, "rows_backward", replace(ROWS_ADDED, skipped="count")).changes.diff()
    assert "if (at >= 0 && at < output_size && at != count) {" in diff
    assert re.search(r"indices\.dim\(\),\n\+ +count\);", diff)


def test_rows_that_are_averaged(tmp_path: Path) -> None:
    """The kernel reads what host code has divided."""
    diff = plan(tmp_path, "rows_backward", replace(ROWS_ADDED, averaged="count")).changes.diff()
    assert_expected_inline(
        _read_between(diff, "Tensor averaged", "grad_weight.zero_"),
        """\
  Tensor averaged = grad_;
  if (count && grad_.numel() > 0) {
    const auto rows = indices.flatten();
    const auto counts = rows.bincount({}, grad_weight.size(0)).index_select(0, rows);
    averaged = grad_.reshape({rows.numel(), -1}).div(counts.unsqueeze(-1)).view(grad_.sizes());
  }
""",
    )
    assert re.search(r"sums,\n\+ +averaged,\n\+ +indices,\n\+ +averaged.sizes\(\),", diff)


def _read_between(diff: str, first: str, after: str) -> str:
    """The lines that are added from one that has some text to one that has another."""
    lines = [line.removeprefix("+") for line in diff.splitlines()]
    begin = next(i for i, line in enumerate(lines) if first in line)
    return "".join(f"{line}\n" for line in lines[begin:][: next(i for i, x in enumerate(lines[begin:]) if after in x)])


def test_a_map_that_adds(tmp_path: Path) -> None:
    assert_expected_inline(
        plan(tmp_path, "added_at", ADDED).changes.diff(),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Puts.metal b/aten/src/ATen/native/mps/kernels/Puts.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Puts.metal
@@ -0,0 +1,75 @@
+#include <c10/metal/atomic.h>
+#include <c10/metal/utils.h>
+#include <metal_stdlib>
+
+using namespace metal;
+
+// The type that elements are added up in: of 32 bits for floating-point ones of
+// 16
+template <typename T>
+using sum_t = ::metal::
+    conditional_t<::metal::is_integral_v<T>, T, c10::metal::opmath_t<T>>;
+
+template <typename T, typename I, typename index_t>
+[[max_total_threads_per_threadgroup(256)]] kernel void added_at(
+    device c10::metal::AtomicType_t<sum_t<T>>* output,
+    constant T* src,
+    constant I* index,
+    constant long* sizes,
+    constant long* output_strides,
+    constant long* src_strides,
+    constant long* index_strides,
+    constant index_t& output_size,
+    constant index_t& output_stride,
+    constant long& ndim,
+    constant long& dim,
+    uint tid [[thread_position_in_grid]]) {
+  index_t rest = tid;
+  index_t output_offset = 0;
+  index_t src_offset = 0;
+  index_t index_offset = 0;
+  for (long d = ndim - 1; d >= 0; d--) {
+    const index_t i = rest % index_t(sizes[d]);
+    rest /= index_t(sizes[d]);
+    if (d != dim) {
+      output_offset += i * index_t(output_strides[d]);
+    }
+    src_offset += i * index_t(src_strides[d]);
+    index_offset += i * index_t(index_strides[d]);
+  }
+  const long at = index[index_offset];
+  if (at >= 0 && at < output_size) {
+    c10::metal::AtomicType<sum_t<T>>::atomic_add(
+        output,
+        output_offset + index_t(at) * output_stride,
+        static_cast<sum_t<T>>(src[src_offset]));
+  }
+}
+
+#define REGISTER_ADDED_AT_(DTYPE, DTYPE1, INDEX)                           \\
+  template                                                                 \\
+      [[host_name("added_at_" #DTYPE "_" #DTYPE1 "_" #INDEX)]] kernel void \\
+      added_at<DTYPE, DTYPE1, INDEX>(                                      \\
+          device c10::metal::AtomicType_t<sum_t<DTYPE>> * output,          \\
+          constant DTYPE * src,                                            \\
+          constant DTYPE1 * index,                                         \\
+          constant long* sizes,                                            \\
+          constant long* output_strides,                                   \\
+          constant long* src_strides,                                      \\
+          constant long* index_strides,                                    \\
+          constant INDEX& output_size,                                     \\
+          constant INDEX& output_stride,                                   \\
+          constant long& ndim,                                             \\
+          constant long& dim,                                              \\
+          uint tid [[thread_position_in_grid]])
+
+#define REGISTER_ADDED_AT(DTYPE, DTYPE1)  \\
+  REGISTER_ADDED_AT_(DTYPE, DTYPE1, int); \\
+  REGISTER_ADDED_AT_(DTYPE, DTYPE1, long)
+
+REGISTER_ADDED_AT(float, int);
+REGISTER_ADDED_AT(float, long);
+REGISTER_ADDED_AT(half, int);
+REGISTER_ADDED_AT(half, long);
+REGISTER_ADDED_AT(bfloat, int);
+REGISTER_ADDED_AT(bfloat, long);
diff --git a/aten/src/ATen/native/mps/operations/Puts.mm b/aten/src/ATen/native/mps/operations/Puts.mm
--- a/aten/src/ATen/native/mps/operations/Puts.mm
+++ b/aten/src/ATen/native/mps/operations/Puts.mm
@@ -1,6 +1,17 @@
+#include <ATen/Context.h>
+#include <ATen/OpMathType.h>
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
+#include <ATen/native/NonEmptyUtils.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Puts_metallib.h>
+#endif
 
 Tensor mirrored_mps(const Tensor& self, IntArrayRef dims) {
   using namespace mps;
@@ -30,7 +41,51 @@
   using namespace mps;
   TORCH_CHECK(!self.is_complex(), "added_at: no complex numbers");
   dim = maybe_wrap_dim(dim, self.dim());
-  runMPSGraph(getCurrentMPSStream(), makeGraph(dim), feeds, out);
+  if (out.numel() == 0) {
+    return out;
+  }
+
+  TORCH_CHECK(src.scalar_type() == out.scalar_type(),
+              "Expected src to have dtype ",
+              out.scalar_type(),
+              ", but got ",
+              src.scalar_type());
+  at::globalContext().alertNotDeterministic("added_at_mps");
+  out.copy_(self);
+  const auto sums = out.to(toOpMathType(out.scalar_type()));
+  MPSStream* stream = getCurrentMPSStream();
+  const std::string index_type =
+      canUse32BitIndexMath(sums) && canUse32BitIndexMath(src) && canUse32BitIndexMath(index) ? "int" : "long";
+  if (index.numel() > 0) {
+    dispatch_sync_with_rethrow(stream->queue(), ^() {
+      @autoreleasepool {
+        auto computeEncoder = stream->commandEncoder();
+        auto PSO = lib.getPipelineStateForFunc("added_at_" + scalarToMetalTypeString(out) + "_" +
+                                               scalarToMetalTypeString(index) + "_" + index_type);
+        // this function call is a no-op if MPS Profiler is not enabled
+        getMPSProfiler().beginProfileKernel(PSO, "added_at", {src, index}, stream);
+        [computeEncoder setComputePipelineState:PSO];
+        mtl_setArgs(computeEncoder,
+                    sums,
+                    src,
+                    index,
+                    index.sizes(),
+                    sums.strides(),
+                    src.strides(),
+                    index.strides(),
+                    ensure_nonempty_size(sums, dim),
+                    ensure_nonempty_stride(sums, dim),
+                    index.dim(),
+                    dim);
+        mtl_dispatch1DJob(computeEncoder, PSO, index.numel());
+        getMPSProfiler().endProfileKernel(PSO, stream);
+      }
+    });
+  }
+  if (!sums.is_same(out)) {
+    out.copy_(sums);
+  }
+
   return out;
 }
 
""",
    )


def test_bins(tmp_path: Path) -> None:
    """The result is of zeros already, some elements are there, and the source may be left out."""
    atomic = f"{ATOMIC}template <> struct AtomicType<int> {{}};\ntemplate <> struct AtomicType<long> {{}};\n"
    assert_expected_inline(
        plan(tmp_path, "binned", BINS, atomic, BINS_HOST).changes.diff(),
        """\
diff --git a/aten/src/ATen/native/mps/kernels/Puts.metal b/aten/src/ATen/native/mps/kernels/Puts.metal
new file mode 100644
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Puts.metal
@@ -0,0 +1,56 @@
+#include <c10/metal/atomic.h>
+#include <c10/metal/utils.h>
+#include <metal_stdlib>
+
+using namespace metal;
+
+// The type that elements are added up in: of 32 bits for floating-point ones of
+// 16
+template <typename T>
+using sum_t = ::metal::
+    conditional_t<::metal::is_integral_v<T>, T, c10::metal::opmath_t<T>>;
+
+template <typename T, typename I, typename index_t>
+[[max_total_threads_per_threadgroup(256)]] kernel void binned(
+    device c10::metal::AtomicType_t<sum_t<T>>* output,
+    constant I* input,
+    constant T* weights,
+    constant index_t& output_size,
+    constant index_t& output_stride,
+    constant index_t& input_stride,
+    constant index_t& weights_stride,
+    constant bool& has_weights,
+    uint tid [[thread_position_in_grid]]) {
+  const long at = input[tid * input_stride];
+  if (at >= 0 && at < output_size) {
+    const sum_t<T> value = has_weights
+        ? static_cast<sum_t<T>>(weights[tid * weights_stride])
+        : sum_t<T>(1);
+    c10::metal::AtomicType<sum_t<T>>::atomic_add(
+        output, index_t(at) * output_stride, value);
+  }
+}
+
+#define REGISTER_BINNED_(DTYPE, DTYPE1, INDEX)                                \\
+  template [[host_name("binned_" #DTYPE "_" #DTYPE1 "_" #INDEX)]] kernel void \\
+  binned<DTYPE, DTYPE1, INDEX>(                                               \\
+      device c10::metal::AtomicType_t<sum_t<DTYPE>> * output,                 \\
+      constant DTYPE1 * input,                                                \\
+      constant DTYPE * weights,                                               \\
+      constant INDEX & output_size,                                           \\
+      constant INDEX & output_stride,                                         \\
+      constant INDEX & input_stride,                                          \\
+      constant INDEX & weights_stride,                                        \\
+      constant bool& has_weights,                                             \\
+      uint tid [[thread_position_in_grid]])
+
+#define REGISTER_BINNED(DTYPE, DTYPE1)  \\
+  REGISTER_BINNED_(DTYPE, DTYPE1, int); \\
+  REGISTER_BINNED_(DTYPE, DTYPE1, long)
+
+REGISTER_BINNED(float, int);
+REGISTER_BINNED(float, long);
+REGISTER_BINNED(long, int);
+REGISTER_BINNED(long, long);
+REGISTER_BINNED(int, int);
+REGISTER_BINNED(int, long);
diff --git a/aten/src/ATen/native/mps/operations/Puts.mm b/aten/src/ATen/native/mps/operations/Puts.mm
--- a/aten/src/ATen/native/mps/operations/Puts.mm
+++ b/aten/src/ATen/native/mps/operations/Puts.mm
@@ -1,13 +1,49 @@
+#include <ATen/Context.h>
+#include <ATen/mps/MPSProfiler.h>
+#include <ATen/native/CanUse32BitIndexMath.h>
 #include <ATen/native/mps/OperationUtils.h>
 
 namespace at::native {
+
+#ifndef PYTORCH_JIT_COMPILE_SHADERS
+static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();
+#else
+#include <ATen/native/mps/Puts_metallib.h>
+#endif
 
 static Tensor& binned_impl(const Tensor& self, const Tensor& weights, Tensor& output) {
   using namespace mps;
-  bool has_weights = weights.defined();
-  auto graph = makeMPSGraph(self, has_weights);
-  // Run the graph
-  runMPSGraph(getCurrentMPSStream(), graph, feeds, output);
+  const bool has_weights = weights.defined();
+  if (has_weights) {
+    at::globalContext().alertNotDeterministic("binned_mps");
+  }
+  MPSStream* stream = getCurrentMPSStream();
+  const std::string index_type =
+      canUse32BitIndexMath(output) && canUse32BitIndexMath(self) && (!has_weights || canUse32BitIndexMath(weights))
+      ? "int"
+      : "long";
+  dispatch_sync_with_rethrow(stream->queue(), ^() {
+    @autoreleasepool {
+      auto computeEncoder = stream->commandEncoder();
+      auto PSO = lib.getPipelineStateForFunc("binned_" + scalarToMetalTypeString(output) + "_" +
+                                             scalarToMetalTypeString(self) + "_" + index_type);
+      // this function call is a no-op if MPS Profiler is not enabled
+      getMPSProfiler().beginProfileKernel(PSO, "binned", {self}, stream);
+      [computeEncoder setComputePipelineState:PSO];
+      mtl_setArgs(computeEncoder,
+                  output,
+                  self,
+                  has_weights ? weights : self,
+                  output.size(0),
+                  output.stride(0),
+                  self.stride(0),
+                  has_weights ? weights.stride(0) : 0,
+                  has_weights);
+      mtl_dispatch1DJob(computeEncoder, PSO, self.numel());
+      getMPSProfiler().endProfileKernel(PSO, stream);
+    }
+  });
+
   return output;
 }
 
""",
    )


def test_bins_that_are_not_zeros_yet(tmp_path: Path) -> None:
    host = BINS_HOST.replace("at::zeros({count}, weights_", "at::empty({count}, weights_")
    diff = plan(tmp_path, "binned", BINS, ATOMIC, host).changes.diff()
    assert "+  output.zero_();" in diff


def test_a_library_is_declared_before_its_first_use(tmp_path: Path) -> None:
    late = HOST.replace("} // namespace", f"{LIBRARY}}} // namespace")
    host = plan(tmp_path, "mirrored", MIRRORED, host=late).changes.apply()[f"{OPERATIONS}/Puts.mm"]
    assert host.count(LIBRARY) == 1
    assert host.index(LIBRARY) < host.index("Tensor mirrored_mps")


def test_a_bundled_library_alone_is_one_too(tmp_path: Path) -> None:
    bundled = "static auto& lib = mps::MetalShaderLibrary::getBundledLibrary();\n"
    late = HOST.replace("} // namespace", f"{bundled}}} // namespace")
    changes = plan(tmp_path, "mirrored", MIRRORED, host=late).changes.apply()
    host = changes[f"{OPERATIONS}/Puts.mm"]
    assert host.count("auto& lib") == 1 and "_metallib.h" not in host
    assert host.index(bundled) < host.index("Tensor mirrored_mps")
    assert f"{KERNELS}/Puts.metal" in changes


def test_a_fork_without_atomics_gets_them(tmp_path: Path) -> None:
    kernels = plan(tmp_path, "added_at", ADDED, atomic="").changes.apply()[f"{KERNELS}/Puts.metal"]
    assert kernels.index("struct AtomicType<float> {") < kernels.index("kernel void added_at(")
    assert "#include <c10/metal/atomic.h>" not in kernels
