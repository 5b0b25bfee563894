"""Right ports pass, and every fault planted in one fails its verdict with the reason."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.core.layout import INDEXING, NATIVE_FUNCTIONS, OPERATIONS
from porter.plan.planner import plan_operator
from porter.verdict.result import Verdict
from porter.verdict.verify import target_of, verify
from tests.porter.verdict.written_ports import HOST_CODE, LISTS, METAL, OLD_CODE, Port


def reasons(verdict: Verdict) -> str:
    assert verdict.failed == len(verdict.failures) > 0
    assert not verdict.ok
    return "\n".join(f"{f.test} {f.place} {f.reason}" for f in verdict.failures)


@pytest.mark.parametrize("name", ["atan2", "hypot", "remainder"])
def test_a_correct_port_passes(name: str, request: pytest.FixtureRequest) -> None:
    verdict = request.getfixturevalue(name).verdict()
    assert verdict.failures == ()
    assert verdict.ok and verdict.kernel_calls > 100
    assert {"float32", "float16", "bfloat16"} <= {d.dtype for d in verdict.dtypes if d.kernel_calls}


def test_the_removed_list_entry_passes_now(atan2: Port) -> None:
    notes = atan2.verdict("test_output_match").notes
    assert "removed from the test lists: TestConsistencyMPS.test_output_match_atan2_mps_int64 now passes" in notes


def test_a_type_put_on_the_test_lists_is_no_longer_tested(atan2: Port) -> None:
    entry = '"atan2": [torch.float32],\n            '
    listed = atan2.edited(LISTS, '"log1p": [', f'{entry}"log1p": [')
    assert "test_output_match_atan2_mps_float32  no longer tested" in reasons(listed.verdict("test_output_match"))


def test_results_written_over_operands(atan2: Port) -> None:
    call = 'lib.exec_binary_kernel(iter, "atan2")'
    wrong = atan2.edited(HOST_CODE, call, f"iter.output().zero_();\n  {call}")
    assert "in place with itself" in reasons(wrong.verdict("test_overlap"))


def test_an_uncallable_kernel_gives_no_verdict(atan2: Port) -> None:
    several = replace(atan2, target=replace(atan2.target, kernels=("atan2", "copysign")))
    with pytest.raises(PorterError) as refused:
        verify(EMBEDDED_FORK, several.texts, several.target, backend="kernels")
    assert refused.value.code == "PTR172"


def test_swapped_arguments(atan2: Port) -> None:
    wrong = atan2.edited(METAL, "precise::atan2(float(a), float(b))", "precise::atan2(float(b), float(a))")
    assert "test_output_match_atan2_mps_float32" in reasons(wrong.verdict("test_output_match and float32"))


def test_dependence_on_one_arithmetic_is_flagged(atan2: Port) -> None:
    small = "precise::atan2(float(a) * 0x1p-128f, float(b) * 0x1p-128f)"  # denormals, which a GPU may flush
    found = atan2.edited(METAL, "precise::atan2(float(a), float(b))", small).verdict(
        "test_output_match and float32", "all"
    )
    assert found.notes[-1] == "the verdict depends on the arithmetic: 1 tests fail only under flush"
    assert "under flush arithmetic" in reasons(found)


def test_integer_through_float(remainder: Port) -> None:
    wrong = remainder.edited(METAL, "T(a % b)", "T(float(a) - float(b) * ::metal::trunc(float(a) / float(b)))")
    told = reasons(wrong.verdict("test_edge_values and int64"))
    assert "test_edge_values_remainder_mps_int64" in told
    assert "16777217" in told


def test_nan_dropped(hypot: Port) -> None:
    wrong = hypot.edited(METAL, "isnan(x) || isnan(y) || high == 0", "high == 0")
    assert "nan" in reasons(wrong.verdict("test_edge_values"))


def test_a_dtype_pair_missing(atan2: Port) -> None:
    wrong = atan2.edited(METAL, "REGISTER_BINARY_OP(atan2, short, float);\n", "")
    verdict = wrong.verdict()
    assert "no kernel of atan2 takes short and returns float" in reasons(verdict)
    assert {f.dtype for f in verdict.failures} == {"int16"}


def test_a_stub_under_the_wrong_kernel_name(atan2: Port) -> None:
    wrong = atan2.edited(HOST_CODE, 'exec_binary_kernel(iter, "atan2")', 'exec_binary_kernel(iter, "copysign")')
    assert "copysign" in reasons(wrong.verdict("test_output_match and float32"))


def test_yaml_not_edited(atan2: Port) -> None:
    wrong = atan2.edited(NATIVE_FUNCTIONS, "CPU, CUDA, MPS: atan2_out", "CPU, CUDA: atan2_out")
    assert "PTR161" in reasons(wrong.verdict())
    untouched = atan2.edited(
        NATIVE_FUNCTIONS, "CPU, CUDA, MPS: atan2_out", "CPU, CUDA: atan2_out\n    MPS: atan2_out_mps"
    )
    unreached = untouched.restored(OLD_CODE).verdict("test_output_match and float32")
    assert "never reached the ported kernel (atan2)" in reasons(unreached)


def test_one_of_several_rows_not_edited() -> None:
    plan = plan_operator(Checkout(EMBEDDED_FORK, "embedded"), "eq")
    port = Port(target_of(plan, "eq"), plan.changes.apply())
    wrong = port.edited(NATIVE_FUNCTIONS, "CPU, CUDA, MPS, MTIA: eq_Scalar_out", "CPU, CUDA, MTIA: eq_Scalar_out")
    assert "PTR161 eq.Scalar_out does not dispatch to MPS" in reasons(wrong.verdict("test_output_match and float32"))


def test_a_strided_only_bug(atan2: Port) -> None:
    wrong = atan2.edited(
        INDEXING,
        "val_at_offs<T>(other, offset_from_coord(pos, other_strides, ndim.x));",
        "val_at_offs<T>(other, offset_from_coord(pos, input_strides, ndim.x));",
    )
    assert "test_layouts_atan2_mps_float32" in reasons(wrong.verdict("test_layouts and float32"))


def test_half_without_opmath(hypot: Port) -> None:
    body = HYPOT_BODY.split("const float x")[1]
    wrong = hypot.edited(METAL, "const float x" + body, "return static_cast<T>(::metal::sqrt(a * a + b * b));\n")
    assert "opmath" in reasons(wrong.verdict("test_accuracy and float16"))


def test_an_out_of_bounds_write(atan2: Port) -> None:
    wrong = atan2.edited(
        INDEXING,
        "  output[index] = static_cast<result_of<F, T, T>>(\n"
        "      f(static_cast<OM>(input[index]), static_cast<OM>(other[index])));",
        "  output[index] = static_cast<result_of<F, T, T>>(\n"
        "      f(static_cast<OM>(input[index]), static_cast<OM>(other[index])));\n"
        "  output[index + 1] = output[index];",
    )
    told = reasons(wrong.verdict("test_out_ or test_layouts"))
    assert "out= a dense view: wrote outside the view" in told
    assert (
        "with bounds checks: " in told and "kernel `atan2_dense_float_float` has a data race in device memory" in told
    )


def test_old_code_that_no_row_declares(atan2: Port) -> None:
    told = reasons(atan2.restored(OLD_CODE).verdict("test_output_match and float32"))
    assert f"{OLD_CODE}:174 PTR426 the port breaks other host code: " in told


def test_another_file_that_calls_a_removed_function(atan2: Port, tmp_path: Path) -> None:
    """It compiles, for it declares the function itself."""
    fork = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, fork)
    helper, caller = f"{OPERATIONS}/Helper.mm", f"{OPERATIONS}/Caller.mm"
    opened = "namespace at::native::mps {\nint count_of_helper(int x)"
    (fork / helper).write_text(f"{opened} {{\n  return x;\n}}\n}}\n")
    (fork / caller).write_text(f"{opened};\nint call(int x) {{\n  return count_of_helper(x);\n}}\n}}\n")
    expr = "test_output_match and float32"
    assert verify(fork, atan2.texts, atan2.target, expr).ok
    told = reasons(verify(fork, {**atan2.texts, helper: ""}, atan2.target, expr))
    assert "PTR426 the port breaks other host code: nothing defines at::native::mps::count_of_helper" in told


def test_a_compile_error_after_a_working_build(atan2: Port) -> None:
    assert atan2.verdict("test_output_match and float32").ok
    wrong = atan2.edited(METAL, "float(a), float(b)));", "float(a), float(c)));")
    told = reasons(wrong.verdict("test_output_match and float32"))
    assert "use of undeclared identifier 'c'" in told
    assert f"{METAL}:" in told


HYPOT_BODY = """const float x = ::metal::abs(float(a)), y = ::metal::abs(float(b));
    if (isinf(x) || isinf(y)) {
      return static_cast<T>(INFINITY);
    }
    const float high = ::metal::max(x, y), low = ::metal::min(x, y);
    if (isnan(x) || isnan(y) || high == 0) {
      return static_cast<T>(x + y);
    }
    const float ratio = low / high;
    return static_cast<T>(high * precise::sqrt(1 + ratio * ratio));
"""
