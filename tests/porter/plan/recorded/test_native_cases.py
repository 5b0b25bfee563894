"""The cases of a row: which share a kernel, how host code chooses among them, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.aten.operator import ServedFunction
from porter.core.dtypes import BOOL, FLOAT, INT, LONG
from porter.core.errors import PorterError
from porter.core.layout import INDEXING, KERNEL_LIBRARY, NATIVE_FUNCTIONS, OPERATIONS
from porter.loops.expressions import Op, intern, number
from porter.loops.host_values import Arguments, SizeProduct, TensorValue
from porter.loops.program import Programs, Table
from porter.mpsgraph.conditions import Answered, read_question
from porter.plan.planner import plan_operator
from tests.porter.plan.recorded import fork


def test_a_row_that_is_not_recorded_says_why_no_stub_serves_it(tmp_path: Path) -> None:
    with pytest.raises(PorterError, match="PTR071 found no implementation of shares_cpu"):
        fork.diff(tmp_path, "shares", None)


def test_a_row_whose_calls_run_no_graph_says_so(tmp_path: Path) -> None:
    with pytest.raises(PorterError, match="PTR375 no call of shares ran a graph"):
        fork.diff(tmp_path, "shares", Programs("shares", ()))


def test_a_helper_of_a_helper_that_others_need_stays_as_it_is(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    host = checkout.root / OPERATIONS / "Turns.mm"
    text = host.read_text()
    start, end = text.index("  MPSStream* stream"), text.index("  return output;\n}\n\nTensor turned_mps")
    helper = f"static void run_turn(const Tensor& self, const Tensor& output) {{\n{text[start:end]}}}\n\n"
    text = f"{text[:start]}  run_turn(self, output);\n{text[end:]}"
    host.write_text(text.replace("static Tensor turn_template(", f"{helper}static Tensor turn_template("))
    diff = plan_operator(checkout, "turned", programs=lambda served: fork.turned()).changes.diff()
    assert 'getPipelineStateForFunc("turned_"' in diff
    assert not any(line.startswith("-") and "run_turn" in line for line in diff.splitlines())


def test_cases_are_chosen_by_their_conditions(tmp_path: Path) -> None:
    [general] = fork.turned().cases
    once = replace(
        fork.turned(more=True).cases[0],
        when=(Answered(read_question("times == 1"), True), Answered(read_question("self.dim() == 2"), False)),
    )
    made = fork.diff(tmp_path, "turned", Programs("turned", (once, general)))
    assert 'kernel = times == 1 && !(self.dim() == 2) ? "turned_case1" : "turned";' in made
    assert 'getPipelineStateForFunc(kernel + "_" +' in made


def test_cases_of_other_dimensions_are_refused(tmp_path: Path) -> None:
    """That recordings differ in them is known of calls, and is no question that host code can ask."""
    [case], [other] = fork.turned().cases, fork.turned(more=True).cases
    named = Answered(read_question("names_all_dims(times, self.dim())"), True)
    cases = (replace(case, when=(named,)), replace(other, when=(replace(named, holds=False),)))
    with pytest.raises(PorterError, match="PTR376 cases differ in which dimensions a list names"):
        fork.diff(tmp_path, "turned", Programs("turned", cases))


def test_the_case_of_a_flag_comes_before_the_one_without_it(tmp_path: Path) -> None:
    [case], [other] = fork.turned().cases, fork.turned(more=True).cases
    flag = Answered(read_question("times"), True)
    cases = (replace(case, when=(replace(flag, holds=False),)), replace(other, when=(flag,)))
    made = fork.diff(tmp_path, "turned", Programs("turned", cases))
    assert 'kernel = times ? "turned_times" : "turned";' in made


def test_cases_of_one_kernel_are_one_under_what_they_have_in_common(tmp_path: Path) -> None:
    [case] = fork.turned().cases
    flat, is_once = Answered(read_question("self.dim() == 1"), True), Answered(read_question("times == 1"), True)
    other = replace(fork.turned(more=True).cases[0], when=())
    cases = (replace(case, when=(flat, is_once)), replace(case, when=(flat, replace(is_once, holds=False))), other)
    made = fork.diff(tmp_path, "turned", Programs("turned", cases))
    assert 'kernel = self.dim() == 1 ? "turned_case1" : "turned";' in made


def test_cases_that_hold_for_the_same_calls_are_refused(tmp_path: Path) -> None:
    cases = (*fork.turned().cases, *fork.turned(more=True).cases)
    with pytest.raises(PorterError, match="PTR376 two cases hold for the same calls"):
        fork.diff(tmp_path, "turned", Programs("turned", cases))


def test_cases_without_a_condition_are_refused(tmp_path: Path) -> None:
    [case] = fork.turned().cases
    [other] = fork.turned(more=True).cases
    unknown = replace(other, when=(Answered(read_question("unknown condition"), True),))
    with pytest.raises(PorterError, match="PTR376"):
        fork.diff(tmp_path, "turned", Programs("turned", (unknown, case)))


def test_cases_of_other_types_share_a_kernel(tmp_path: Path) -> None:
    [case] = fork.mean_square().cases
    given, result = TensorValue((6, 7), INT), TensorValue((), LONG)
    call = Arguments({"self": given, "result0": result}, {})
    integers = replace(case, dtypes=(INT,), calls=(call,))
    made = fork.diff(tmp_path, "mean_square", Programs("mean_square", (case, integers)))
    assert "template <typename T, typename T1, typename index_t>" in made
    assert "REGISTER_MEAN_SQUARE(int, long);" in made
    assert "REGISTER_MEAN_SQUARE(half, half);" in made
    assert "REGISTER_MEAN_SQUARE(short, long);" in made  # as int is
    assert "case1" not in made


def test_a_value_that_the_function_has_no_variable_for_is_refused(tmp_path: Path) -> None:
    [case] = fork.shares().cases
    nest = replace(case.nests[0], rows=SizeProduct("weight"))
    with pytest.raises(PorterError, match="PTR371 the host code has no variable of its own for `weight`"):
        fork.diff(tmp_path, "shares", Programs("shares", (replace(case, nests=(nest,)),)))


def test_a_table_of_constants_is_refused(tmp_path: Path) -> None:
    [case] = fork.shares().cases
    roles = {**case.roles, fork.INPUT: Table((1.0, 2.0), FLOAT)}
    with pytest.raises(PorterError, match="PTR377"):
        fork.diff(tmp_path, "shares", Programs("shares", (replace(case, roles=roles),)))


def test_a_result_that_is_a_constant_of_the_graph_is_refused(tmp_path: Path) -> None:
    [case] = fork.shares().cases
    with pytest.raises(PorterError, match="PTR377"):
        fork.diff(tmp_path, "shares", Programs("shares", (replace(case, nests=()),)))


def test_there_is_no_scaffold_of_what_was_not_recorded(tmp_path: Path) -> None:
    def lack(served: ServedFunction) -> None:
        raise PorterError("PTR395", "no runs of shares are kept")

    with pytest.raises(PorterError, match="PTR395"):
        plan_operator(fork.copy_fork(tmp_path), "shares", programs=lack, scaffold=True)


def test_a_scaffold_has_each_open_decision_as_a_comment_and_raises(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    plan = plan_operator(checkout, "shares", programs=lambda served: None, scaffold=True)
    assert not plan.complete
    assert_expected_inline(
        "\n".join(line for line in plan.changes.diff().splitlines() if line[:1] in "+-"),
        """\
