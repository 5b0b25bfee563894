"""What is wrong with a fork beside a port: said by its verdict, and no reason to fail it unless that is strict."""

from __future__ import annotations

import shutil
from pathlib import Path

from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNELS, MPS, OPERATIONS
from porter.report.verdict import table
from porter.verdict.judge import merge_arithmetics, merge_bounds_check, merge_large
from porter.verdict.result import Failure, ForkFinding, Verdict, add_findings, fail_for_findings, place_findings
from porter.verdict.verify import verify
from tests.porter.verdict.written_ports import Port

ONE, TWO = ForkFinding("PTR166 no member", "aten/a.mm:3"), ForkFinding("PTR101 no type")
LIBRARY = f"{MPS}/MetalShaderLibrary.mm"
PASSED = Verdict("atan2", "host", "default", 4, 0, 0, 8, None, 0.5)


def test_a_strict_verdict_fails_for_each_finding() -> None:
    found = add_findings(PASSED, [ONE, TWO, ONE])
    assert found.ok and found.fork_findings == (ONE, TWO)
    strict = fail_for_findings(found)
    assert (strict.ok, strict.failed) == (False, 2)
    assert strict.failures[0] == Failure("fork", "PTR166 no member", place="aten/a.mm:3")
    assert fail_for_findings(PASSED) == PASSED


def test_findings_are_printed_as_notes() -> None:
    lines = table(add_findings(PASSED, [ONE, TWO])).splitlines()
    assert lines[:2] == [
        "note: finding about the fork at aten/a.mm:3: PTR166 no member", "note: finding about the fork: PTR101 no type"
    ]  # fmt: skip


def test_findings_of_all_runs_are_kept_once() -> None:
    one, two = add_findings(PASSED, [ONE]), add_findings(PASSED, [ONE, TWO])
    for merged in (merge_arithmetics([one, two]), merge_bounds_check(one, [two]), merge_large(one, two)):
        assert merged.fork_findings == (ONE, TWO)


def test_files_beside_a_port_that_do_not_compile_are_findings(atan2: Port, tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, fork)
    headless, wrong = fork / KERNELS / "Headless.metal", fork / KERNELS / "Wrong.metal"
    headless.write_text("#include <not/there.h>\nREGISTER_UNARY_OP(sinc, float, float);\n")
    wrong.write_text(
        '#include <metal_stdlib>\n[[host_name("atan2_like_float")]] kernel void f(device float* x) {\n  x[0] = y;\n}\n'
    )
    (fork / MPS / "Extra.mm").write_text("int extra() {\n  return missing;\n}\n")
    (fork / OPERATIONS / "Other.mm").write_text("// as hypot and atan2_stub do\nint other = missing + atan2_stub;\n")
    found = verify(fork, atan2.texts, atan2.target, "test_output_match and float32")
    assert found.ok, table(found)
    assert {finding.place for finding in found.fork_findings} == {
        f"{KERNELS}/Headless.metal:1", f"{KERNELS}/Wrong.metal:3", f"{MPS}/Extra.mm:2", f"{OPERATIONS}/Other.mm:2"
    }  # fmt: skip
    assert "note: finding about the fork at " in table(found)


CONDITION = "  if (output.scalar_type() != natural && !casts_out) {\n"
LACKING = """    TORCH_CHECK(false, "Failed to create function state object for: ", name, "_dense_",
        scalarToMetalTypeString(output.scalar_type()), "_", scalarToMetalTypeString(common));
"""
FOUR = "      mtl_setBytes(encoder, ndim_types, next);\n"
THREE = """      if (kernel.casts) {
        mtl_setBytes(encoder, ndim_types, next);
      } else {
        mtl_setBytes(encoder, std::array<uint32_t, 3>{ndim_types[0], ndim_types[1], ndim_types[2]}, next);
      }
"""


def limit_library() -> str:
    """The fork's library of kernels, which binds 12 bytes of a uint3 and writes results of one type alone."""
    text = (EMBEDDED_FORK / LIBRARY).read_text()
    start = text.index("void MetalShaderLibrary::exec_binary_kernel(")
    function = text[start:]
    assert CONDITION in function and FOUR in function
    return text[:start] + function.replace(CONDITION, CONDITION + LACKING, 1).replace(FOUR, THREE, 1)


def test_limits_of_what_launches_kernels_are_findings_unless_the_port_writes_it(atan2: Port, tmp_path: Path) -> None:
    fork, text, tests = tmp_path / "fork", limit_library(), "(test_layouts or test_out_) and float32"
    shutil.copytree(EMBEDDED_FORK, fork)
    (fork / LIBRARY).write_text(text)
    place = f"{LIBRARY}:{text[: text.index('void MetalShaderLibrary::exec_binary_kernel(')].count(chr(10)) + 1}"
    found = verify(fork, atan2.texts, atan2.target, tests)
    assert found.ok, table(found)
    told = {finding.what for finding in found.fork_findings}
    assert {finding.place for finding in found.fork_findings} == {place}
    assert any(
        what.startswith("PTR126 exec_binary_kernel binds 12 bytes for argument `ndim` (buffer 7)") for what in told
    )
    assert any("asks for `atan2_dense_half_float`, and launches no native" in what for what in told)
    wrong = verify(EMBEDDED_FORK, {**atan2.texts, LIBRARY: text}, atan2.target, tests)
    wrongs = "\n".join(found.what for failure in wrong.failures for found in failure.findings)
    assert "takes 16 bytes; 12 are bound" in wrongs and "for: atan2_dense_half_float" in wrongs
    assert wrong.fork_findings == ()


def test_kernels_under_test_that_do_not_compile_fail(atan2: Port) -> None:
    wrong = atan2.edited(f"{KERNELS}/BinaryKernel.metal", "precise::atan2(float(a)", "precise::atan3(float(a)")
    [failure] = wrong.verdict("test_output_match and float32").failures
    assert failure.place.startswith(f"{KERNELS}/BinaryKernel.metal:") and failure.reason.startswith("PTR101")
    assert "(and 1 more error)" in failure.reason and "/trees/" not in failure.reason + failure.place


def test_findings_without_a_place_are_at_the_row() -> None:
    placed = place_findings(add_findings(PASSED, [ONE, TWO]), "rows.yaml:7")
    assert placed.fork_findings == (ONE, ForkFinding("PTR101 no type", "rows.yaml:7"))
