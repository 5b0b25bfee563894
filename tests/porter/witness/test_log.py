"""Logs of witnesses: read, refused, and set beside each other."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from expecttest import assert_expected_inline
from hypothesis import given
from hypothesis import strategies as st

from porter.core.errors import PorterError
from porter.report.mac import comparison_lines, comparison_object
from porter.witness import replay
from porter.witness.log import FORMAT, OUTCOMES, compare, read_log
from porter.witness.witnessed import NOT_YET, WITNESSED, name_with_limits

ROOT = Path(__file__).resolve().parents[3]
MACHINE = {
    "record": "machine", "format": 1, "backend": "host", "gpu": "stand-in for Metal", "system": "linux x86_64",
    "virtual": False, "torch": "2.13.0",
}  # fmt: skip
MAC = {
    **MACHINE,
    "backend": "mps",
    "gpu": "Apple M1 (Virtual) VirtualMac2,1",
    "system": "macOS 15.5 arm64",
    "virtual": True,
}
EXP = {"record": "launch", "subject": "exp", "kernel": "exp_dense_float_float", "dtype": "float32", "outcome": "ran"}
BFLOAT = {**EXP, "kernel": "exp_dense_bfloat_bfloat", "dtype": "bfloat16"}
# A sentence that says in some words that no Mac ran something: "Nothing here has been run on Apple hardware".
DENIED = re.compile(
    r"\b(?:no|none|not|nothing)\b[^.:;|]{0,80}\b(?:ran|runs?)\b[^.:;|]{0,20}\bon Apple hardware", re.IGNORECASE
)
COUNTED = {"elements": 8, "equal": 8, "different": 0, "max_ulp": 0, "first": "", "seconds": 2e-5}


def write(path: Path, *records: object, ends: bool = True) -> Path:
    launches = [each for each in records[1:] if isinstance(each, dict)]
    counts = {outcome: sum(each["outcome"] == outcome for each in launches) for outcome in OUTCOMES}
    lines = [*records, {"record": "end", "counts": counts}] if ends else records
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def test_logs_stand_beside_each_other_by_kernel_and_dtype(tmp_path: Path) -> None:
    host = write(
        tmp_path / "host.jsonl", MACHINE, {**EXP, **COUNTED}, {**EXP, **COUNTED}, {**BFLOAT, **COUNTED},
        {**EXP, "kernel": "", "outcome": "skipped", "reason": "its memory is larger than 128 KiB"},
    )  # fmt: skip
    mac = write(
        tmp_path / "log-macos-15.jsonl", MAC, {**EXP, **COUNTED, "equal": 5, "max_ulp": 2, "seconds": 1e-4},
        {**EXP, **COUNTED, "equal": 6, "different": 1, "first": "nan, not 1.0"},
        {**BFLOAT, "outcome": "refused", "reason": "`bfloat`, which the GPU family paravirtual lacks"},
        {**EXP, "kernel": "", "outcome": "skipped", "reason": "its memory is larger than 128 KiB"},
    )  # fmt: skip
    comparison = compare([read_log(host), read_log(mac)])
    assert not comparison.agrees
    assert_expected_inline(
        "\n".join(comparison_lines(comparison)),
        """\
host.jsonl: host (stand-in for Metal, linux x86_64, torch 2.13.0)
  3 ran, 0 not compiled, 0 refused, 0 failed, 1 skipped
log-macos-15.jsonl: mps (Apple M1 (Virtual) VirtualMac2,1, macOS 15.5 arm64, torch 2.13.0)
  2 ran, 0 not compiled, 1 refused, 0 failed, 1 skipped

host.jsonl
  subject  kernel                   dtype     ran  same bits  max ULP  us
  exp      exp_dense_float_float    float32   2/2      16/16        0  20
  exp      exp_dense_bfloat_bfloat  bfloat16  1/1        8/8        0  20
  exp                               float32   0/1

log-macos-15.jsonl
  subject  kernel                   dtype     ran  same bits  max ULP  us
  exp      exp_dense_float_float    float32   2/2      11/16        2  20
  exp      exp_dense_bfloat_bfloat  bfloat16  0/1
  exp                               float32   0/1

