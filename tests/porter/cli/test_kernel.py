"""`porter kernel`: templates listed and copied, scripts checked, timed and traced."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from expecttest import assert_expected_inline

from porter.cli import main
from porter.plan.promotion.promotion import ScriptWish
from porter.workflows import promote
from tests.device_pool import DevicePool

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SCRIPT = """\
import torch
from porter.kernels import MetalKernel
from porter.kernels.script import Case, Kind, Layout, Script, Stage

ADD = MetalKernel("add_one", ["x"], ["out"], "uint i = thread_position_in_grid.x; out[i] = x[i] + 1;")

def add(x):
    return ADD([x], grid=(x.numel(), 1, 1), output_shapes=[x.shape], output_dtypes=[x.dtype])[0]

SCRIPT = Script(
    summary="adds one", kind=Kind.ELEMENTWISE,
    stages=(Stage("add", add, lambda x: x + 1, ("x",)), Stage("again", add, lambda x: x + ADDED, ("out",), ("two",))),
    inputs=lambda case: {"x": case.place(torch.arange(float(case.size[0])))},
    sizes=((9,),), benchmark=((9,),), dtypes=(torch.float32,), layouts=(Layout.DENSE,),
)
"""


@pytest.fixture
def kernel(device_pool: DevicePool) -> Run:
    """Runs `porter kernel` with arguments: torch and the device take four seconds to start, which one test waits for."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return device_pool.run("-m", "porter", "kernel", *arguments)

    return run


@pytest.fixture
def script(tmp_path: Path) -> Callable[[int], str]:
    """The path of a script whose second stage adds one; its reference adds another number."""

    def write(added: int) -> str:
        path = tmp_path / "ones.py"
        path.write_text(f"ADDED = {added}\n{SCRIPT}")
        return str(path)

    return write


def test_the_list_names_kind_and_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernel", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "softmax             row-wise     softmax over the last dimension, safe for large values" in lines
    assert main(["kernel", "list", "--json"]) == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["name"] for each in objects] == [line.split()[0] for line in lines]
    assert all(set(each) == {"name", "kind", "summary"} for each in objects)


