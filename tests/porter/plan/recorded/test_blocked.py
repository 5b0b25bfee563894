"""Ports of operators that share a helper, one on top of the other: both call one function in the end."""

from dataclasses import replace
from pathlib import Path

from expecttest import assert_expected_inline

from porter.core.checkout import Checkout
from porter.core.layout import OPERATIONS
from porter.plan.plan import Draft, Plan
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork


def plan(draft: Draft, op: str) -> Plan:
    return plan_operator(draft.fork, op, programs=lambda served: replace(fork.turned(), name=op))


def test_the_last_caller_of_a_helper_becomes_what_an_earlier_port_is(tmp_path: Path) -> None:
    draft = Draft(fork.copy_fork(tmp_path))
    first = plan(draft, "turned")
    draft = draft.follow(first.changes)
    second = plan(draft, "returned")
    assert second.complete
    assert [each.symbol for each in second.removed] == ["turn_template"]
    text = draft.follow(second.changes).fork.read(f"{OPERATIONS}/Turns.mm")
    at = text.index("static Tensor turned_returned_mps_impl(")
    assert_expected_inline(
        text[at : text.index("Tensor& largest_out_mps")],
        """\
static Tensor turned_returned_mps_impl(const Tensor& self, int64_t times, const std::string& kernel_name) {
  using namespace mps;

  TORCH_CHECK(times > 0, kernel_name, ": times must be positive");
  Tensor output = at::empty(self.sizes(), self.options());
  if (output.numel() == 0) {
    return output;
  }

  TORCH_CHECK_NOT_IMPLEMENTED(self.dim() == 2, kernel_name, ": expected self of 2 dimensions, but got ", self.dim());
  const auto self_contiguous = self.contiguous();
  const int64_t width = self.size(-1);
  MPSStream* stream = getCurrentMPSStream();
  const std::string index_type =
      canUse32BitIndexMath(output) && canUse32BitIndexMath(self) && times >= INT_MIN / 2 && times <= INT_MAX / 2
      ? "int"
      : "long";
  dispatch_sync_with_rethrow(stream->queue(), ^() {
    @autoreleasepool {
      auto computeEncoder = stream->commandEncoder();
      auto PSO = lib.getPipelineStateForFunc(kernel_name + "_" + scalarToMetalTypeString(self) + "_" + index_type);
      // this function call is a no-op if MPS Profiler is not enabled
      getMPSProfiler().beginProfileKernel(PSO, kernel_name, {self_contiguous}, stream);
      [computeEncoder setComputePipelineState:PSO];
      mtl_setArgs(computeEncoder, output, self_contiguous, width, times);
      mtl_dispatch1DJob(computeEncoder, PSO, output.numel());
      getMPSProfiler().endProfileKernel(PSO, stream);
    }
  });

  return output;
}

Tensor turned_mps(const Tensor& self, int64_t times) {
  return turned_returned_mps_impl(self, times, "turned");
}

Tensor returned_mps(const Tensor& self, int64_t times) {
  return turned_returned_mps_impl(self, times, "returned");
}

""",
    )


def test_a_namespace_that_a_helper_was_alone_in_goes_with_it(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    file = checkout.root / OPERATIONS / "Turns.mm"
    start, end = "static Tensor turn_template", "Tensor turned_mps"
    head, _, rest = file.read_text().partition(start)
    helper, _, rest = rest.partition(end)
    calls = f"{end}{rest}".replace("return turn_template", "return mps::turn_template")
    file.write_text(f"{head}namespace mps {{\n\n{start}{helper}}} // namespace mps\n\n{calls}")
    draft = Draft(checkout)
    for op in ("turned", "returned"):
        draft = draft.follow(plan(draft, op).changes)
    text = draft.fork.read(f"{OPERATIONS}/Turns.mm")
    assert "static Tensor turned_returned_mps_impl(" in text
    assert "namespace mps {" not in text


def test_a_helper_that_is_passed_a_block_for_its_graph_goes(tmp_path: Path) -> None:
    """The port is the function itself; without such an argument it is the helper."""
    root, file = fork.copy_fork(tmp_path).root, f"{OPERATIONS}/Turns.mm"
    text = (root / file).read_text().replace("return turn_template(self, times, /*back=*/true);", "return self;")
    (root / file).write_text(text)
    assert not plan(Draft(Checkout(root, "alone")), "turned").removed
    text = text.replace("static Tensor turn_template", "typedef void (^GraphBlock)();\nstatic Tensor turn_template")
    text = text.replace("int64_t times, bool back)", "int64_t times, bool back, GraphBlock block)")
    text = text.replace("(key, makeGraph);", "(key, makeGraph(block));", 1)
    (root / file).write_text(text.replace("/*back=*/false)", "/*back=*/false, ^{ return nil; })"))
    draft = Draft(Checkout(root, "with a block"))
    made = plan(draft, "turned")
    assert [each.symbol for each in made.removed] == ["GraphBlock", "turn_template"]
    assert "return nil" not in draft.follow(made.changes).fork.read(file)