host.jsonl: did not run: 1
  exp float32: 1 skipped: its memory is larger than 128 KiB

log-macos-15.jsonl: other values than the host's: 1
  exp exp_dense_float_float float32: 1 of 16 elements, first nan, not 1.0

log-macos-15.jsonl: did not run: 2
  exp exp_dense_bfloat_bfloat bfloat16: 1 refused: `bfloat`, which the GPU family paravirtual lacks
  exp float32: 1 skipped: its memory is larger than 128 KiB

ran on some machines only: 1
  exp exp_dense_bfloat_bfloat bfloat16: host.jsonl""",
    )
    last = comparison_object(comparison)["kernels"][0]["logs"][1]
    assert (last["outcomes"], last["elements"], last["equal"]) == ({"ran": 2}, 16, 11)


def test_a_log_that_ends_early_says_so_and_does_not_agree(tmp_path: Path) -> None:
    comparison = compare([read_log(write(tmp_path / "log.jsonl", MAC, {**EXP, **COUNTED}, ends=False))])
    assert not comparison.agrees
    assert "  it ends early: the launch after its last line ended the process" in comparison_lines(comparison)


@pytest.mark.parametrize(
    ("lines", "line", "what"),
    [
        ([], 1, "the first line names no machine"),
        ([{**MACHINE, "format": 2}], 1, "another format than 1"),
        ([MACHINE, {**EXP, "outcome": "fine"}], 2, "an outcome is none of ran"),
        ([MACHINE, {**EXP, "elements": "8"}], 2, '`elements` is "8"'),
        ([MACHINE, {"record": "launch", "outcome": "ran"}], 2, "missing 3 required"),
        ([MACHINE, {**EXP, **COUNTED}, {"record": "end", "counts": {"ran": 2}}], 3, "not those of the lines before"),
        ([MACHINE, {"record": "end", "counts": {"ran": "2"}}], 2, "`counts` is no object of numbers"),
        ([MACHINE, []], 2, "not a JSON object"),
    ],
)
def test_what_is_no_log_is_refused_by_its_line(tmp_path: Path, lines: list[object], line: int, what: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    with pytest.raises(PorterError) as error:
        read_log(path)
    assert error.value.code == "PTR195" and what in error.value.what
    assert error.value.place and error.value.place.line == line


@given(st.lists(st.one_of(st.just(json.dumps(MACHINE)), st.just(json.dumps(EXP)), st.text(max_size=40))))
def test_any_text_is_a_log_or_refused(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    path.write_text("\n".join(lines), errors="replace")
    try:
        read_log(path)
    except PorterError as error:
        assert error.code == "PTR195"


def test_the_script_for_the_mac_and_the_reader_have_one_format() -> None:
    assert replay.FORMAT == FORMAT
    assert set(OUTCOMES) == {
        replay.RAN, replay.NOT_COMPILED, replay.REFUSED, replay.FAILED, replay.SKIPPED,
    }  # fmt: skip


def test_labels_follow_from_the_logs_of_the_folder() -> None:
    """A first log in docs/witness makes this test fail until `WITNESSED` names its machine and no page has the label."""
    logs = [read_log(path) for path in sorted((ROOT / "docs" / "witness").glob("*.jsonl"))]
    assert tuple(str(log.machine) for log in logs) == WITNESSED
    assert all(log.machine.backend == "mps" and log.whole for log in logs), "a witness is a Mac's whole log"
    assert (NOT_YET in name_with_limits("mps")) == (not logs)
    files = [path for folder in ("docs", "porter", "templates") for path in (ROOT / folder).rglob("*.*")]
    kinds = (".jinja", ".md", ".py")
    texts = {path: path.read_text() for path in (*files, ROOT / "README.md") if path.suffix in kinds}
    labelled = {str(path.relative_to(ROOT)) for path, text in texts.items() if DENIED.search(" ".join(text.split()))}
    labelled -= {"porter/witness/witnessed.py"}  # it has the label, for what asks whether it is still true
    if WITNESSED:
        assert not labelled, f"a Mac has run kernels: {sorted(labelled)}"
    else:
        assert labelled > {"docs/kernels/mlx.md", "docs/mac.md", "docs/verdicts.md", "porter/workflows/mcp.py"}