def test_a_template_is_copied(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["kernel", "new", "softmax", "--name", "mine", "--out", str(tmp_path)]) == 0
    path = tmp_path / "mine.py"
    told = capsys.readouterr()
    assert (told.out, told.err) == (f"{path}\n", f"Check it: porter kernel check {path}\n")
    assert "def mine(x: Tensor)" in path.read_text()
    assert main(["kernel", "new", "softmax", "--out", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(tmp_path / "softmax.py")}


def test_a_copy_is_refused_with_a_code(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["kernel", "new", "softmx", "--out", str(tmp_path)]) == 2
    assert_expected_inline(
        capsys.readouterr().err,
        """\
porter: PTR235 there is no template named softmx
  Did you mean softmax? `porter kernel new --blank softmx` starts one of your own.
""",
    )


def test_a_blank_kernel_has_the_name_that_is_given(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["kernel", "new", "--blank", "swiglu", "--out", str(tmp_path)]) == 0
    text = (tmp_path / "swiglu.py").read_text()
    assert "def swiglu(x: Tensor)" in text and "def swiglu_reference(" in text and "blank" not in text
    capsys.readouterr()
    for arguments in ([], ["softmax", "--blank", "other"], ["--blank", "other", "--name", "third"]):
        assert main(["kernel", "new", *arguments, "--out", str(tmp_path)]) == 2
        assert "give TEMPLATE or --blank NAME" in capsys.readouterr().err


def test_timing_takes_a_file_or_all(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--all", "x.py"]):
        assert main(["kernel", "bench", *arguments]) == 2
        assert "PTR006 " in capsys.readouterr().err


def test_timing_says_what_both_sides_ran_on(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("porter.workflows.kernel.time_scripts", lambda *_: iter(()))
    monkeypatch.setattr("porter.workflows.kernel.backend_name", lambda device: {"mps": "host"}.get(device, device))
    assert main(["kernel", "bench", "x.py"]) == 0
    assert "both run on one core of this CPU" in capsys.readouterr().err
    assert main(["kernel", "bench", "x.py", "--device", "cuda"]) == 0
    assert capsys.readouterr().err == ""


def test_a_renamed_template_passes_its_checks(python: Run, tmp_path: Path) -> None:
    assert main(["kernel", "new", "quickstart", "--name", "first", "--out", str(tmp_path)]) == 0
    done = python("-m", "porter", "kernel", "check", str(tmp_path / "first.py"))
    assert (done.returncode, done.stdout) == (0, "PASS first.py: 16 passed, 0 failed (host)\n"), done.stderr


def test_a_check_tells_the_stage_and_the_element(kernel: Run, script: Callable[[int], str]) -> None:
    done = kernel("check", script(2))
    assert done.returncode == 1
    assert_expected_inline(
        done.stdout,
        """\
9-float32-dense: stage again: two[0] is 2.0, not 3.0 (9 of 9 elements differ)
1-float32-dense: stage again: two[0] is 2.0, not 3.0 (1 of 1 elements differ)
31-float32-dense: stage again: two[0] is 2.0, not 3.0 (31 of 31 elements differ)
32-float32-dense: stage again: two[0] is 2.0, not 3.0 (32 of 32 elements differ)
33-float32-dense: stage again: two[0] is 2.0, not 3.0 (33 of 33 elements differ)
and 2 more
FAIL ones.py: 0 passed, 7 failed (host)
""",
    )
    told = json.loads(kernel("check", script(2), "--json").stdout)
    assert (told["ok"], told["passed"], told["failed"][0]["stage"]) == (False, 0, "again")


def test_a_trace_goes_up_to_the_first_wrong_stage(kernel: Run, script: Callable[[int], str]) -> None:
    done = kernel("trace", script(2), "--shuffle", "3")
    assert done.returncode == 1
    assert_expected_inline(
        done.stdout,
        """\
9-float32-dense  add: as its reference
9-float32-dense  again: DIFFERS
  at        two[0]
  expected  3.0
  got       2.0
  differs   9 of 9 elements
  written   by thread (0, 0, 0) of kernel `add_one`
            add_one body, line 1
            uint i = thread_position_in_grid.x; out[i] = x[i] + 1;
""",
    )
    last = json.loads(kernel("trace", script(2), "--json").stdout.splitlines()[-1])
    assert (last["ok"], last["writer"]["thread"], last["writer"]["line"]) == (False, [0, 0, 0], 1)


def test_what_is_right_is_traced_and_timed(kernel: Run, script: Callable[[int], str]) -> None:
    assert kernel("trace", script(1)).returncode == 0
    done = kernel("bench", script(1), "--json")
    told = json.loads(done.stdout)
    assert (told["template"], told["case"], told["kind"], told["target"]) == (
        "ones", "9-float32-dense", "elementwise", 1.2,
    )  # fmt: skip
    assert told["ratio"] == pytest.approx(told["kernel"] / told["torch"])
    assert told["simple"] is None and told["to_simple"] is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (None, "PTR238 there is no such script\n  Check the path.\n"),
        ("x = 1\n", "PTR239 the script has no SCRIPT\n"),
        ("\nx = y\n", "2: PTR238 the script cannot be run: NameError: name 'y' is not defined\n"),
        ("x = (\n", "1: PTR238 the script cannot be run: SyntaxError: '(' was never closed\n"),
    ],
    ids=["missing", "empty", "raises", "syntax"],
)
def test_what_is_no_script_is_refused_with_a_code(text: str | None, told: str, kernel: Run, tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    if text is not None:
        path.write_text(text)
    done = kernel("check", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr and f"porter: {path}:" in done.stderr


def test_a_kernel_goes_to_mlx_and_comes_back(kernel: Run, script: Callable[[int], str], tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    done = kernel("export", script(1), "--to", "mlx", "--out", str(there))
    assert done.returncode == 0, done.stderr
    (written,) = map(Path, done.stdout.split())
    assert written.parent == there and "metal_kernel" in written.read_text()
    done = kernel("import", "--from", "mlx", str(written), "--out", str(back), "--json")
    (path,) = json.loads(done.stdout)["files"]
    assert "out[i] = x[i] + 1;" in Path(path).read_text()
    again = kernel("import", "--from", "mlx", str(written), "--out", str(back))
    assert again.returncode == 2 and "PTR236 the file exists already" in again.stderr


def test_a_kernel_whose_source_depends_on_types_takes_them_from_the_script(kernel: Run, tmp_path: Path) -> None:
    arguments = ("--kernel", "axpy", "--to", "kernel-builder", "--out", str(tmp_path))
    done = kernel("export", "templates/quickstart.py", *arguments)
    assert done.returncode == 0, done.stderr
    assert any(path.name == "build.toml" for path in map(Path, done.stdout.split()))


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("export", "templates/quickstart.py", "--to", "cuda"),
            "porter: PTR232 there is no form `cuda`\n"
            "  Use one of compile_shader, mlx, coreai, kernel-builder, porter, extension, aten.",
        ),
        (("import", "none.py", "--from", "cuda"), "porter: PTR232 there is no form `cuda`"),
        (
            ("import", "templates/quickstart.py", "--from", "mlx"),
            "porter: templates/quickstart.py: PTR229 the file has ",
        ),
    ],
)
def test_a_form_or_a_file_that_is_none_is_told(arguments: tuple[str, ...], told: str, kernel: Run) -> None:
    done = kernel(*arguments)
    assert (done.returncode, done.stdout) == (2, "") and done.stderr.startswith(told), done.stderr


def test_one_of_several_kernels_has_to_be_named(kernel: Run, tmp_path: Path) -> None:
    done = kernel("export", "templates/quickstart.py", "--to", "mlx", "--out", str(tmp_path))
    assert done.returncode == 2
    assert_expected_inline(
        done.stderr,
        """\
porter: templates/quickstart.py: PTR240 the script has several kernels
  Name one with --kernel: fill, axpy.
""",
    )


def test_an_export_for_aten_takes_values_of_template_parameters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wishes = []

    def record(checkout: object, file: Path, wish: ScriptWish, folder: Path) -> list[Path]:
        wishes.append(wish)
        return [folder / "Rows.metal"]

    monkeypatch.setattr(promote, "export_operator", record)
    assert main(["kernel", "export", "rows.py", "--to", "aten", "--op", "rows", "--instantiate", "D=64,128"]) == 0
    assert wishes == [ScriptWish("rows", None, instantiate=(("D", (64, 128)),))]
    assert capsys.readouterr().out == "rows-aten/Rows.metal\n", "in a folder of its own"
