"""The code of a row's kernel, by its name."""

from __future__ import annotations

from pathlib import Path

from porter.aten.implementations import find_implementation
from porter.core.checkout import Checkout
from porter.core.layout import OPERATIONS
from tests.porter.plan.native.fork import copy_fork

HOST = """namespace at::native {
static void middle_mps(const Tensor& self, const std::string& name) {
  helper(self, name);
}
Tensor& middle_mps(const Tensor& self, Tensor& out) {
  middle_mps(self, "middle");
  return out;
}
} // namespace at::native
"""


def test_a_static_helper_of_the_same_name_is_not_the_row_s(tmp_path: Path) -> None:
    copy = copy_fork(tmp_path)
    (copy.root / OPERATIONS / "Middle.mm").write_text(HOST)
    found = find_implementation(Checkout(copy.root, "named"), "middle_mps").function
    assert found is not None and (found.static, found.params) == (False, "const Tensor& self, Tensor& out")
