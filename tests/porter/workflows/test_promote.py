"""`porter kernel promote` as a person runs it: verified, written, refused the second time, undone."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK
from tests.hostile import fill_with_traps, list_sprung, porter_command

ROOT = Path(__file__).resolve().parents[3]
VERDICT = re.compile(r"^(?P<op>\w+): (?P<word>PASS|FAIL): (?P<passed>\d+) passed, (?P<failed>\d+) failed, .*host", re.M)


@pytest.fixture(autouse=True)
def hostile(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The current folder has modules of its own, and none of them runs."""
    folder = fill_with_traps(tmp_path_factory.mktemp("hostile"))
    monkeypatch.chdir(folder)
    yield
    assert list_sprung(folder) == []


def porter(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(porter_command(*arguments), capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("template", "stage"), [("silu", "silu"), ("softmax", "softmax"), ("quickstart", "axpy")], ids=lambda name: name
)
def test_a_template_passes_as_an_operator(template: str, stage: str) -> None:
    done = porter("kernel", "promote", f"{ROOT}/templates/{template}.py", "--stage", stage, "--op", f"promoted_{stage}")
    verdict = VERDICT.search(done.stdout)
    assert verdict, done.stdout[-3000:] + done.stderr
    assert verdict.groupdict() | {"passed": ""} == {
        "op": f"promoted_{stage}", "word": "PASS", "passed": "", "failed": "0",
    }, done.stdout[-3000:]  # fmt: skip
    assert int(verdict["passed"]) > 50
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("out[i] = T(a * float(x[i]) + float(y[i]))", "out[i] = T(a * float(x[i]) - float(y[i]))", "elements differ"),
        ("out[i] = T(a *", "out[i + 1] = T(a *", "past the end|out of bounds|outside"),
    ],
    ids=["value", "bounds"],
)
def test_a_wrong_kernel_fails(right: str, wrong: str, told: str, tmp_path: Path) -> None:
    script = tmp_path / "axpy.py"
    text = (ROOT / "templates" / "quickstart.py").read_text()
    assert right in text
    script.write_text(text.replace(right, wrong))
    done = porter("kernel", "promote", str(script), "--stage", "axpy", "--op", "wrong_axpy")
    verdict = VERDICT.search(done.stdout)
    assert verdict and verdict["word"] == "FAIL", done.stdout[-3000:] + done.stderr
    assert re.search(told, done.stdout), done.stdout[-3000:]
    assert done.returncode == 1


BIASED = """
import torch
from porter.kernels import MetalKernel
from porter.kernels.script import Kind, Script, Stage

KERNEL = MetalKernel("k", ["x", "bias"], ["out"], "uint i = thread_position_in_grid.x; out[i] = x[i] + bias[i % COUNT];")

def run(x, bias):
    return KERNEL(
        inputs={"x": x, "bias": bias}, template={"COUNT": LENGTH}, grid=(x.numel(), 1, 1), threadgroup=(64, 1, 1),
        output_shapes={"out": x.shape}, output_dtypes={"out": x.dtype},
    )["out"]

def reference(x, bias):
    COMPUTED

SCRIPT = Script(
    summary="", kind=Kind.ELEMENTWISE, stages=(Stage("run", run, reference, ("x", "bias")),),
    inputs=lambda case: {"x": case.normal(*case.size), "bias": case.normal(LENGTH_OF_CASE)},
    sizes=((2, 3), (5, 4)), benchmark=(), dtypes=(torch.float32,),
)
"""


def promote_biased(folder: Path, instances: str, **texts: str) -> str:
    """What is printed for a kernel that reads a bias as far as the sizes of its input say."""
    script, text = folder / "biased.py", BIASED
    for name in sorted(texts, key=len, reverse=True):
        text = text.replace(name, texts[name])
    script.write_text(text)
    return porter("kernel", "promote", str(script), "--op", "biased_rows", "--instantiate", f"COUNT={instances}").stdout


