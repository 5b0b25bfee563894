import json
from dataclasses import replace

from expecttest import assert_expected_inline

from porter.core.errors import Place, PorterError
from porter.report.as_json import verdict_object
from porter.report.verdict import table
from porter.verdict import judge
from porter.verdict.behavior import SampleResult, Status
from porter.verdict.result import Skip, VerifyTarget
from porter.verdict.suite.runner import Outcome

OUTCOMES = [
    Outcome("TestConsistencyMPS.test_output_match_atan2_mps_float32", "float32", "passed", "", 9, 0.25),
    Outcome(
        "TestConsistencyMPS.test_accuracy_atan2_mps_float32", "float32", "passed", "", 1, 0.5, 1.75, 0.79, "(1.0, 2.0)"
    ),
    Outcome("TestConsistencyMPS.test_output_match_atan2_mps_int64", "int64", "failed", "differs\nat (0, 1)", 9, 0.25),
    Outcome(
        "TestConsistencyMPS.test_output_match_atan2_mps_int32", "int32", "xpassed", "passes, though listed", 3, 0.25
    ),
    Outcome("TestErrorInputsMPS.test_error_inputs_atan2_mps", "", "skipped", "not here", 0, 0.0),
]


def test_counts_by_dtype() -> None:
    found = judge.judge("atan2", OUTCOMES, 1.25)
    assert (found.passed, found.failed, found.skipped, found.kernel_calls) == (3, 1, 1, 22)
    assert not found.ok
    by_dtype = {d.dtype: (d.passed, d.failed, d.kernel_calls, d.max_ulp) for d in found.dtypes}
    assert by_dtype == {"float32": (2, 0, 10, 1.75), "int64": (0, 1, 9, None), "int32": (1, 0, 3, None)}


def test_skips_are_counted_by_the_first_line_of_their_reasons() -> None:
    skips = [Outcome(f"test_{i}", "int64", "skipped", f"no kernel\n at {i}", 0, 0.0) for i in range(2)]
    listed = Outcome("test_grad", "int64", "xfailed", "as listed", 0, 0.0)
    found = judge.judge("atan2", [listed, *skips, *OUTCOMES[:1]], 1.0)
    assert found.skipped == sum(each.tests for each in found.skips)
    assert found.skips == (Skip("no kernel", 2), Skip("listed as an expected failure", 1))


def test_what_holds_for_samples_is_noted_with_their_number() -> None:
    remarked = [replace(each, remarks=("left out",) * at) for at, each in enumerate(OUTCOMES)]
    assert judge.judge("atan2", remarked, 1.0).notes[1:] == ("left out: 10 samples",)
    assert judge.judge("atan2", remarked[1:2], 1.0).notes == ("left out: 1 sample",)


def test_no_test_proves_nothing() -> None:
    found = judge.judge("atan2", [], 0.0)
    assert not found.ok
    assert [f.reason for f in found.failures] == ["no test was selected, so nothing was verified"]


def test_values_that_are_all_expected_to_differ_prove_nothing() -> None:
    listed = [replace(each, status="xfailed") for each in OUTCOMES if ".test_output_match" in each.test]
    other = Outcome("TestEmptyRowsMPS.test_empty_rows_atan2_mps_float32", "float32", "passed", "", 9, 0.25)
    found = judge.judge("atan2", [*listed, other], 1.0)
    assert (found.ok, found.passed, [each.test for each in found.failures]) == (False, 1, ["test_output_match"])
    assert judge.judge("atan2", [*listed[1:], replace(listed[0], status="passed"), other], 1.0).ok
    assert judge.judge("atan2", [other], 1.0).ok
    assert judge.judge(
        "atan2", [*listed, *(replace(other, test=f"{other.test}_{i}") for i in range(len(listed)))], 1.0
    ).ok


def test_fewer_tests_than_before_the_edit_are_a_failure() -> None:
    found = judge.judge("atan2", OUTCOMES[:2], 1.25)
    lost = judge.require_tests(found, ["TestConsistencyMPS.test_output_match_atan2_mps_float16"] * 2)
    assert found.ok and not lost.ok
    assert [f.test for f in lost.failures] == ["TestConsistencyMPS.test_output_match_atan2_mps_float16"]


