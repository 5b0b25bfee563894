"""What goes with an implementation that is removed."""

from __future__ import annotations

from pathlib import Path

from expecttest import assert_expected_inline

from porter.aten.implementations import Implementation
from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.errors import Place
from porter.core.layout import OPERATIONS
from porter.plan.removal import find_removals

FILE = f"{OPERATIONS}/Compare.mm"
OLD = """namespace at::native {

static void choose(TensorIteratorBase& iter, bool up) {
  mps::runMPSGraph(iter, up);
}

static void high_kernel_mps(TensorIteratorBase& iter) {
  choose(iter, true);
}

static void low_kernel_mps(TensorIteratorBase& iter) {
  choose(iter, false);
}

REGISTER_DISPATCH(high_stub, &high_kernel_mps)
REGISTER_DISPATCH(low_stub, &mps::low_kernel_mps)
} // namespace at::native
"""


def removed(tmp_path: Path, text: str, *symbols: str) -> str:
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    path.write_text(text)
    found = []
    for symbol in symbols:
        start = text.index(f"static void {symbol}(")
        found.append(Implementation(FILE, symbol, start, text.index("\n}", start) + 2, Place(FILE)))
    edits = [each.edit for each in find_removals(Checkout(tmp_path, "test"), found, {})]
    return ChangeSet({FILE: text}, tuple(edits)).apply()[FILE]


def test_the_line_that_registers_a_kernel_goes_with_it(tmp_path: Path) -> None:
    assert_expected_inline(
        removed(tmp_path, OLD, "low_kernel_mps"),
        """\
namespace at::native {

static void choose(TensorIteratorBase& iter, bool up) {
  mps::runMPSGraph(iter, up);
}

static void high_kernel_mps(TensorIteratorBase& iter) {
  choose(iter, true);
}

REGISTER_DISPATCH(high_stub, &high_kernel_mps)
} // namespace at::native
""",
    )


def test_kernels_side_by_side_leave_one_blank_line(tmp_path: Path) -> None:
    text = removed(tmp_path, OLD, "high_kernel_mps", "low_kernel_mps")
    assert text == "namespace at::native {\n\n} // namespace at::native\n"
