"""A helper that runs a graph for each result of an operator: one kernel makes all of them."""

from dataclasses import replace
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.loops.expressions import Buffer, ReductionKind
from porter.loops.program import Programs, ResultBuffer, SymbolicProgram
from porter.metal.codegen.canonicalize import merge_nests
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROW = """
- func: extremes.out(Tensor self, int[1]? dim=None, bool keepdim=False, *, Tensor(a!) low, Tensor(b!) high) -> (Tensor(a!), Tensor(b!))
  dispatch:
    CPU: extremes_out_cpu
    MPS: extremes_out_mps
"""
HOST = """
static void reduce_to(const Tensor& self, OptionalIntArrayRef dim, const Tensor& out, bool is_low, const char* name) {
  TORCH_CHECK(self.numel() > 0, name, ": no elements");
  if (out.numel() == 0) {
    return;
  }
  runMPSGraph(getCurrentMPSStream(), makeGraph(dim, is_low), feeds, out);
}

std::tuple<Tensor&, Tensor&> extremes_out_mps(
    const Tensor& self, OptionalIntArrayRef dim, bool keepdim, Tensor& low, Tensor& high) {
  reduce_to(self, dim, low, true, "low");
  reduce_to(self, dim, high, false, "high");
  return std::tuple<Tensor&, Tensor&>{low, high};
}

void other_mps(const Tensor& self, const Tensor& out) {
  reduce_to(self, std::nullopt, out, true, "other");
}
"""
SECOND = Buffer(2)


def extremes() -> SymbolicProgram:
    """The least and the largest elements over named dimensions, by a kernel each."""
    [low], [high] = (fork.largest(kind).cases[1:] for kind in (ReductionKind.MIN_NAN, ReductionKind.MAX_NAN))
    [nest] = high.nests
    [store] = nest.nest.stores
    moved = replace(nest, nest=replace(nest.nest, stores=(replace(store, buffer=SECOND),)))
    calls = tuple(replace(call, tensors={**call.tensors, "result1": call.tensors["result0"]}) for call in low.calls)
    roles = {**low.roles, SECOND: ResultBuffer(1)}
    return replace(low, when=(), nests=(*low.nests, moved), roles=roles, calls=calls, example=calls[0])


def port(folder: Path, host: str) -> str:
    checkout = fork.copy_fork(folder)
    table, file = checkout.root / NATIVE_FUNCTIONS, checkout.root / OPERATIONS / "Turns.mm"
    table.write_text(table.read_text() + ROW)
    file.write_text(file.read_text().replace("} // namespace at::native", f"{host}\n}} // namespace at::native"))
    plan = plan_operator(checkout, "extremes", programs=lambda served: Programs("extremes.out", (extremes(),)))
    assert plan.complete
    return plan.changes.diff()


def test_kernels_of_the_same_rows_are_one() -> None:
    case = merge_nests(extremes())
    [nest] = case.nests
    assert [store.buffer for store in nest.nest.stores] == [fork.OUTPUT, SECOND]
    [first, second] = extremes().nests
    apart = replace(extremes(), nests=(first, replace(second, rows=fork.mean_square().cases[0].nests[0].rows)))
    assert merge_nests(apart) == apart