def test_what_the_old_path_computed_and_the_port_refuses_is_a_failure() -> None:
    found = judge.judge("atan2", OUTCOMES[:2], 1.25)
    refused = [SampleResult("int64", f"atan2 sample {i}", Status.REFUSED, "no kernel") for i in range(2)]
    lost = judge.require_samples(found, refused)
    assert not lost.ok
    assert [(f.test, f.dtype) for f in lost.failures] == [("atan2 sample 0", "int64")]


def test_types_whose_comparisons_are_all_expected_to_fail_are_listed() -> None:
    name = "TestConsistencyMPS.test_output_match_{}_mps_{}"
    outcomes = [
        replace(OUTCOMES[0], test=name.format(op, dtype), dtype=dtype, status=status)
        for op, dtype, status in (
            ("one", "float32", "xfailed"), ("two", "float32", "passed"), ("one", "float16", "xfailed"),
            ("two", "float16", "xfailed"), ("one", "int64", "failed"),
        )
    ]  # fmt: skip
    others = replace(OUTCOMES[0], test="TestConsistencyMPS.test_layouts_one_mps_int8", dtype="int8", status="xfailed")
    assert judge.list_listed_types([*outcomes, others]) == ("float16",)


def test_selected_tests_do_not_pass_what_is_farther_from_the_cpu_than_before() -> None:
    found = judge.judge("atan2", OUTCOMES[:2], 1.25)
    off = [SampleResult("float32", f"atan2 sample {i}", Status.DIFFERS, "1.0 for 2.0") for i in range(2)]
    worse = judge.require_no_worse(found, off)
    assert not worse.ok and judge.require_no_worse(found, []).ok
    assert [(f.test, f.dtype) for f in worse.failures] == [("atan2 sample 0", "float32")]
    assert worse.failures[0].reason.endswith("the old path matched the CPU: 1.0 for 2.0")


def test_tests_that_call_no_kernel_prove_nothing_of_one() -> None:
    found = replace(judge.judge("atan2", OUTCOMES[:2], 1.25), kernel_calls=0)
    assert found.passed and not judge.require_kernel_calls(VerifyTarget("atan2", kernels=("atan2",)), found).ok
    assert judge.require_kernel_calls(VerifyTarget("atan2", kernels=("atan2",)), replace(found, kernel_calls=1)).ok
    assert judge.require_kernel_calls(VerifyTarget("atan2"), found).ok


def test_a_planned_pair_that_no_test_launched_fails_where_tests_of_its_type_called_other_kernels() -> None:
    target = VerifyTarget("atan2", kernels=("atan2",), pairs=(("float", "float"), ("float2", "float2")))
    found = judge.judge("atan2", OUTCOMES[:2], 1.0)
    judged = judge.require_launches(target, found, target.pairs, ("float32", "complex64"))
    what = "no test launched a kernel of atan2 that takes float and returns float, and tests in float32 called others"
    assert [each.reason for each in judged.failures] == [what]
    assert not judged.ok and judged.failed == 1
    assert judged.notes == ("not proven: no test launched a kernel of atan2 that takes float2 and returns float2",)


def test_a_kernel_that_is_missing_for_a_width_of_indices_fails() -> None:
    verdict = judge.judge("gather", OUTCOMES[:2], 1.0)
    judged = judge.require_registrations(verdict, ["gather_half_long"])
    assert not judged.ok and [each.test for each in judged.failures] == ["registration"]
    assert judge.require_registrations(verdict, []) == verdict


def test_a_planned_pair_whose_type_has_no_passing_kernel_call_or_is_not_demanded_is_noted() -> None:
    target = VerifyTarget("atan2", kernels=("atan2",), pairs=(("float", "float"), ("long", "float")))
    found = judge.judge("atan2", [*OUTCOMES[:1], OUTCOMES[3]], 1.0)
    judged = judge.require_launches(target, found, target.pairs, ("int64",))
    assert judged.ok and len(judged.notes) == 2
    assert judged.notes[1:] == found.notes
    assert judge.require_launches(target, found, (), ("float32",)) == found


