"""What `porter kernel` prints of checks, traces and times."""

from __future__ import annotations

from expecttest import assert_expected_inline

from porter.kernels.checking import CaseResult, StageResult
from porter.kernels.compare import Difference
from porter.kernels.script import Kind, WrongStage
from porter.kernels.timing import Fused, Timing
from porter.kernels.writer import Writer
from porter.report.kernel import TIMING_HEADING, check_lines, check_object, timing_line, timing_object, trace_lines

DIFFERENCE = Difference("out", (1, 2), "3.0", "4.0", 5, 60)
WRONG = CaseResult("3x4-float32-dense", WrongStage("scan", DIFFERENCE))


def test_the_times_and_what_is_over() -> None:
    timings = [
        Timing("4096x1024-float32-dense", Kind.ROW_WISE, 4.0, 8.0, 2.0),
        Timing("4194304-float32-dense", Kind.ELEMENTWISE, 3.0, None, 2.0),
        Timing("256x256x256-float32-dense", Kind.MATRIX, 30.0, 20.0, 1.0),
        Timing("64x64-float32-dense", Kind.ATOMIC, 3.0, 6.0, 2.0, (Fused("forward", 1.0, 17.24),)),
    ]
    assert_expected_inline(
        "\n".join([TIMING_HEADING, *(timing_line("mine", each) for each in timings)]),
        """\
template           case                               kernel ms simple ms  torch ms   ratio  to simple
mine               4096x1024-float32-dense                4.000     8.000     2.000    2.00       0.50
mine               4194304-float32-dense                  3.000               2.000    1.50             over the 1.2 aimed at
mine               256x256x256-float32-dense             30.000    20.000     1.000   30.00       1.50  slower than simple
mine               64x64-float32-dense                    3.000     6.000     2.000    1.50       0.50
  forward: 17.2 times as fast as in operators of torch (17.240 ms)""",
    )
    assert timing_object("mine", timings[1]) == {
        "template": "mine", "kind": "elementwise", "target": 1.2, "case": "4194304-float32-dense", "kernel": 3.0,
        "simple": None, "torch": 2.0, "ratio": 1.5, "to_simple": None, "fused": [], "copied": None,
    }  # fmt: skip
    assert timing_object("mine", timings[3])["fused"] == [
        {"stage": "forward", "kernel": 1.0, "operators": 17.24, "ratio": 17.24}
    ]


def test_a_check_shows_some_failures_and_counts_all() -> None:
    results = [CaseResult("1-float32-dense"), *[WRONG] * 6, CaseResult("refusals", error="a wrong `x` is not refused")]
    lines = check_lines("mine.py", results)
    assert lines[0] == "3x4-float32-dense: stage scan: out[1, 2] is 4.0, not 3.0 (5 of 60 elements differ)"
    assert lines[5:] == ["and 2 more", "FAIL mine.py: 1 passed, 7 failed (host)"]
    told = check_object("mine.py", results)
    assert (told["ok"], told["passed"], len(told["failed"])) == (False, 1, 7)
    assert told["failed"][0] | {"error": ""} == told["failed"][0]
    assert (told["failed"][0]["stage"], told["failed"][0]["index"]) == ("scan", [1, 2])
    assert check_lines("mine.py", results[:1]) == ["PASS mine.py: 1 passed, 0 failed (host)"]
    warned = [CaseResult("1-float32-dense", warnings=("k.metal:1: PTR294 kernel `k`: known",))]
    assert check_lines("mine.py", warned)[0] == "warning: k.metal:1: PTR294 kernel `k`: known"
    assert check_object("mine.py", warned)["warnings"] == ["k.metal:1: PTR294 kernel `k`: known"]
    assert check_lines("mine.py", results[:1], "mps") == ["PASS mine.py: 1 passed, 0 failed (mps)"]


def trace_of(writer: Writer | None) -> str:
    return "\n".join(trace_lines(StageResult("3x4-float32-dense", "scan", DIFFERENCE, writer))[5:])


def test_a_trace_tells_who_wrote_the_element_as_far_as_it_knows() -> None:
    assert trace_of(None) == ""
    assert trace_of(Writer("sums")) == "  written   by no thread of kernel `sums`"
    assert_expected_inline(
        trace_of(Writer("sums", (3, 0, 0), "sums body", 4, "out[i] = sum;", 2)),
        """\
  written   by thread (3, 0, 0) of kernel `sums`, the last of 2 stores
            sums body, line 4
            out[i] = sum;""",
    )
    assert_expected_inline(
        trace_of(Writer("sums", (3, 0, 0), count=1)),
        """\
  written   by thread (3, 0, 0) of kernel `sums`
            from an unknown line""",
    )
