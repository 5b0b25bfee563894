"""A result that another function of the file makes by a graph: the kernel makes it, with the row's own."""

from dataclasses import replace
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.errors import PorterError
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.loops.program import Programs
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork
from tests.porter.plan.recorded.test_alternatives import extremes

ROWS = """
- func: lowest(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor
  dispatch:
    CPU: lowest_cpu
    MPS: lowest_mps

- func: both(Tensor self, int[1]? dim, bool keepdim=False) -> (Tensor, Tensor)
  dispatch:
    CPU: both_cpu
    MPS: both_mps
"""
HOST = """
static Tensor low_template(const Tensor& input, OptionalIntArrayRef dim, bool keepdim, bool is_low) {
  int64_t rank = input.dim();
  TORCH_CHECK(rank > 0, is_low ? "low" : "high", ": no dimensions");
  std::vector<int64_t> shape;
  shape.push_back(rank);
  Tensor made = at::empty(IntArrayRef(shape.data(), rank), input.scalar_type(), std::nullopt, kMPS);
  if (made.numel() == 0 || input.numel() == 0) {
    return made;
  }
  runMPSGraph(getCurrentMPSStream(), makeGraph(dim, is_low), feeds, made);
  return made;
}

Tensor lowest_mps(const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  return low_template(self, dim, keepdim, true);
}

static void high_to(const Tensor& self, OptionalIntArrayRef dim, const Tensor& out) {
  int64_t rank = self.dim();
  TORCH_CHECK(rank < 16, "high: too many dimensions");
  if (out.numel() == 0) {
    return;
  }
  runMPSGraph(getCurrentMPSStream(), makeGraph(dim), feeds, out);
}

std::tuple<Tensor, Tensor> both_mps(const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  auto low = lowest_mps(self, dim, keepdim);
  auto high = at::empty(low.sizes(), self.scalar_type(), std::nullopt, kMPS);
  high_to(self, dim, high);
  return {low, high};
}

void other_mps(const Tensor& self, const Tensor& out) {
  high_to(self, std::nullopt, out);
}
"""


def port(folder: Path, host: str) -> str:
    checkout = fork.copy_fork(folder)
    table, file = checkout.root / NATIVE_FUNCTIONS, checkout.root / OPERATIONS / "Turns.mm"
    table.write_text(table.read_text() + ROWS)
    file.write_text(file.read_text().replace("} // namespace at::native", f"{host}\n}} // namespace at::native"))
    programs = Programs("both", (replace(extremes(), name="both"),))
    plan = plan_operator(checkout, "both", programs=lambda served: programs)
    assert plan.complete
    return plan.changes.diff().partition("+++ b/aten/src/ATen/native/mps/operations/Turns.mm")[2]


def test_checks_and_allocations_stay_and_one_kernel_makes_both(tmp_path: Path) -> None:
    made = port(tmp_path, HOST)
    body = made.partition("std::tuple<Tensor, Tensor> both_mps")[2].partition("MPSStream* stream")[0]
    assert_expected_inline(
        body,
        """\
(const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
-  auto low = lowest_mps(self, dim, keepdim);
+  using namespace mps;
+
+  int64_t rank_ = self.dim();
+  TORCH_CHECK(rank_ > 0, "low", ": no dimensions");
+  Tensor low = create_reduction_result(self, dim, keepdim, self.scalar_type());
   auto high = at::empty(low.sizes(), self.scalar_type(), std::nullopt, kMPS);
-  high_to(self, dim, high);
+  int64_t rank = self.dim();
+  TORCH_CHECK(rank < 16, "high: too many dimensions");
+  if (high.numel() == 0) {
+    return {low, high};
+  }
+  const auto mask = make_dim_mask(dim, self.dim());
+  const auto kept = merge_dims(self, ~mask);
+  const auto reduced = merge_dims(self, mask);
+  const std::array<uint32_t, 2> ndim = {static_cast<uint32_t>(kept.sizes.size()),
+                                        static_cast<uint32_t>(reduced.sizes.size())};
+  const int64_t reduced_size = c10::multiply_integers(reduced.sizes);
+  const auto threads = share_rows(
+      low.numel(), reduced_size, /*are_adjacent=*/kept.sizes[0] >= 32 && kept.strides[0] < reduced.strides[0]);
+  const auto partial_smallest =
+      threads.slices > 1 ? at::empty({low.numel(), threads.slices}, low.options().dtype(kFloat)) : low;
+  const auto partial_largest =
+      threads.slices > 1 ? at::empty({low.numel(), threads.slices}, low.options().dtype(kFloat)) : low;
+  """,
    )


def test_what_the_table_of_rows_names_is_not_removed(tmp_path: Path) -> None:
    made = port(tmp_path, HOST)
    removed = [line for line in made.splitlines() if line[:1] == "-"]
    assert any("high_to(self, dim, high)" in line for line in removed)
    assert not any("lowest_mps(const Tensor& self" in line or "low_template(const" in line for line in removed)


def test_what_fills_a_result_of_no_elements_stays(tmp_path: Path) -> None:
    filled = HOST.replace("    return made;\n  }\n  runMPS", "    made.fill_(1);\n    return made;\n  }\n  runMPS")
    both = port(tmp_path, filled).partition("std::tuple<Tensor, Tensor> both_mps")[2]
    assert "+  if (low.numel() == 0 || self.numel() == 0) {\n+    low.fill_(1);\n+  }\n   auto high =" in both


def test_a_type_that_options_give_is_the_result_of_the_reduction(tmp_path: Path) -> None:
    allocation = "input.scalar_type(), std::nullopt, kMPS);\n  if (made"
    assert allocation in HOST
    typed = HOST.replace(allocation, "input.options().dtype(kFloat));\n  if (made")
    both = port(tmp_path, typed).partition("std::tuple<Tensor, Tensor> both_mps")[2]
    assert "+  Tensor low = create_reduction_result(self, dim, keepdim, kFloat);" in both


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (made.numel() == 0 || input.numel() == 0)", "if (keepdim)"),
        ("  return made;\n}\n\nTensor lowest", "  return made.contiguous();\n}\n\nTensor lowest"),
    ],
)
def test_code_that_returns_otherwise_is_refused(tmp_path: Path, old: str, new: str) -> None:
    assert old in HOST
    with pytest.raises(PorterError, match="PTR406 what makes"):
        port(tmp_path, HOST.replace(old, new))