def test_one_note_names_some_of_the_pairs_that_no_test_launched_and_counts_the_others() -> None:
    pairs = tuple((kind, kind) for kind in ("long", "int", "short", "char", "uchar"))
    verdict = judge.judge("silu", OUTCOMES[:2], 1.0)
    judged = judge.require_launches(VerifyTarget("silu", kernels=("silu",), pairs=pairs), verdict, pairs, ("float32",))
    assert_expected_inline(
        judged.notes[0],
        """not proven: no test launched a kernel of silu that takes long and returns long, or int and returns int, or short and returns short, and 2 other pairs of types""",
    )
    assert judged.notes[1:] == verdict.notes


def test_the_object_that_a_script_reads_has_a_verdict_and_its_dtypes_by_name() -> None:
    values = json.loads(json.dumps(verdict_object(judge.judge("atan2", OUTCOMES, 1.25))))
    assert_expected_inline(
        " ".join(values),
        """ok op backend arithmetic passed failed skipped kernel_calls max_ulp seconds dtypes failures notes old_path failed_before beside skips fork_findings where""",
    )
    assert (values["ok"], values["where"], values["old_path"]) == (False, "host", None)
    assert list(values["dtypes"]) == ["float32", "int64", "int32"]
    assert_expected_inline(
        json.dumps(values["dtypes"]["int64"]),
        """{"passed": 0, "failed": 1, "skipped": 0, "kernel_calls": 9, "max_ulp": null, "cpu_ulp": null, "seconds": 0.25, "failed_before": 0}""",
    )
    assert_expected_inline(
        json.dumps(values["failures"][0]),
        """{"test": "TestConsistencyMPS.test_output_match_atan2_mps_int64", "reason": "differs\\nat (0, 1)", "dtype": "int64", "place": "", "kernel_calls": 9, "before": "", "code": "", "after": "failed"}""",
    )


def test_verdicts_of_arithmetics_merge_and_name_dependence() -> None:
    default = judge.judge("atan2", OUTCOMES, 1.0)
    failing = [*OUTCOMES[1:], Outcome(OUTCOMES[0].test, "float32", "failed", "0.0 is not 1e-40", 9, 0.25)]
    flushed = judge.judge("atan2", failing, 1.0, arithmetic="flush")
    found = judge.merge_arithmetics([default, flushed])
    assert found.arithmetic == "default+flush"
    assert found.failed == 2
    assert found.failures[-1].reason == "under flush arithmetic: 0.0 is not 1e-40"
    assert found.notes[-1] == "the verdict depends on the arithmetic: 1 tests fail only under flush"


def test_a_build_that_fails_is_a_failed_verdict_at_its_place() -> None:
    error = PorterError("PTR166", "the host code does not compile: no member", Place("a/BinaryKernel.mm", 7))
    found = judge.verdict_of_error("atan2", error, 0.5)
    assert not found.ok
    assert (found.failures[0].test, found.failures[0].place) == ("build", "a/BinaryKernel.mm:7")


def test_the_table() -> None:
    assert_expected_inline(
        table(judge.judge("atan2", OUTCOMES, 1.25)),
        """\
dtype    passed  failed  skipped  kernel calls  max ULP  CPU ULP
float32       2       0        0            10     1.75     0.79
int64         0       1        0             9                  
int32         1       0        0             3                  
FAIL TestConsistencyMPS.test_output_match_atan2_mps_int64
     differs
     at (0, 1)
skipped: 1: not here
note: TestConsistencyMPS.test_output_match_atan2_mps_int32: passes, though listed
atan2: FAIL: 3 passed, 1 failed, 1 skipped, 22 kernel calls, at most 1.75 ULP (backend host, default arithmetic, 1.2 s)""",
    )


def test_tests_that_leave_the_lists_are_one_note_unless_they_fail() -> None:
    match, accuracy, failed, *_ = (outcome.test for outcome in OUTCOMES)
    notes = judge.describe_lists(VerifyTarget("atan2"), [match, accuracy, failed], [], OUTCOMES)
    assert notes == [
        f"removed from the test lists: {match} now passes, and 1 other test",
        f"removed from the test lists: {failed} still fails",
    ]
    [one] = judge.describe_lists(VerifyTarget("atan2"), [match], [], OUTCOMES)
    assert one == f"removed from the test lists: {match} now passes"
