"""The type of a result that a row's meta function takes as it is: host code checks it before kernels write there."""

from pathlib import Path

import pytest

from porter.core.layout import NATIVE, NATIVE_FUNCTIONS
from porter.plan.planner import plan_operator
from tests.porter.plan.native import fork

ROW = """
- func: largest(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor
  structured_delegate: largest.out
"""
META = """
TORCH_META_FUNC(largest)(const Tensor& self, OptionalIntArrayRef dim, bool keepdim) {
  auto type = TYPE;
  resize_reduction(*this, self, dim, keepdim, type);
}
"""


@pytest.mark.parametrize(
    ("given", "is_checked"),
    [("get_result_or_self_value_dtype(self, maybe_get_output(), std::nullopt)", True), ("self.scalar_type()", False)],
)
def test_a_result_of_any_type_is_checked(tmp_path: Path, given: str, is_checked: bool) -> None:
    checkout = fork.copy_fork(tmp_path)
    table = checkout.root / NATIVE_FUNCTIONS
    table.write_text(table.read_text() + ROW)
    (checkout.root / NATIVE / "Largest.cpp").write_text(META.replace("TYPE", given))
    made = " ".join(plan_operator(checkout, "largest", programs=lambda served: fork.largest()).changes.diff().split())
    assert ("TORCH_CHECK(out.scalar_type() == self.scalar_type()," in made) is is_checked
