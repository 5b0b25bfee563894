"""Ports of attention: the function that returns both results, and the kernel that makes weights of scores."""

from __future__ import annotations

from pathlib import Path

from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.contraction import Attention
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROW = """
- func: attended(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, bool is_causal=False, *, float? scale=None) -> (Tensor, Tensor)
  dispatch:
    MPS: attended_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at {
namespace native {

static std::tuple<Tensor, bool> as_batches(const Tensor& x) {
  return x.dim() == 3 ? std::make_tuple(x.unsqueeze(0), true) : std::make_tuple(x, false);
}

std::tuple<Tensor, Tensor> attended_mps(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& attn_mask, bool is_causal, std::optional<double> scale) {
  TORCH_CHECK(!is_causal || !attn_mask, "either a mask or none of the keys behind");
  auto [q_, sq] = as_batches(query);
  auto [k_, sk] = as_batches(key);
  std::optional<Tensor> mask_;
  if (attn_mask) {
    mask_ = attn_mask->expand({q_.size(2), k_.size(2)});
    std::tie(*mask_, std::ignore) = as_batches(*mask_);
  }
  using namespace mps;
  auto out = at::empty_like(q_);
  auto attn = at::empty({q_.size(0), q_.size(1), q_.size(2), k_.size(2)}, query.options());
  @autoreleasepool {
    auto graph = makeGraph(q_, k_, mask_, is_causal, scale);
    auto qPlaceholder = Placeholder(graph->qTensor, q_);
    auto maskPlaceholder = Placeholder(graph->maskTensor, *mask_);
    auto outputPlaceholder = Placeholder(graph->outputTensor, out);
    auto attnPlaceholder = Placeholder(graph->attnTensor, attn);
    runMPSGraph(getCurrentMPSStream(), graph, feeds, outs);
  }
  auto final_out = sq ? out.view_as(query) : out;
  auto final_attn = sq ? attn.squeeze(0) : attn;
  return {std::move(final_out), std::move(final_attn)};
}

} // namespace native
} // namespace at
"""
FORM = Attention("query", "key", "value", "attn_mask", "is_causal", "scale", "enable_gqa")


def plan(path: Path, row: str = ROW, host: str = HOST) -> dict[str, str]:
    """The diffs of files by their names."""
    copy = fork.copy_fork(path)
    (copy.root / OPERATIONS / "Attends.mm").write_text(host)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + row)
    planned = plan_operator(
        Checkout(copy.root, "named"), "attended", programs=lambda row: FormProgram("attended", FORM)
    )
    diffs = planned.changes.diff().split("diff --git ")[1:]
    return {each.split()[0].rpartition("/")[2]: each for each in diffs}


def test_what_makes_both_results_goes_with_the_graph(tmp_path: Path) -> None:
    """The launch returns the results: checks stay, and nothing behind the graph."""
    host = plan(tmp_path)["Attends.mm"]
    assert "static std::tuple<Tensor, Tensor> run_attention(" in host and "Attends_metallib.h" in host
    assert_expected_inline(
        host[host.index("\n+}\n", host.index("run_attention(const")) + 4 :],
        """\
 
-static std::tuple<Tensor, bool> as_batches(const Tensor& x) {
-  return x.dim() == 3 ? std::make_tuple(x.unsqueeze(0), true) : std::make_tuple(x, false);
+std::tuple<Tensor, Tensor> attended_mps(const Tensor& query,
+                                        const Tensor& key,
+                                        const Tensor& value,
+                                        const std::optional<Tensor>& attn_mask,
+                                        bool is_causal,
+                                        std::optional<double> scale) {
+  TORCH_CHECK(!is_causal || !attn_mask, "either a mask or none of the keys behind");
+  using namespace mps;
+  return run_attention("attended", query, key, value, attn_mask, scale, is_causal, /*is_grouped=*/false);
 }
-
-std::tuple<Tensor, Tensor> attended_mps(const Tensor& query, const Tensor& key, const Tensor& value, const std::optional<Tensor>& attn_mask, bool is_causal, std::optional<double> scale) {
-  TORCH_CHECK(!is_causal || !attn_mask, "either a mask or none of the keys behind");
-  auto [q_, sq] = as_batches(query);
-  auto [k_, sk] = as_batches(key);
-  std::optional<Tensor> mask_;
-  if (attn_mask) {
-    mask_ = attn_mask->expand({q_.size(2), k_.size(2)});
-    std::tie(*mask_, std::ignore) = as_batches(*mask_);
-  }
-  using namespace mps;
-  auto out = at::empty_like(q_);
-  auto attn = at::empty({q_.size(0), q_.size(1), q_.size(2), k_.size(2)}, query.options());
-  @autoreleasepool {
-    auto graph = makeGraph(q_, k_, mask_, is_causal, scale);
-    auto qPlaceholder = Placeholder(graph->qTensor, q_);
-    auto maskPlaceholder = Placeholder(graph->maskTensor, *mask_);
-    auto outputPlaceholder = Placeholder(graph->outputTensor, out);
-    auto attnPlaceholder = Placeholder(graph->attnTensor, attn);
-    runMPSGraph(getCurrentMPSStream(), graph, feeds, outs);
-  }
-  auto final_out = sq ? out.view_as(query) : out;
-  auto final_attn = sq ? attn.squeeze(0) : attn;
-  return {std::move(final_out), std::move(final_attn)};
-}
 
 } // namespace native
 } // namespace at
""",
    )


