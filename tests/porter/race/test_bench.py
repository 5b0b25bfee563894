"""`porter bench` without a GPU: what is refused, what a folder holds, and the report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.core.errors import PorterError
from porter.race.calls import LAUNCHES, Row, Timings, read_calls, read_timings, write_timings
from porter.report.race import timing_lines
from porter.workflows.bench import Race, require_calls, run_race

SOURCE = """
kernel void scale(device float* out, device const float* x, constant int& by, uint i [[thread_position_in_grid]]) {
  out[i] = x[i] * by;
}
"""
CALL = {
    "operator": "mul", "label": "64", "dtype": "float", "tensors": {"x": [64], "out": [64]}, "torch": "x * 2",
    "moves": 512, "types": {}, "ends": {},
    "sides": {"port": [{
        "file": "port/scale.metal", "kernel": "scale", "arguments": ["out", "x", {"bytes": "02000000"}],
        "threads": [64, 1, 1], "group": [64, 1, 1],
    }]},
}  # fmt: skip


def write_folder(folder: Path, source: str = SOURCE) -> None:
    (folder / "port").mkdir()
    (folder / "port/scale.metal").write_text(source)
    (folder / LAUNCHES).write_text(json.dumps([CALL]))


def test_a_recorded_folder_is_compiled_and_not_timed_without_a_gpu(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    write_folder(tmp_path)
    race = Race((), {}, 1, tmp_path)
    assert run_race(race, lambda _: None, times=False) is None
    assert list((tmp_path / "cache/ptx").glob("*.ptx"))
    with pytest.raises(PorterError, match="not timed") as caught:
        run_race(race, lambda _: None)
    assert caught.value.code == "PTR303"
    assert "PTR385" in capfd.readouterr().err


def test_metal_that_does_not_compile_is_told(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_folder(tmp_path, SOURCE.replace("* by", "* bye"))
    with pytest.raises(PorterError, match="not compiled"):
        run_race(Race((), {}, 1, tmp_path), lambda _: None, times=False)
    assert "bye" in capfd.readouterr().err


@pytest.mark.parametrize("text", ["", "{", "3", '[{"operator": "sum"}]', '[{"sides": {"port": [{"file": 1}]}}]'])
def test_a_folder_without_launches_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / LAUNCHES).write_text(text)
    with pytest.raises(PorterError) as caught:
        read_calls(tmp_path)
    assert caught.value.code == "PTR302"


def test_an_operator_without_calls_is_refused_before_anything_runs() -> None:
    require_calls(["sum"])
    with pytest.raises(PorterError, match="no calls of atan2") as caught:
        require_calls(["sum", "atan2"])
    assert caught.value.code == "PTR301"


def test_the_report_tells_wrong_and_missing_calls(tmp_path: Path) -> None:
    times = {"port": 0.5, "person": 0.25, "torch": 1.0}
    shares, errors = {"port": 0.5, "person": 1.0, "torch": 0.25}, {"port": 1e-7, "person": float("nan")}
    rows = (
        Row("sum", "64x64 dim 1", "float", times, shares, errors),
        Row("sum", "64x64 dim 0", "half", {"port": 0.5, "torch": 0.25}, {"port": 0.5}, {"port": 1e-7}),
    )
    write_timings(Timings("a card, torch 2", 2.5e9, rows, {"sum 3 dim 0 half": "no kernel"}), tmp_path / "kept")
    assert_expected_inline(
        "\n".join(timing_lines(read_timings(tmp_path / "kept"))),
        """\
NVIDIA GPU, not Apple hardware: a card, torch 2, a copy runs at 2500 GB/s
operator  call         dtype  port ms  person ms  torch ms  port/person  port/torch  of a copy
sum       64x64 dim 1  float  0.5000   0.2500     1.0000    0.50         2.00        50%
sum       64x64 dim 0  half   0.5000   -          0.2500    -            0.50        50%
sum: port/person 0.50 in the geometric mean of 1, 0.50 at least
sum: port/torch 1.00 in the geometric mean of 2, 0.50 at least
sum 64x64 dim 1 float: person differs from torch by nan
sum 3 dim 0 half: not timed: no kernel""",
    )
