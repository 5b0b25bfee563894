"""Launches on the stand-in are recorded with their memory, and their replay there leaves the same."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from porter.witness.recording import MOST_LAUNCHES, TOO_LARGE, UNKNOWN_ARGUMENT, Recording, recording
from porter.witness.replay import find_machine, main, replay
from porter.workflows.mac import _find_lack

SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void twice(device float* values [[buffer(0)]], constant float& factor [[buffer(1)]], uint at [[thread_position_in_grid]]) {
  values[2 * at] *= factor;
}
kernel void narrow(device bfloat* values [[buffer(0)]], uint at [[thread_position_in_grid]]) {
  values[at] = bfloat(1) - values[at];
}
"""
HEADER = {"bounds": {"float32": 2e-5}}


def record(*sizes: int) -> Recording:
    recorded = Recording(lambda _source, _name: "")
    recorded.subject = "a test"
    with recording(recorded):
        library = torch.mps.compile_shader(SOURCE)
        for size in sizes:
            values = torch.arange(float(2 * size + 3), device="mps")
            library.twice(values[3:], 3.0, threads=[size])
            assert values[3::2].cpu().tolist() == [3.0 * (3 + 2 * at) for at in range(size)]
    return recorded


def test_a_view_is_replayed_in_its_memory() -> None:
    recorded = record(5)
    library, launch = recorded.records
    assert library["source"] == SOURCE
    assert (launch["kernel"], launch["dtype"], launch["threads"]) == ("twice", "float32", [5])
    assert launch["arguments"] == [{"memory": 0, "dtype": "float32", "shape": [10], "stride": [1], "offset": 3}, 3.0]
    _, line, end = replay(map(json.loads, recorded.lines(HEADER)), find_machine())
    assert (line["outcome"], line["elements"], line["equal"]) == ("ran", 5, 5) and end["counts"] == {"ran": 1}


def test_a_kernel_that_computes_something_else_is_found() -> None:
    lines = [json.loads(line.replace("*= factor", "*= factor + 1")) for line in record(5).lines(HEADER)]
    _, line, _ = replay(lines, find_machine())
    assert (line["elements"], line["equal"], line["different"]) == (5, 0, 5) and line["first"] == "12.0, not 9.0"


def test_a_few_launches_of_a_kernel_are_recorded_and_equal_ones_once() -> None:
    recorded = record(*range(2, 2 + MOST_LAUNCHES + 3), 2)
    assert recorded.counts == {"library": 1, "launch": MOST_LAUNCHES}


def test_what_cannot_be_recorded_runs_and_is_counted() -> None:
    recorded = record(100_000)
    with recording(recorded):
        torch.mps.compile_shader(SOURCE).twice(torch.ones(4, device="mps"), 2.0, threads=[2], arg_casts=None)
        recorded.launch(lambda *_a, **_o: None, "twice", SOURCE, [None], {})
    left_out = [record["reason"] for record in recorded.records if record["record"] == "left out"]
    assert left_out == [TOO_LARGE, UNKNOWN_ARGUMENT] and recorded.counts["launch"] == 1
    *_, end = replay(map(json.loads, recorded.lines(HEADER)), find_machine())
    assert end["counts"] == {"skipped": 2, "ran": 1}


def test_what_the_paravirtual_gpu_lacks_is_told_by_kernel() -> None:
    assert _find_lack(SOURCE, "twice") == ""
    assert "bfloat" in _find_lack(SOURCE, "narrow") and "paravirtual" in _find_lack(SOURCE, "narrow")


def test_the_script_runs_to_the_end_and_logs_each_launch(tmp_path: Path) -> None:
    launches, log = tmp_path / "launches.jsonl", tmp_path / "log.jsonl"
    launches.write_text("\n".join(record(2, 3).lines(HEADER)))
    assert main(["--launches", str(launches), "--log", str(log)]) == 0
    kinds = [json.loads(line)["record"] for line in log.read_text().splitlines()]
    assert kinds == ["machine", "launch", "launch", "end"]
