"""The script that times operators on a Mac: which calls it holds, and its table, blank and filled."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.cli import main
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.witness import benchmark
from porter.workflows.emit import BLANK, TENSOR, emit_benchmark

FORK = Checkout(EMBEDDED_FORK, "")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(benchmark, "CALLS", [{"operator": "exp", "arguments": [TENSOR]}])
    monkeypatch.setattr(benchmark, "DTYPES", ("float32",))
    monkeypatch.chdir(tmp_path)


def keep(label: str, torch: str, *seconds: float | None) -> None:
    layouts = [layouts[0] for layouts in benchmark.list_layouts(1)]
    rows = [
        {"operator": "exp", "dtype": "float32", "layout": layout, "seconds": second}
        for layout, second in zip(layouts, seconds, strict=True)
    ]
    result = {"label": label, "torch": torch, "machine": "Apple M3, macOS 26.1", "rows": rows}
    Path(f"bench-{label}.json").write_text(json.dumps(result))


def test_the_overload_with_the_most_tensors_is_called_without_defaults(tmp_path: Path) -> None:
    assert emit_benchmark(FORK, ("exp", "lerp", "sub", "logit"), tmp_path / "bench.py") == ()
    text = (tmp_path / "bench.py").read_text()
    calls = re.findall(r"^    (\{.*\}),$", text, re.MULTILINE)
    assert [(call["operator"], call["arguments"]) for call in map(json.loads, calls)] == [
        ("exp", [TENSOR]), ("lerp.Tensor", [TENSOR] * 3), ("sub.Tensor", [TENSOR] * 2), ("logit", [TENSOR]),
    ]  # fmt: skip
    compile(text, "bench.py", "exec")
    with pytest.raises(PorterError) as error:
        emit_benchmark(FORK, ("exp",), tmp_path / "bench.py")
    assert error.value.code == "PTR236"


def test_an_argument_of_another_type_is_a_blank_and_stops_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "aten/src/ATen/native/native_functions.yaml"
    fork = FORK.layer({path: FORK.read(path) + "\n- func: turn(Tensor self, int[] dims) -> Tensor\n"})
    assert emit_benchmark(fork, ("turn",), tmp_path / "bench.py") == ("turn",)
    monkeypatch.setattr(benchmark, "CALLS", [{"operator": "turn", "arguments": [TENSOR, BLANK]}])
    assert benchmark.main(["--table"]) == 2
    assert "fill in the arguments of turn" in capsys.readouterr().err


def test_an_operator_without_a_call_is_refused(tmp_path: Path) -> None:
    path = "aten/src/ATen/native/native_functions.yaml"
    fork = FORK.layer({path: FORK.read(path) + "\n- func: turn_(Tensor(a!) self) -> Tensor(a!)\n"})
    with pytest.raises(PorterError) as error:
        emit_benchmark(fork, ("turn",), tmp_path / "bench.py")
    assert error.value.code == "PTR153" and not (tmp_path / "bench.py").exists()


def test_the_table_is_blank_before_a_mac_has_filled_it(calls: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--table"]) == 0
    assert_expected_inline(
        capsys.readouterr().out,
        """\
old: torch __, on __
new: torch __, on __

| operator | dtype | layout | old us | new us | old / new |
| --- | --- | --- | ---: | ---: | ---: |
| exp | float32 | dense |  |  |  |
| exp | float32 | transposed |  |  |  |
| exp | float32 | strided |  |  |  |
| exp | float32 | strided and transposed |  |  |  |
""",
    )


def test_the_table_sets_the_old_torch_beside_the_new(calls: None, capsys: pytest.CaptureFixture[str]) -> None:
    keep("old", "2.15.0", 9e-5, 2e-4, None, 1e-4)
    keep("new", "2.16.0a0", 3e-5, 1e-4, 5e-5, 2e-4)
    assert benchmark.main(["--table"]) == 0
    assert_expected_inline(
        capsys.readouterr().out,
        """\
old: torch 2.15.0, on Apple M3, macOS 26.1
new: torch 2.16.0a0, on Apple M3, macOS 26.1

| operator | dtype | layout | old us | new us | old / new |
| --- | --- | --- | ---: | ---: | ---: |
| exp | float32 | dense | 90.0 | 30.0 | 3.00 |
| exp | float32 | transposed | 200.0 | 100.0 | 2.00 |
| exp | float32 | strided | refused | 50.0 |  |
| exp | float32 | strided and transposed | 100.0 | 200.0 | 0.50 |
""",
    )


def test_without_a_mac_nothing_is_measured(calls: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert benchmark.main(["--label", "new"]) == 2
    assert "needs a Mac" in capsys.readouterr().err and not Path("bench-new.json").exists()


def test_the_command_writes_it_and_asks_for_no_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--checkout", str(EMBEDDED_FORK), "verify", "exp", "--emit-benchmark", str(tmp_path / "bench.py")]
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(tmp_path / "bench.py"), "blanks": []}
    assert main(["verify", "--all", *words[4:]]) == 2
