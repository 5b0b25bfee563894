"""The scripts that time operators and kernels run to their end on the stand-in, and say that this is no GPU."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from porter.kernels.export.benchmark import find_reference
from porter.kernels.loading import load_text
from porter.witness import benchmark
from porter.workflows.emit import emit_kernel_benchmark


def test_each_row_is_timed_or_says_why_not(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = [{"operator": "exp", "arguments": ["tensor"]}, {"operator": "no_such", "arguments": ["tensor"]}]
    for name, value in (("CALLS", calls), ("DTYPES", ("float32",)), ("SIZE", 8), ("SECONDS", 1e-4)):
        monkeypatch.setattr(benchmark, name, value)
    monkeypatch.chdir(tmp_path)
    assert benchmark.main(["--label", "new"]) == 0
    result = json.loads(Path("bench-new.json").read_text())
    assert "not a GPU" in result["machine"]
    timed = [bool(row["seconds"]) for row in result["rows"]]
    assert timed == [True] * 4 + [False] * 4 and "no_such" in result["rows"][-1]["error"]


SCRIPT = """
import torch
from porter.kernels import MetalKernel
from porter.kernels.script import Kind, Script, Stage

SCALE = 2.0
PICK = MetalKernel("pick", input_names=["x", "index"], output_names=["out"],
                   source="uint i = thread_position_in_grid.x; out[i] = x[index[i]] * 2;")


def pick(x, index):
    outputs = PICK(inputs={"x": x, "index": index}, template={}, grid=(index.numel(), 1, 1), threadgroup=(4, 1, 1),
                   output_shapes={"out": index.shape}, output_dtypes={"out": x.dtype})
    return outputs["out"]


def scaled(x):
    return x * SCALE


def reference(x, index):
    return scaled(torch.Tensor.index_select(x, 0, index))


SCRIPT = Script(
    summary="x[index] * 2", kind=Kind.ELEMENTWISE,
    stages=(
        Stage("pick", pick, reference, ("x", "index")),
        Stage("again", lambda x: x + x, lambda x: x * 2, ("x",), ("twice",)),
    ),
    inputs=lambda case: {"x": case.normal(5), "index": case.integers(*case.size, below=5)},
    sizes=((3,),), benchmark=((7,),), dtypes=(torch.float32,),
)
"""


def test_a_script_that_times_kernels_needs_torch_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pick.py").write_text(SCRIPT)
    left_out = emit_kernel_benchmark(tmp_path / "pick.py", tmp_path / "bench.py", lambda _step: None)
    assert left_out == {"again": "its reference is no function of the script"}
    text = (tmp_path / "bench.py").read_text()
    assert "porter" not in text and "def scaled" in text and "SCALE = 2.0" in text and "def pick" not in text
    values: dict[str, Any] = {"__name__": "bench"}
    exec(compile(text.replace("SECONDS = 0.2", "SECONDS = 1e-4"), "bench.py", "exec"), values)
    first, _ = values["CASES"]
    x, index = map(values["make_value"], first["values"])
    assert index.cpu().min() >= 0 and index.cpu().max() < 5, "an index stays one"
    assert values["main"]([]) == 0
    *_, pick, again = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\| pick \| 7-float32-dense \| [\d.]+ \| [\d.]+ \| [\d.]+ \|", pick)
    assert re.fullmatch(r"\| again \| 7-float32-dense \| [\d.]+ \|  \|  \|", again)
    assert values["reference"](x.cpu(), index.cpu()).equal(x.cpu()[index.cpu().long()] * 2)


def test_a_function_needs_what_it_reads_of_its_module_alone() -> None:
    script = load_text(Path("pick.py"), SCRIPT.replace("* SCALE", "* PICK.scale"))
    with pytest.raises(Exception, match="its reference uses PICK"):
        find_reference(script.stages[0].reference)
