"""The port of a row that writes a random order, whose function calls a template that others call with other types."""

from pathlib import Path

from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.metal.forms import FormProgram
from porter.metal.forms.sort import Permutation
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROWS = """
- func: ordered.out(SymInt n, *, Generator? generator, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: ordered_out_cpu
    MPS: ordered_out_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {
namespace mps {

typedef MPSGraphTensor* (^RandomOpBlock)(MPSGraph*, MPSGraphTensor*);

template <typename scalar_t>
Tensor& random_by_graph(Tensor& self,
                        scalar_t low,
                        const std::optional<Tensor>& mean_opt,
                        std::optional<Generator> gen,
                        std::string op_name,
                        RandomOpBlock randomBlock) {
  if (self.numel() == 0) {
    return self;
  }
  auto mps_gen = get_generator_or_default<MPSGeneratorImpl>(gen, at::mps::detail::getDefaultMPSGenerator());
  auto stream = getCurrentMPSStream();
  @autoreleasepool {
    auto key = op_name + getTensorsStringKey({self, mean_opt.value_or(Tensor())}) + ":" + std::to_string(low);
    auto cachedGraph = LookUpOrCreateCachedGraph<RandomCachedGraph>(key, [&](auto mpsGraph, auto newCachedGraph) {
      if constexpr (std::is_same_v<scalar_t, int64_t>) {
        newCachedGraph->resultTensor = randomBlock(mpsGraph, [mpsGraph randomTensorWithShape:@[ @(self.numel()) ]]);
      }
    });
    MPSNDArray* state = [[[MPSNDArray alloc] init] autorelease];
    {
      // See Note [Acquire lock when using random generators]
      std::lock_guard<std::mutex> lock(mps_gen->mutex_);
      mps_gen->update_philox_counters();
      [state writeBytes:mps_gen->state_data() strideBytes:nil];
    }
    runMPSGraph(stream, cachedGraph->graph(), feeds, self);
  }
  return self;
}

} // namespace mps

Tensor& filled_mps_(Tensor& self, double low, std::optional<Generator> gen) {
  return mps::random_by_graph<double>(self, low, std::nullopt, gen, __func__, nullptr);
}

Tensor& ordered_out_mps(int64_t n, std::optional<Generator> generator, Tensor& result) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  result.resize_({n});
  if (n == 0) {
    return result;
  }
  mps::RandomOpBlock random_op_block = ^RandomOpFn(cachedGraph, randomTensor) {
    MPSGraphTensor* sorted = [mpsGraph argSortWithTensor:randomTensor axis:0 name:nil];
    return sorted;
  };
  return mps::random_by_graph<int64_t>(result,
                                       std::numeric_limits<int64_t>::min(),
                                       std::nullopt,
                                       generator,
                                       "ordered:" + mps::getTensorsStringKey({result}),
                                       random_op_block);
}

} // namespace at::native
"""


def test_a_row_that_writes_a_random_order(tmp_path: Path) -> None:
    """The template stays for its other callers, and its types are those that the call names."""
    copy = fork.copy_fork(tmp_path)
    (copy.root / OPERATIONS / "Orders.mm").write_text(HOST)
    rows = copy.root / NATIVE_FUNCTIONS
    rows.write_text(rows.read_text() + ROWS)
    program = FormProgram("ordered.out", Permutation("generator"))
    plan = plan_operator(Checkout(copy.root, "named"), "ordered", programs=lambda row: program)
    kernels, host = plan.changes.diff().split("diff --git ")[1:]
    assert "#include <ATen/mps/MPSGeneratorImpl.h>" in host and "static void draw_permutation(" in host
    assert all(f"kernel void ordered{stage}(" in kernels for stage in ("_draw", "_blocks", "_merge", ""))
    assert_expected_inline(
        host[host.index("Tensor& ordered_out_mps") :],
        """\
Tensor& ordered_out_mps(int64_t n, std::optional<Generator> generator, Tensor& result) {
+  using namespace mps;
+
   TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
   result.resize_({n});
   if (n == 0) {
     return result;
   }
-  mps::RandomOpBlock random_op_block = ^RandomOpFn(cachedGraph, randomTensor) {
-    MPSGraphTensor* sorted = [mpsGraph argSortWithTensor:randomTensor axis:0 name:nil];
-    return sorted;
-  };
-  return mps::random_by_graph<int64_t>(result,
-                                       std::numeric_limits<int64_t>::min(),
-                                       std::nullopt,
-                                       generator,
-                                       "ordered:" + mps::getTensorsStringKey({result}),
-                                       random_op_block);
+  if (result.numel() == 0) {
+    return result;
+  }
+  draw_permutation("ordered", result, generator);
+
+  return result;
 }
 
 } // namespace at::native
""",
    )
