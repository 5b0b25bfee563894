"""Rows whose graph the function of another operator's row runs."""

from dataclasses import replace
from pathlib import Path

from porter.aten.operator import ServedFunction
from porter.core.layout import NATIVE_FUNCTIONS, OPERATIONS
from porter.loops.program import Programs
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork

ROWS = """
- func: leading.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: leading_out_cpu
    MPS: leading_out_mps

- func: following(Tensor self) -> Tensor
  dispatch:
    CPU: following_cpu
    MPS: following_mps
"""
HOST = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

Tensor& leading_out_mps(const Tensor& self, Tensor& out) {
  runMPSGraph(getCurrentMPSStream(), makeGraph(), feeds, out);
  return out;
}

static std::tuple<Tensor, Tensor> lead(const Tensor& self) {
  Tensor output = at::empty_like(self);
  leading_out_mps(self, output);
  return std::make_tuple(output, self);
}

Tensor following_mps(const Tensor& self) {
  auto [output, given] = lead(self);
  return output;
}

} // namespace at::native
"""


THROUGH = """
- func: leading(Tensor self) -> Tensor
  dispatch:
    CPU: leading_cpu
    MPS: leading_mps
"""
TEMPLATE = """#include <ATen/native/mps/OperationUtils.h>

namespace at::native {

static void leading_template(Tensor& out, const Tensor& self) {
  runMPSGraph(getCurrentMPSStream(), makeGraph(), feeds, out);
}

Tensor& leading_out_mps(const Tensor& self, Tensor& out) {
  leading_template(out, self);
  return out;
}

Tensor leading_mps(const Tensor& self) {
  Tensor output = at::empty_like(self);
  at::native::leading_out_mps(self, output);
  return output;
}

} // namespace at::native
"""


def test_a_row_that_calls_another_rows_function_is_ported_with_the_helper_of_that(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    with (checkout.root / NATIVE_FUNCTIONS).open("a") as file:
        file.write(ROWS + THROUGH)
    (checkout.root / OPERATIONS / "Leading.mm").write_text(TEMPLATE)
    plan = plan_operator(checkout, "leading", programs=lambda row: replace(fork.shares(), name="leading"))
    assert plan.complete


def test_the_leading_row_is_ported_by_its_own_runs(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    with (checkout.root / NATIVE_FUNCTIONS).open("a") as file:
        file.write(ROWS)
    (checkout.root / OPERATIONS / "Leading.mm").write_text(HOST)
    asked = []

    def read(served: ServedFunction) -> Programs | None:
        asked.append(served.function.name)
        return fork.shares() if served.function.name == "leading.out" else None

    plan = plan_operator(checkout, "following", programs=read)
    assert plan.complete and asked == ["leading.out"]
    diff = plan.changes.diff()
    assert 'getPipelineStateForFunc("leading_"' in diff
    assert not any(line[:1] in "+-" and ("following" in line or " lead(" in line) for line in diff.splitlines())
