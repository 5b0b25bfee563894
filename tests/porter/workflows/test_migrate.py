"""The spine on the embedded fork: every operator's diff applies, is complete, and leaves nothing to do."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.edits import Edit
from porter.core.errors import PorterError
from porter.core.layout import NATIVE, NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.plan import Draft
from porter.plan.planner import plan_operator
from porter.report.as_json import plan_object
from porter.report.status import State, counts
from porter.workflows.migrate import NotPlanned, PortedOperator, Request, migrate
from porter.workflows.status import operators, portable


def fork() -> Checkout:
    return Checkout(EMBEDDED_FORK, "test")


PORTABLE = portable(fork())
NATIVE_OPERATOR = next(each.name for each in operators(fork()) if {row.state for row in each.rows} == {State.STUB})


def test_the_embedded_fork_has_operators_of_each_class() -> None:
    found = counts(operators(fork()))
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


def test_an_operator_that_an_earlier_port_made_native_does_not_end_the_run() -> None:
    ported, along = migrate(fork(), Request(ops=("atan2", "atan2.out")))
    assert isinstance(ported, PortedOperator) and ported.plan.op == "atan2"
    assert isinstance(along, NotPlanned) and along.error.code == "PTR013" and along.came_along
    assert along.error.what == "atan2.out was ported with an operator before it, whose function it calls"


def test_an_operator_that_was_native_before_does_not_end_the_run() -> None:
    first, native, last = migrate(fork(), Request(ops=("atan2", NATIVE_OPERATOR, "erf")))
    assert isinstance(native, NotPlanned) and (native.error.code, native.came_along) == ("PTR013", False)
    assert isinstance(first, PortedOperator) and isinstance(last, PortedOperator) and last.plan.op == "erf"


def test_a_single_operator_that_has_no_plan_is_refused() -> None:
    with pytest.raises(PorterError, match="PTR013"):
        list(migrate(fork(), Request(ops=(NATIVE_OPERATOR,))))


def with_a_row_that_cannot_move() -> Checkout:
    """The fork with one more row on MPSGraph, whose shared implementation is nowhere to be found."""
    code = f"{OPERATIONS}/BinaryOps.mm"
    line, function = "    CPU, CUDA: lerp_Tensor\n", "TORCH_IMPL_FUNC(lerp_Scalar_mps)"
    added = """TORCH_IMPL_FUNC(lerp_Tensor_mps)(const Tensor& self, const Tensor& end, const Tensor& weight, const Tensor& out) {
  mps::runMPSGraph(self, end, weight, out);
}

