"""What goes with an implementation that is removed."""

from __future__ import annotations

from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.aten.implementations import Implementation
from porter.core.change_set import ChangeSet
from porter.core.checkout import Checkout
from porter.core.errors import Place
from porter.core.layout import OPERATIONS
from porter.languages.source import parse_source
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


def apply_removals(tmp_path: Path, text: str, found: list[Implementation]) -> str:
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    path.write_text(text, newline="")
    edits = [each.edit for each in find_removals(Checkout(tmp_path, "test"), found, {})]
    return ChangeSet({FILE: text}, tuple(edits)).apply()[FILE]


def removed(tmp_path: Path, text: str, *symbols: str) -> str:
    found = []
    for symbol in symbols:
        start = text.index(f"static void {symbol}(")
        found.append(Implementation(FILE, symbol, start, text.index("\n}", start) + 2, Place(FILE)))
    return apply_removals(tmp_path, text, found)


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


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_heading_that_names_what_is_removed_goes_with_it(ending: str, tmp_path: Path) -> None:
    heading = "// -----\n// Low kernel\n\n"
    text = OLD.replace("static void low", f"{heading}static void low").replace("\n", ending)
    end = f"{ending}}}"
    start = text.index("static void low_kernel_mps(")
    found = Implementation(FILE, "low_kernel_mps", start, text.index(end, start) + len(end), Place(FILE))
    assert "Low kernel" not in apply_removals(tmp_path, text, [found])


def test_a_heading_in_one_word_names_a_function_too(tmp_path: Path) -> None:
    text = OLD.replace("static void low", "// LowKernel\n\nstatic void low")
    assert "// LowKernel" not in removed(tmp_path, text, "low_kernel_mps")


@pytest.mark.parametrize("type", [
    "typedef MPSGraphTensor* (^Type)(MPSGraph*, MPSGraphTensor*);", "using Type = std::function<bool(const Tensor&)>;",
    "enum class Type : uint8_t {\n  LOW = 0,\n  HIGH = 1,\n};"
])  # fmt: skip
def test_a_type_that_nothing_names_any_more_goes_and_others_stay(type: str, tmp_path: Path) -> None:
    mine, theirs = type.replace("Type", "Mine"), type.replace("Type", "Theirs")
    text = OLD.replace("static void choose", f"{mine}\n{theirs}\n{type}\n\nstatic void choose")
    text = text.replace("  choose(iter, false)", "  choose<Mine>(iter, false)")
    text = text.replace("  choose(iter, true)", "  choose<Theirs>(iter, true)")
    after = removed(tmp_path, text, "low_kernel_mps")
    assert "Mine" not in after and f"{theirs}\n{type}\n\nstatic void choose" in after


@pytest.mark.parametrize("above", ["", "// Both\n"])
def test_lines_side_by_side_leave_one_blank_line(above: str, tmp_path: Path) -> None:
    text = OLD.replace("REGISTER_DISPATCH(high", f"{above}REGISTER_DISPATCH(high").replace(
        "} // name", "\nint x;\n} // name"
    )
    text = text.replace("static void choose", "int w;\n\nstatic void choose")
    after = removed(tmp_path, text, "high_kernel_mps", "low_kernel_mps")
    assert after == "namespace at::native {\n\nint w;\n\nint x;\n} // namespace at::native\n"


@pytest.mark.parametrize(("symbols", "stays"), [(("low",), True), (("high",), True), (("high", "low"), False)])
def test_a_heading_over_macro_lines_goes_with_the_last(symbols: tuple[str, ...], stays: bool, tmp_path: Path) -> None:
    text = OLD.replace("REGISTER_DISPATCH(high", "// Both\nREGISTER_DISPATCH(high")
    after = removed(tmp_path, text, *(f"{each}_kernel_mps" for each in symbols))
    assert ("// Both" in after) == stays


@pytest.mark.parametrize("heading", ["// Low", "// High or low kernels", "// kernel mps"])
def test_a_heading_of_what_stays_stays(heading: str, tmp_path: Path) -> None:
    more = "static void low_or_high_kernel_mps(TensorIteratorBase& iter) {\n  choose(iter, true);\n}\n\nREGISTER"
    text = OLD.replace("static void low", f"{heading}\n\nstatic void low").replace("REGISTER", more, 1)
    assert f"\n\n{heading}\n\nstatic void low_or_high" in removed(tmp_path, text, "low_kernel_mps")


def test_kernels_side_by_side_leave_one_blank_line(tmp_path: Path) -> None:
    text = removed(tmp_path, OLD, "high_kernel_mps", "low_kernel_mps")
    assert text == "namespace at::native {\n\n} // namespace at::native\n"


OVERLOADS = """namespace at::native {

Tensor& fill_mps_(Tensor& self, int64_t from, int64_t to) {
  return mps::runMPSGraph(self, from, to);
}

Tensor& fill_mps_(Tensor& self, int64_t to) {
  return fill_mps_(self, 0, to);
}

Tensor& fill_mps_(Tensor& self) {
  return fill_mps_(self, 0, 1);
}
} // namespace at::native
"""


@pytest.mark.parametrize("is_called", [False, True])
def test_overloads_that_only_call_each_other_go_together(is_called: bool, tmp_path: Path) -> None:
    caller = "void start(Tensor& self) {\n  fill_mps_(self);\n}\n"
    text = OVERLOADS + caller * is_called
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    path.write_text(text)
    first = parse_source(FILE, text).functions()[0]
    row = Implementation(FILE, first.name, first.start, first.end, Place(FILE), first)
    edits = [each.edit for each in find_removals(Checkout(tmp_path, "test"), [row], {})]
    left = ChangeSet({FILE: text}, tuple(edits)).apply()[FILE]
    assert left.count("Tensor& fill_mps_(") == (2 if is_called else 0)
