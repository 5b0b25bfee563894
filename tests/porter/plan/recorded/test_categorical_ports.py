"""The port of a row that draws by weights, whose function sets its output to what a helper returns."""

from pathlib import Path

from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.categorical import Categorical
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROWS = """
- func: drawn.out(Tensor self, SymInt num_samples, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: drawn_out_cpu
    MPS: drawn_out_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

static Tensor& draw_by_graph(const Tensor& self, const int64_t n_sample, std::optional<Generator> generator, Tensor& result) {
  using namespace mps;
  auto mps_gen = get_generator_or_default<MPSGeneratorImpl>(generator, at::mps::detail::getDefaultMPSGenerator());
  int inputSize = self.dim();
  auto self_v = inputSize == 1 ? self.view({1, self.size(0)}) : self;
  @autoreleasepool {
    auto graph = makeGraph(self_v, n_sample);
    MPSNDArray* state = [[[MPSNDArray alloc] init] autorelease];
    {
      // See Note [Acquire lock when using random generators]
      std::lock_guard<std::mutex> lock(mps_gen->mutex_);
      // update the Philox state values on each run
      mps_gen->update_philox_counters();
      [state writeBytes:mps_gen->state_data() strideBytes:nil];
    }
    runMPSGraph(getCurrentMPSStream(), graph, feeds, result);
  }
  return result;
}

Tensor& drawn_out_mps(const Tensor& self, int64_t n_sample, std::optional<Generator> gen, Tensor& result) {
  TORCH_CHECK(n_sample > 0, "cannot draw nothing");
  result.resize_({n_sample});
  if (n_sample == 1) {
    return at::argmax_out(result, self, -1, true);
  }
  result = draw_by_graph(const_cast<Tensor&>(self), n_sample, gen, result);
  return result;
}

} // namespace at::native
"""


def test_a_row_that_draws_by_weights(tmp_path: Path) -> None:
    """The generator advances once, by the helper; the lock goes with the graph's state."""
    copy = fork.copy_fork(tmp_path)
    (copy.root / OPERATIONS / "Draws.mm").write_text(HOST)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    form = Categorical("self", "generator")
    plan = plan_operator(Checkout(copy.root, "named"), "drawn", programs=lambda row: FormProgram("drawn.out", form))
    kernels, host = plan.changes.diff().split("diff --git ")[1:]
    assert "#include <ATen/mps/MPSGeneratorImpl.h>" in host and "static void draw_categories(" in host
    assert "kernel void drawn_sums(" in kernels and "kernel void drawn_draw(" in kernels
    assert_expected_inline(
        host[host.index("draw_by_graph(const Tensor") :],
        """\
draw_by_graph(const Tensor& self, const int64_t n_sample, std::optional<Generator> generator, Tensor& result) {
+static Tensor& draw_by_graph(const Tensor& self,
+                             const int64_t n_sample,
+                             std::optional<Generator> generator,
+                             Tensor& result) {
   using namespace mps;
-  auto mps_gen = get_generator_or_default<MPSGeneratorImpl>(generator, at::mps::detail::getDefaultMPSGenerator());
-  int inputSize = self.dim();
-  auto self_v = inputSize == 1 ? self.view({1, self.size(0)}) : self;
-  @autoreleasepool {
-    auto graph = makeGraph(self_v, n_sample);
-    MPSNDArray* state = [[[MPSNDArray alloc] init] autorelease];
-    {
-      // See Note [Acquire lock when using random generators]
-      std::lock_guard<std::mutex> lock(mps_gen->mutex_);
-      // update the Philox state values on each run
-      mps_gen->update_philox_counters();
-      [state writeBytes:mps_gen->state_data() strideBytes:nil];
-    }
-    runMPSGraph(getCurrentMPSStream(), graph, feeds, result);
+  if (result.numel() == 0) {
+    return result;
   }
+
+  draw_categories("drawn", result, self, generator);
+
   return result;
 }
 
""",
    )


def test_a_fork_without_philox_gets_its_own(tmp_path: Path) -> None:
    copy = fork.copy_fork(tmp_path)
    (copy.root / OPERATIONS / "Draws.mm").write_text(HOST)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    header = copy.root / "c10/metal/random.h"
    header.parent.mkdir(parents=True, exist_ok=True)
    for text in ("", "return uint4(rc1.y ^ ctr.y ^ key.x, rc1.x, rc0.y ^ ctr.w ^ key.y, rc0.x);\n"):
        header.write_text(text)
        program = FormProgram("drawn.out", Categorical("self", "generator"))
        plan = plan_operator(Checkout(copy.root, "named"), "drawn", programs=lambda row: program)  # noqa: B023
        diff = plan.changes.diff()
        assert "inline uint4 draw_words(long seed, long index)" in diff and "philox4" not in diff
