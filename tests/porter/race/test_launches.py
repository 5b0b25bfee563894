"""Launches are recorded as they were bound, and sides of one call come together."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from porter.race import launches as recorder
from porter.race.replay import difference

SCRIPT = """
import torch
from porter.race import launches as recorder
from aten_overlay.device.load import started
library = torch.mps.compile_shader(
    "kernel void scale(device float* x, constant float* by, constant int& n, uint i [[thread_position_in_grid]])"
    "{ if (int(i) < n) x[i] *= by[0]; }"
)
x, by = torch.ones(64, device="mps"), torch.full((1,), 3.0, device="mps")
with recorder.recording() as launches:
    library.scale(x, by, 5, threads=64, group_size=32, arg_casts={2: "int32"})
    library.scale(x[16:], by, 5, threads=1, arg_casts={2: "int32"})
library.scale(x, by, 5, threads=64, arg_casts={2: "int32"})
launch, on_part = launches
memory = recorder.Memory({started().host_address(x.data_ptr()): ("x", x.nbytes)}, "port")
print(launch.kernel, launch.threads, launch.group)
print(memory.name(launch.buffers[0]), memory.name(launch.buffers[1]), memory.name(launch.buffers[1]), len(memory.scratch))
print(memory.name(on_part.buffers[0]))
print([buffer.copied for buffer in launch.buffers])
"""


def test_a_launch_is_recorded_with_what_it_bound(
    on_device: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    done = on_device(SCRIPT)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "scale (64, 1, 1) (32, 1, 1)",
        "x port_scratch0 port_scratch0 1",
        "{'tensor': 'x', 'offset': 64}",
        r"[None, None, b'\x05\x00\x00\x00']",
    ]


@pytest.mark.parametrize(
    ("shape", "most", "smaller"),
    [((64, 32), 4096, (64, 32)), ((64, 32), 1024, (32, 32)), ((4, 4099), 64, (4, 16)), ((1, 1), 1, (1, 1))],
)
def test_shapes_are_halved_along_the_longest_dimension(
    shape: tuple[int, ...], most: int, smaller: tuple[int, ...]
) -> None:
    assert recorder.shrink(shape, most) == smaller


def test_a_side_joins_the_calls_of_another(tmp_path: Path) -> None:
    path = tmp_path / "launches.json"
    entry = {"operator": "sum", "label": "8x8 dim 1", "dtype": "half", "tensors": {"x": [8, 8]}, "types": {}}
    recorder.merge([entry | {"sides": {"port": [1]}, "tensors": {"x": [8, 8], "port_scratch0": [4]}}], path)
    recorder.merge([entry | {"sides": {"person": [2]}}, entry | {"dtype": "float", "sides": {"person": [3]}}], path)
    half, single = json.loads(path.read_text())
    assert half["sides"] == {"port": [1], "person": [2]}
    assert half["tensors"] == {"x": [8, 8], "port_scratch0": [4]}
    assert single["sides"] == {"person": [3]}


def test_an_operator_may_be_called_in_types_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, _device: tensor)
    calls = {name: list(recorder.list_calls([name], 64)) for name in ("_fft_c2c", "mm")}
    assert {call.tensors["x"].dtype for call in calls["_fft_c2c"]} == {torch.complex64}
    assert {call.dtype for call in calls["mm"]} == {"float", "half", "bfloat"}


def test_an_operator_may_have_several_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, *_: tensor)
    calls = list(recorder.list_calls(["mps_convolution_backward"], 64))
    assert {call.label.rpartition(" ")[2] for call in calls} == {"input", "weight"}
    assert len({(call.label, call.expression) for call in calls}) == len(calls)


def test_both_parts_of_complex_results_are_compared() -> None:
    exact = torch.tensor([3 + 4j, 0])
    assert difference(exact, exact) == 0
    assert difference(exact + torch.tensor([5j, 0]), exact) == 1