--- /dev/null
+++ b/aten/src/ATen/native/mps/kernels/Turns.metal
+#include <metal_stdlib>
+
+using namespace metal;
+
+template <typename T>
+kernel void shares(
+    device T* output,
+    constant T* input,
+    uint tid [[thread_position_in_grid]]) {
+  // PTR071: found no implementation of shares_cpu
+}
--- a/aten/src/ATen/native/mps/operations/Turns.mm
+++ b/aten/src/ATen/native/mps/operations/Turns.mm
-  auto graph = LookUpOrCreateCachedGraph<SharesCachedGraph>(key, makeGraph);
-  runMPSGraph(getCurrentMPSStream(), graph->graph(), feeds, output);
+  // PTR071: found no implementation of shares_cpu
+  TORCH_CHECK_NOT_IMPLEMENTED(false, "shares: its kernel is not written yet");
+""",
    )


def test_a_fork_without_the_functor_dialect_is_ported_too(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    header = checkout.root / INDEXING
    header.write_text(header.read_text().replace("#define REGISTER_BINARY_OP", "#define OLD_BINARY_OP"))
    plan = plan_operator(checkout, "turned", programs=lambda served: fork.turned())
    assert plan.complete
    with pytest.raises(PorterError, match="PTR071"):
        plan_operator(checkout, "turned")
    with pytest.raises(PorterError, match="PTR002"):
        plan_operator(checkout, "atan2")


def test_a_result_that_is_copied_from_memory_of_the_graph_is_refused(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    host = checkout.root / OPERATIONS / "Turns.mm"
    lines = "  runMPSGraph(getCurrentMPSStream(), graph->graph(), feeds, {});\n"
    copied = lines.format("values") + "  output.copy_(values);\n"
    host.write_text(host.read_text().replace(lines.format("output"), copied))
    with pytest.raises(PorterError, match=r"PTR359 .*copies to output from values"):
        plan_operator(checkout, "shares", programs=lambda served: fork.shares())


def test_a_kernel_writes_what_the_graph_did_where_that_is_copied_to_the_result(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    host = checkout.root / OPERATIONS / "Turns.mm"
    old = "  runMPSGraph(getCurrentMPSStream(), graph->graph(), feeds, output);\n"
    made = (
        "  auto values = output;\n  if (needsGather(values)) {\n    values = at::empty(values.sizes(), options);\n  }\n"
    )
    made += "  auto placeholder = Placeholder(graph->shares, values);\n" + old + "  output.copy_(values);\n"
    host.write_text(host.read_text().replace(old, made))
    diff = plan_operator(checkout, "shares", programs=lambda served: fork.shares()).changes.diff()
    assert "mtl_setArgs(computeEncoder, values_contiguous, self_contiguous, width);" in diff


def test_a_result_that_looks_for_its_elements_is_refused(tmp_path: Path) -> None:
    [case] = fork.shares().cases
    [symbolic] = case.nests
    [store] = symbolic.nest.stores
    total = store.value.args[1]
    [turn] = total.reduction.loops
    same = intern(Op.EQUAL, (fork.index(turn), fork.index(symbolic.nest.rows[0])), BOOL)
    kept = intern(Op.SELECT, (same, total.args[0], number(0, FLOAT)), FLOAT)
    found = replace(store, value=intern(Op.REDUCE, (kept,), FLOAT, total.reduction))
    nest = replace(symbolic, nest=replace(symbolic.nest, stores=(found,)))
    with pytest.raises(PorterError, match="PTR360 each result of shares would look"):
        fork.diff(tmp_path, "shares", Programs("shares", (replace(case, nests=(nest,)),)))


def test_a_case_of_one_kind_of_type_is_named_by_it_and_narrow_integers_go_with_int(tmp_path: Path) -> None:
    [case] = fork.turned().cases
    [other] = fork.turned(more=True).cases
    calls = tuple(Arguments({name: TensorValue((6, 7), INT) for name in ("self", "result0")}, {}) for _ in fork.TYPES)
    made = fork.diff(tmp_path, "turned", Programs("turned", (case, replace(other, dtypes=(INT,), calls=calls))))
    assert 'at::isIntegralType(self.scalar_type(), /*includeBool=*/false) ? "turned_integral" : "turned";' in made
    mixed = replace(case, dtypes=(FLOAT, LONG))
    made = fork.diff(
        tmp_path / "mixed", "turned", Programs("turned", (mixed, replace(other, dtypes=(INT,), calls=calls)))
    )
    assert "self.scalar_type() == ScalarType::Int || self.scalar_type() == ScalarType::Short" in made


def test_a_function_that_refuses_complex_numbers_has_no_kernels_of_them(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    host = checkout.root / OPERATIONS / "Turns.mm"
    check = "TORCH_CHECK(times > 0, "
    host.write_text(host.read_text().replace(check, f'TORCH_CHECK(!self.is_complex(), "real");\n  {check}'))
    made = plan_operator(checkout, "turned", programs=lambda served: fork.turned()).changes.diff()
    assert "REGISTER_TURNED(float);" in made and "REGISTER_TURNED(float2);" not in made


def test_rows_of_one_operator_share_a_kernel_that_is_the_same(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    rows = """
- func: parts(Tensor self) -> Tensor
  dispatch:
    CPU: parts_cpu
    MPS: parts_mps

