"""The spine on the embedded fork: every operator's diff applies, is complete, and leaves nothing to do."""

import subprocess
import sys
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.checkout import EMBEDDED_FORK, Checkout
from porter.errors import PorterError
from porter.migrate import plan_operator
from porter.report.as_json import plan_object
from porter.status import as_rows, counts, portable


def fork() -> Checkout:
    return Checkout(EMBEDDED_FORK, "test")


PORTABLE = portable(fork())


def test_the_embedded_fork_has_operators_of_each_class() -> None:
    found = counts(as_rows(fork()))
    assert found["MPSGraph"] > 10
    assert found["native through a stub"] >= 2


@pytest.mark.parametrize("op", [op for op in PORTABLE if op != "lerp"])
def test_a_plan_is_complete_applies_and_is_planned_once(op: str, tmp_path: Path) -> None:
    plan = plan_operator(fork(), op)
    assert plan.complete
    assert plan.registrations
    assert plan.removed
    after = plan.changes.apply()
    for file, text in plan.changes.base.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    applied = subprocess.run(
        ["git", "apply", "--unsafe-paths", "-"], input=plan.changes.diff(), text=True, cwd=tmp_path, capture_output=True
    )
    assert applied.returncode == 0, applied.stderr
    assert {file: (tmp_path / file).read_text() for file in after} == after
    with pytest.raises(PorterError, match="PTR013"):
        plan_operator(fork().layer(after), op)


def test_the_diff_that_users_see_first() -> None:
    edits = [line for line in plan_operator(fork(), "atan2").changes.diff().splitlines() if line[:1] in "+-"]
    shown = [line for line in edits if not line.startswith(("+++", "---")) and "BinaryOps" not in line]
    assert_expected_inline(
        "\n".join(line for line in shown if line.startswith("+")),
        """\
+
+struct atan2_functor {
+  template <typename T>
+  inline enable_if_t<is_floating_point_v<T>, T> operator()(
+      const T a,
+      const T b) {
+    return static_cast<T>(
+        precise::atan2(static_cast<float>(a), static_cast<float>(b)));
+  }
+  template <typename T>
+  inline enable_if_t<is_integral_v<T>, float> operator()(const T a, const T b) {
+    return precise::atan2(static_cast<float>(a), static_cast<float>(b));
+  }
+};
+REGISTER_FLOAT_BINARY_OP(atan2);
+REGISTER_INT2FLOAT_BINARY_OP(atan2);
+
+static void atan2_mps_kernel(TensorIteratorBase& iter) {
+  lib.exec_binary_kernel(iter, "atan2");
+}
+REGISTER_DISPATCH(atan2_stub, &atan2_mps_kernel)
+    CPU, CUDA, MPS: atan2_out""",
    )


def test_json_has_a_row_for_each_dtype_pair() -> None:
    found = plan_object(plan_operator(fork(), "hypot"), None)
    assert found["entries"] == [
        {"name": "hypot.out", "before": "MPS: hypot_out_mps", "after": "CPU, CUDA, MPS: hypot_out"}
    ]
    assert {(r["in"], r["out"]) for r in found["registrations"]} == {
        ("float", "float"),
        ("half", "half"),
        ("bfloat", "bfloat"),
    }
    assert found["verdict"] is None
    assert found["unported"] == []


@pytest.mark.parametrize(("op", "code"), [("atan", "PTR012"), ("exp", "PTR013"), ("arctan2", "PTR014")])
def test_what_cannot_be_migrated_is_refused_with_its_code(op: str, code: str) -> None:
    with pytest.raises(PorterError) as caught:
        plan_operator(fork(), op)
    assert caught.value.code == code


def test_planning_imports_no_torch() -> None:
    program = (
        "import sys, porter.cli; porter.cli.main(['migrate', 'atan2', '--no-verify']); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


def test_every_code_that_is_raised_has_a_page() -> None:
    import re

    root = EMBEDDED_FORK.parent.parent
    sources = [p for room in ("porter", "aten_overlay") for p in (root / room).rglob("*.py")]
    raised = {code for path in sources for code in re.findall(r'"(PTR\d{3})"', path.read_text())}
    pages = {path.stem for path in (root / "docs" / "errors").glob("PTR*.md")}
    assert raised <= pages