def test_an_operator_refuses_sizes_that_its_script_never_checks(tmp_path: Path) -> None:
    """A bias that is shorter than a row was read past its end."""
    texts = {"LENGTH": "x.shape[-1]", "LENGTH_OF_CASE": "case.size[1]", "COMPUTED": "return x + bias"}
    said = promote_biased(tmp_path, "3,4", **texts)
    verdict = VERDICT.search(said)
    assert verdict and verdict["word"] == "PASS", said[-3000:]
    assert "bias.numel() == x.size(-1)" in said


def test_an_operator_that_takes_what_its_reference_refuses_fails(tmp_path: Path) -> None:
    """A square is no relation of sizes that porter knows."""
    refuses = "if bias.numel() != len(x) ** 2: raise ValueError('bias')"
    takes = "return x + bias.repeat(x.numel())[: x.numel()].reshape(x.shape)"
    texts = {
        "LENGTH": "x.shape[0] * x.shape[0]",
        "LENGTH_OF_CASE": "case.size[0] ** 2",
        "COMPUTED": f"{refuses}\n    {takes}",
    }
    said = promote_biased(tmp_path, "4,25", **texts)
    verdict = VERDICT.search(said)
    assert verdict and verdict["word"] == "FAIL", said[-3000:]
    assert "the reference refuses bias with 5 for 4 in dimension 0" in said


def test_written_refused_the_second_time_and_undone(tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, fork)
    before = {path: path.read_bytes() for path in fork.rglob("*") if path.is_file()}
    asked = (
        "kernel",
        "promote",
        f"{ROOT}/templates/silu.py",
        "--op",
        "fast_silu",
        "--no-verify",
        "--checkout",
        str(fork),
    )
    first = porter(*asked, "--write")
    assert first.returncode == 0, first.stderr
    assert "wrote 6 files" in first.stderr
    names = ("kernels/FastSilu.metal", "operations/FastSilu.mm")
    assert all((fork / "aten/src/ATen/native/mps" / name).is_file() for name in names)
    out = tmp_path / "out"
    export = ("kernel", "export", f"{ROOT}/templates/silu.py", "--to", "aten", "--op", "fast_silu", "--out", str(out))
    assert porter(*export, "--checkout", str(fork)).returncode == 0
    for name in (*names, "../FastSilu.cpp"):
        written = (fork / "aten/src/ATen/native/mps" / name).read_text()
        assert written == (out / Path(name).name).read_text()
    second = porter(*asked, "--write")
    assert second.returncode == 2
    assert "PTR242 the fork has the operator fast_silu already" in second.stderr
    assert porter("undo", "--checkout", str(fork)).returncode == 0
    assert {path: path.read_bytes() for path in fork.rglob("*") if path.is_file()} == before


def test_the_name_of_an_operator_of_pytorch_is_refused() -> None:
    done = porter("kernel", "promote", f"{ROOT}/templates/silu.py", "--op", "abs")
    assert done.returncode == 2 and "PTR347 PyTorch has an operator `abs` already" in done.stderr, done.stderr


def test_an_operator_as_files(tmp_path: Path) -> None:
    asked = (
        "kernel",
        "export",
        f"{ROOT}/templates/silu.py",
        "--to",
        "aten",
        "--op",
        "fast_silu",
        "--out",
        str(tmp_path),
    )
    assert porter(*asked).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "FastSilu.cpp", "FastSilu.metal", "FastSilu.mm", "README.md", "common_methods_invocations.py",
        "native_functions.yaml", "test_mps.py",
    ]  # fmt: skip
    assert "structured_delegate: fast_silu.out" in (tmp_path / "native_functions.yaml").read_text()
    assert "PTR236" in porter(*asked).stderr


def test_files_of_an_operator_that_pytorch_has_are_refused(tmp_path: Path) -> None:
    done = porter("kernel", "export", f"{ROOT}/templates/softmax.py", "--to", "aten", "--out", str(tmp_path))
    assert done.returncode == 2 and "PTR347 PyTorch has an operator `softmax` already" in done.stderr, done.stderr
    assert not list(tmp_path.iterdir())