- func: parts.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  dispatch:
    CPU: parts_out_cpu
    MPS: parts_out_mps
"""
    run = "  runMPSGraph(getCurrentMPSStream(), makeGraph(self), feeds, output);\n  return output;\n}\n\n"
    made = f"Tensor parts_mps(const Tensor& self) {{\n  Tensor output = at::empty_like(self);\n{run}"
    made += f"Tensor& parts_out_mps(const Tensor& self, Tensor& output) {{\n{run}"
    with (checkout.root / NATIVE_FUNCTIONS).open("a") as file:
        file.write(rows)
    host = checkout.root / OPERATIONS / "Turns.mm"
    host.write_text(host.read_text().replace("} // namespace at::native", f"{made}}} // namespace at::native"))
    plan = plan_operator(checkout, "parts", programs=lambda served: replace(fork.shares(), name=served.function.name))
    diff = plan.changes.diff()
    assert (
        plan.complete and diff.count("+kernel void parts(") == 1 and diff.count('getPipelineStateForFunc("parts_"') == 2
    )


def test_a_tensor_that_no_recorded_call_gives_is_refused(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    table = checkout.root / NATIVE_FUNCTIONS
    table.write_text(table.read_text().replace("shares(Tensor self)", "shares(Tensor self, Tensor? weight=None)"))
    host = checkout.root / OPERATIONS / "Turns.mm"
    taken = "shares_mps(const Tensor& self, const std::optional<Tensor>& weight)"
    host.write_text(host.read_text().replace("shares_mps(const Tensor& self)", taken))
    with pytest.raises(PorterError, match="PTR361 no recorded call of shares gives `weight`"):
        plan_operator(checkout, "shares", programs=lambda served: fork.shares())


@pytest.mark.parametrize(("code", "is_of_row"), [("PTR395", True), ("PTR170", False)])
def test_a_row_says_why_nothing_is_recorded_of_it(code: str, is_of_row: bool, tmp_path: Path) -> None:
    def fail(served: ServedFunction) -> Programs:
        raise PorterError(code, f"no runs of {served.function.base} are kept", hint="Record them.")

    with pytest.raises(PorterError) as raised:
        plan_operator(fork.copy_fork(tmp_path), "shares", programs=fail)
    assert raised.value.code == code
    if not is_of_row:
        assert raised.value.hint == "Record them.", "nothing is wrong with the row"
        return
    assert raised.value.what == "no runs of shares are kept"
    hint, stub = raised.value.hint.split("\n  ")
    assert hint == "Record them.", "what to do about its runs comes first"
    assert stub.startswith("No stub serves it either: ") and "PTR071 " in stub


def test_a_fork_without_the_library_that_launches_kernels_is_refused_before_anything_runs(tmp_path: Path) -> None:
    def run(served: ServedFunction) -> Programs:
        raise AssertionError("the old code runs, and no port can come of it")

    checkout = fork.copy_fork(tmp_path)
    (checkout.root / KERNEL_LIBRARY).unlink()
    with pytest.raises(PorterError) as raised:
        plan_operator(checkout, "shares", programs=run)
    assert (raised.value.code, KERNEL_LIBRARY in raised.value.what) == ("PTR002", True)
    assert raised.value.hint.startswith("docs/your-fork.md")


def test_a_row_that_each_device_serves_by_itself_names_their_functions(tmp_path: Path) -> None:
    checkout = fork.copy_fork(tmp_path)
    table = checkout.root / NATIVE_FUNCTIONS
    table.write_text(table.read_text().replace("    CPU: shares_cpu\n", "    CPU: shares_cpu\n    CUDA: shares_cuda\n"))
    with pytest.raises(PorterError) as raised:
        plan_operator(checkout, "shares")
    says = "shares is shares_cpu on CPU, shares_cuda on CUDA: no code that MPS can share"
    assert (raised.value.code, raised.value.what) == ("PTR501", says)