"""
    yaml, host = fork().read(NATIVE_FUNCTIONS), fork().read(code)
    assert line in yaml
    assert function in host
    rows = yaml.replace(line, f"{line}    MPS: lerp_Tensor_mps\n")
    return fork().layer({NATIVE_FUNCTIONS: rows, code: host.replace(function, added + function)})


def test_unportable_rows_keep_all_they_need() -> None:
    before = with_a_row_that_cannot_move()
    plan = plan_operator(before, "lerp")
    assert [entry.name for entry in plan.entries] == ["lerp.Scalar_out"]
    [left] = plan.unported
    assert (left.code, "lerp.Tensor_out" in left.reason, plan.complete) == ("PTR071", True, False)
    after = operators(before.layer(plan.changes.apply()))
    states = {row.name: row.state for operator in after for row in operator.rows}
    assert (states["lerp.Scalar_out"], states["lerp.Tensor_out"]) == (State.STUB, State.MPSGRAPH)
    assert [each.symbol for each in plan.removed] == ["lerp_Scalar_mps"]
    assert all(change.is_kept for change in plan.lists)
    assert not any(file.startswith(("test/", "torch/")) for file in plan.changes.files)


def test_rows_that_only_needed_the_stubs_are_ported_too() -> None:
    rows = fork().read(NATIVE_FUNCTIONS)
    assert rows.count("CPU, CUDA, MPS: logit_\n") == 1
    before = fork().layer({NATIVE_FUNCTIONS: rows.replace("CPU, CUDA, MPS: logit_\n", "CPU, CUDA: logit_\n")})
    plan = plan_operator(before, "logit")
    assert [entry.name for entry in plan.entries] == ["logit", "logit.out", "logit_"]
    last = plan.entries[-1]
    assert (str(last.before), str(last.after)) == ("CPU, CUDA: logit_", "CPU, CUDA, MPS: logit_")
    assert "CPU, CUDA, MPS: logit_\n" in plan.changes.apply()[NATIVE_FUNCTIONS]


def test_an_overload_that_cannot_be_ported_is_refused() -> None:
    with pytest.raises(PorterError) as caught:
        plan_operator(with_a_row_that_cannot_move(), "lerp.Tensor_out")
    assert caught.value.code == "PTR071"


def test_the_diff_of_atan2() -> None:
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


@pytest.mark.parametrize("module", ["torch", "rich"])
def test_planning_into_a_pipe_imports_neither_torch_nor_rich(module: str) -> None:
    program = (
        "import sys, porter.cli; code = porter.cli.main(['migrate', 'atan2', '--no-verify']); "
        f"sys.exit(code or '{module}' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


@pytest.mark.parametrize(
    ("module", "without"),
    [
        ("porter.recording.readings", "torch"),
        ("porter.plan.recorded.blocked", "torch"),
        ("aten_overlay.device.frameworks", "torch"),
        ("porter.server.command", "porter.verdict.backends.choice"),  # half of a client's time
    ],
)
def test_plans_from_recorded_runs_and_what_starts_the_device_or_a_command_import_little(
    module: str, without: str
) -> None:
    program = f"import sys, {module}; sys.exit('{without}' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


LERP_TENSOR = """TORCH_IMPL_FUNC(lerp_Tensor)(
    const Tensor& self, const Tensor& end, const Tensor& weight, const Tensor& out) {{
  {body}
}}

DEFINE_DISPATCH"""


@pytest.mark.parametrize(
    ("body", "moves"),
    [
        ("at::native::templates::lerp_impl<LerpStub>(self, end, weight, out);", False),
        ("at::lerp_out(const_cast<Tensor&>(out), self, end, 0.5);", True),
        ("at::positive_out(const_cast<Tensor&>(out), self);", False),
    ],
)
def test_rows_without_a_stub_are_ported_only_where_mps_serves_them(tmp_path: Path, body: str, moves: bool) -> None:
    shutil.copytree(EMBEDDED_FORK, tmp_path, dirs_exist_ok=True)
    file = tmp_path / NATIVE / "Lerp.cpp"
    file.write_text(file.read_text().replace("DEFINE_DISPATCH", LERP_TENSOR.format(body=body), 1))
    row, unserved = with_a_row_that_cannot_move(), "\n- func: positive(Tensor self) -> Tensor\n  dispatch:\n    CPU: f"
    (tmp_path / NATIVE_FUNCTIONS).write_text(row.read(NATIVE_FUNCTIONS) + unserved)
    (tmp_path / OPERATIONS / "BinaryOps.mm").write_text(row.read(f"{OPERATIONS}/BinaryOps.mm"))
    plan = plan_operator(Checkout(tmp_path, "test"), "lerp")
    assert ("lerp.Tensor_out" in {entry.name for entry in plan.entries}) is moves
    assert [left.code for left in plan.unported] == ([] if moves else ["PTR072"])


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.text("ab\n", max_size=5)), max_size=6))
def test_a_draft_s_changes_lead_from_the_disk_to_the_draft(steps: list[tuple[int, int, str]]) -> None:
    draft = Draft(Checkout(Path("/nowhere"), "test").layer({"f": "one\ntwo\n"}))
    for start, length, text in steps:
        size = len(draft.fork.read("f"))
        draft = draft.apply([Edit("f", min(start, size), min(start + length, size), text)])
    assert draft.changes.apply().get("f", "one\ntwo\n") == draft.fork.read("f")
    assert all("one\ntwo\n"[edit.start : edit.end] != edit.text for edit in draft.changes.edits)