def test_one_launch_makes_the_results_of_all_calls_of_a_helper(tmp_path: Path) -> None:
    made = port(tmp_path, HOST)
    text = made.partition("+++ b/aten/src/ATen/native/mps/operations/Turns.mm")[2]
    body = text.partition("OptionalIntArrayRef dim, bool keepdim, Tensor& low, Tensor& high) {")[2]
    added = "\n".join(line[1:] for line in body.splitlines() if line[:1] == "+")
    assert_expected_inline(
        added,
        """\
std::tuple<Tensor&, Tensor&> extremes_out_mps(const Tensor& self,
                                              OptionalIntArrayRef dim,
                                              bool keepdim,
                                              Tensor& low,
                                              Tensor& high) {
  using namespace mps;

  TORCH_CHECK(self.numel() > 0, "high", ": no elements");
  if (high.numel() == 0) {
    return std::tuple<Tensor&, Tensor&>{low, high};
  }
  const auto low_contiguous = low.is_contiguous() ? low : at::empty(low.sizes(), low.options());
  const auto high_contiguous = high.is_contiguous() ? high : at::empty(high.sizes(), high.options());
  const auto mask = make_dim_mask(dim, self.dim());
  const auto kept = merge_dims(self, ~mask);
  const auto reduced = merge_dims(self, mask);
  const std::array<uint32_t, 2> ndim = {static_cast<uint32_t>(kept.sizes.size()),
                                        static_cast<uint32_t>(reduced.sizes.size())};
  const int64_t reduced_size = c10::multiply_integers(reduced.sizes);
  const auto threads = share_rows(
      low.numel(), reduced_size, /*are_adjacent=*/kept.sizes[0] >= 32 && kept.strides[0] < reduced.strides[0]);
  const auto partial_smallest = threads.slices > 1
      ? at::empty({low.numel(), threads.slices}, low_contiguous.options().dtype(kFloat))
      : low_contiguous;
  const auto partial_largest = threads.slices > 1
      ? at::empty({low.numel(), threads.slices}, low_contiguous.options().dtype(kFloat))
      : low_contiguous;
  MPSStream* stream = getCurrentMPSStream();
  const std::string index_type = canUse32BitIndexMath(low, kLargestRowIndex) &&
          canUse32BitIndexMath(high, kLargestRowIndex) && canUse32BitIndexMath(self, kLargestRowIndex)
      ? "int"
      : "long";
  const auto count = index_type == "int" ? count_neighbors(self, kept, reduced) : 0;
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = stream->commandEncoder();
      auto PSO = lib.getPipelineStateForFunc("extremes_" + scalarToMetalTypeString(self) + "_" + index_type + "_" +
                                             std::to_string(count));
      // this function call is a no-op if MPS Profiler is not enabled
      getMPSProfiler().beginProfileKernel(PSO, "extremes", {self}, stream);
      [computeEncoder setComputePipelineState:PSO];
      mtl_setArgs(computeEncoder,
                  low_contiguous,
                  high_contiguous,
                  partial_smallest,
                  partial_largest,
                  self,
                  kept.sizes,
                  kept.strides,
                  reduced.sizes,
                  reduced.strides,
                  ndim,
                  reduced_size,
                  threads.slices);
      dispatch_rows(computeEncoder, PSO, low.numel(), threads);
      getMPSProfiler().endProfileKernel(PSO, stream);
      if (threads.slices > 1) {
        auto combinePSO = lib.getPipelineStateForFunc("extremes_combine_" + scalarToMetalTypeString(self));
        getMPSProfiler().beginProfileKernel(
            combinePSO, "extremes_combine", {partial_smallest, partial_largest}, stream);
        [computeEncoder setComputePipelineState:combinePSO];
        mtl_setArgs(computeEncoder, low_contiguous, high_contiguous, partial_smallest, partial_largest, threads.slices);
        [computeEncoder dispatchThreadgroups:MTLSizeMake(low.numel(), 1, 1)
                       threadsPerThreadgroup:MTLSizeMake(32, 1, 1)];
        getMPSProfiler().endProfileKernel(combinePSO, stream);
      }
    }
  });
  if (!low_contiguous.is_same(low)) {
    low.copy_(low_contiguous);
  }
  if (!high_contiguous.is_same(high)) {
    high.copy_(high_contiguous);
  }
""",
    )


@pytest.mark.parametrize(
    ("own", "code"), [("if (is_low) {\n    self.resize_({});\n  }\n", "PTR405"), ("out.zero_();\n", "PTR405")]
)
def test_a_helper_that_does_more_for_its_result_is_refused(tmp_path: Path, own: str, code: str) -> None:
    with pytest.raises(PorterError, match=code):
        port(tmp_path, HOST.replace("  if (out.numel() == 0) {", f"  {own}  if (out.numel() == 0) {{"))


def test_calls_under_conditions_are_not_made_at_once(tmp_path: Path) -> None:
    first = '  reduce_to(self, dim, low, true, "low");\n'
    with pytest.raises(PorterError, match="PTR369"):
        port(tmp_path, HOST.replace(first, f"  if (keepdim) {{\n  {first}  }}\n"))