def test_the_kernel_of_weights(tmp_path: Path) -> None:
    kernels = plan(tmp_path)["Attends.metal"]
    registered = ("(float", "_(float, int, 64", "_VECTOR(float", "_DIRECT(float", "_SOFTMAX(float")
    assert all(f"REGISTER_ATTENDED{ending}" in kernels for ending in registered) and "half" not in kernels
    begin, end = kernels.index("kernel void attended_softmax("), kernels.index("#define REGISTER_ATTENDED_SOFTMAX")
    assert_expected_inline(
        kernels[kernels.rindex("+template", 0, begin) : end],
        """\
+template <typename T, typename index_t>
+kernel void attended_softmax(
+    device T* weights,
+    const device T* mask,
+    constant long* sizes,
+    constant long* strides,
+    uint2 tid [[thread_position_in_grid]]) {
+  const index_t keys = sizes[0], queries = sizes[1], heads = sizes[2];
+  const index_t query = tid.y % queries, head = tid.y / queries % heads,
+                batch = tid.y / queries / heads;
+  const index_t seen = sizes[3] ? query + 1 : keys;
+  const index_t first = batch * index_t(strides[0]) +
+      head * index_t(strides[1]) + query * index_t(strides[2]);
+  device T* scores = weights + index_t(tid.y) * keys;
+  float greatest = -INFINITY;
+  bool is_hidden = true;
+  for (index_t i = tid.x; i < keys; i += 32) {
+    // Infinity less itself is no number, as on the CPU
+    float score = i < seen ? scores[i] : scores[i] - INFINITY;
+    if (sizes[4]) {
+      score += mask[first + i * index_t(strides[3])];
+    }
+    scores[i] = score;
+    greatest = max(greatest, score);
+    is_hidden &= score == -INFINITY;
+  }
+  greatest = simd_max(greatest);
+  // A query that sees no key has no weights
+  const bool has_weights = !simd_all(is_hidden);
+  float sum = 0;
+  for (index_t i = tid.x; i < keys; i += 32) {
+    const float weight = has_weights ? precise::exp(scores[i] - greatest) : 0;
+    scores[i] = weight;
+    sum += weight;
+  }
+  const float factor = has_weights ? 1 / simd_sum(sum) : 0;
+  for (index_t i = tid.x; i < keys; i += 32) {
+    scores[i] *= factor;
+  }
+}
+
+""",
    )


def test_a_flag_of_grouped_heads_is_passed(tmp_path: Path) -> None:
    """A row without the flag that a form has passes none."""
    before, after = "float? scale=None)", "float? scale=None, bool enable_gqa=False)"
    grouped = plan(
        tmp_path, ROW.replace(before, after), HOST.replace("double> scale)", "double> scale, bool enable_gqa)")
    )
    assert " scale, is_causal, enable_gqa);" in " ".join(grouped["Attends.mm"].replace("\n+", " ").split())
