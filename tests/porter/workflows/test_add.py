"""`porter add` as a person runs it: operators that MPS lacks, new operators, and what is refused."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import COMMON_MPS, DERIVATIVES, DOCSTRINGS, FUNCTION_LIST
from tests.hostile import fill_with_traps, list_sprung, porter_command
from tests.porter.plan.lacking import expect_failure, make_fork

ROOT = Path(__file__).resolve().parents[3]
VERDICT = re.compile(r"^(?P<op>\w+): (?P<word>PASS|FAIL): (?P<passed>\d+) passed, (?P<failed>\d+) failed, .*host", re.M)
WAVE = "damped(Tensor self, *, float rate=1) -> Tensor"


@pytest.fixture(autouse=True)
def hostile(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The current folder has modules of its own, and none of them runs."""
    folder = fill_with_traps(tmp_path_factory.mktemp("hostile"))
    monkeypatch.chdir(folder)
    yield
    assert list_sprung(folder) == []


def porter(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(porter_command(*arguments), capture_output=True, text=True, check=False)


def read_files(fork: Path) -> dict[str, bytes]:
    return {str(path.relative_to(fork)): path.read_bytes() for path in fork.rglob("*") if path.is_file()}


@pytest.fixture
def complete(tmp_path: Path) -> Path:
    """A fork with the files of a whole PyTorch that a new operator has entries in."""
    fork = tmp_path / "fork"
    shutil.copytree(EMBEDDED_FORK, fork)
    for path, text in (
        (DERIVATIVES, "# Formulas\n- name: abs(Tensor self) -> Tensor\n  self: grad * self.sgn()\n"),
        (DOCSTRINGS, "from torch._C import _add_docstr as add_docstr\n"),
        (FUNCTION_LIST, "Pointwise Ops\n~~~~~\n\n.. autosummary::\n    :toctree: generated\n    :nosignatures:\n\n"
                        "    abs\n    sin\n    tan\n\nReduction Ops\n"),
    ):  # fmt: skip
        (fork / path).parent.mkdir(parents=True, exist_ok=True)
        (fork / path).write_text(text)
    return fork


def test_an_operator_that_mps_lacks_passes_and_its_expected_failure_goes(tmp_path: Path) -> None:
    fork = make_fork(tmp_path / "fork")
    expect_failure(fork, "heaviside")
    done = porter("add", "heaviside", "--checkout", str(fork.root))
    verdict = VERDICT.search(done.stdout)
    assert verdict, done.stdout[-3000:] + done.stderr
    assert (verdict["word"], verdict["failed"]) == ("PASS", "0"), done.stdout[-3000:]
    assert int(verdict["passed"]) > 30
    assert '-            "heaviside": None,' in done.stdout
    assert "removed from the test lists" in done.stdout


def test_a_kernel_that_computes_something_else_fails(tmp_path: Path) -> None:
    fork = make_fork(tmp_path / "fork")
    kernels = next(fork.root.rglob("StepsKernel.cpp"))
    kernels.write_text(kernels.read_text().replace("static_cast<scalar_t>(a > 0)", "static_cast<scalar_t>(a >= -1)"))
    done = porter("add", "heaviside", "-k", "test_output_match and float32", "--checkout", str(fork.root))
    verdict = VERDICT.search(done.stdout)
    assert verdict and verdict["word"] == "FAIL", done.stdout[-3000:] + done.stderr
    assert "test_output_match_heaviside_mps_float32" in done.stdout
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("schema", "expression", "tests"),
    [
        (WAVE, "exp(-rate * self) * cos(self)", ("gradcheck", "grad_match")),
        ("log_ratio(Tensor self, Tensor other) -> Tensor", "log(self / other)", ("gradcheck",)),
        ("clipped(Tensor self) -> Tensor", "hypot(trunc(self), 1)", ()),
    ],
    ids=["damped", "log_ratio", "clipped"],
)
def test_a_new_operator_passes_from_its_plan_alone(
    schema: str, expression: str, tests: tuple[str, ...], complete: Path
) -> None:
    before = read_files(complete)
    done = porter("add", "--schema", schema, "--expr", expression, "--checkout", str(complete))
    verdict = VERDICT.search(done.stdout)
    assert verdict, done.stdout[-3000:] + done.stderr
    assert (verdict["word"], verdict["failed"], done.returncode) == ("PASS", "0", 0), done.stdout[-3000:]
    assert int(verdict["passed"]) > 150
    assert ("derivatives.yaml" in done.stdout) == bool(tests)
    assert read_files(complete) == before


def test_a_checkout_without_derivatives_gets_no_gradient(complete: Path) -> None:
    (complete / DERIVATIVES).unlink()
    done = porter("add", "--schema", WAVE, "--expr", "exp(-rate * self)", "--checkout", str(complete))
    verdict = VERDICT.search(done.stdout)
    assert verdict and (verdict["word"], verdict["failed"]) == ("PASS", "0"), done.stdout[-3000:] + done.stderr
    assert "the checkout has no tools/autograd/derivatives.yaml, so the operator has no gradient" in done.stdout


def test_a_functor_that_computes_something_else_fails(complete: Path, tmp_path: Path) -> None:
    functor = tmp_path / "damped.metal"
    wrong = "precise::exp(float(rate) * float(x)) * precise::cos(float(x))"
    functor.write_text(
        "struct damped_functor {\n"
        "  template <typename T, typename A>\n"
        "  inline enable_if_t<is_floating_point_v<T>, T> operator()(const T x, const A rate) {\n"
        f"    return static_cast<T>({wrong});\n  }}\n"
        "  template <typename T, typename A>\n"
        "  inline enable_if_t<is_integral_v<T>, float> operator()(const T x, const A rate) {\n"
        f"    return {wrong};\n  }}\n}};\n"
    )
    given = ("add", "--schema", WAVE, "--functor", str(functor), "--expr", "exp(-rate * self) * cos(self)")
    done = porter(*given, "--checkout", str(complete))
    verdict = VERDICT.search(done.stdout)
    assert verdict and verdict["word"] == "FAIL", done.stdout[-3000:] + done.stderr
    assert "not close" in done.stdout
    assert done.returncode == 1


def test_written_refused_the_second_time_and_undone(complete: Path) -> None:
    before = read_files(complete)
    given = ("add", "--schema", WAVE, "--expr", "exp(-rate * self)", "--no-verify", "--checkout", str(complete))
    assert porter(*given, "--write").returncode == 0
    after = read_files(complete)
    assert sorted(after.keys() - before.keys()) == [
        "aten/src/ATen/native/Damped.cpp",
        "aten/src/ATen/native/Damped.h",
        "aten/src/ATen/native/cpu/DampedKernel.cpp",
    ]
    assert b"- name: damped(Tensor self, *, float rate=1) -> Tensor\n" in after[DERIVATIVES]
    assert b"    abs\n    damped\n    sin\n" in after[FUNCTION_LIST]
    assert b"torch.damped,\n" in after[DOCSTRINGS]
    assert b"damped" not in after[COMMON_MPS]
    again = porter(*given)
    assert "PTR318" in again.stderr
    assert again.returncode == 2
    assert porter("undo", "--checkout", str(complete)).returncode == 0
    assert read_files(complete) == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), "PTR320"),
        (("atan2", "--expr", "self"), "PTR320"),
        (("--expr", "self"), "PTR320"),
        (("--schema", WAVE), "PTR320"),
        (("--schema", "damped", "--expr", "self"), "PTR314"),
        (("--schema", "damped(float rate) -> Tensor", "--expr", "rate"), "PTR315"),
        (("--schema", WAVE, "--expr", "self +"), "PTR316"),
        (("--schema", WAVE, "--expr", "self * speed"), "PTR317"),
        (("--schema", "atan2(Tensor self) -> Tensor", "--expr", "self"), "PTR318"),
        (("--schema", WAVE, "--functor", "no/such/file"), "PTR319"),
        (("atan2",), "PTR311"),
        (("no_such_operator",), "PTR012"),
    ],
)
def test_a_wrong_use_has_its_code(arguments: tuple[str, ...], code: str) -> None:
    done = porter("add", *arguments, "--no-verify", "--checkout", str(EMBEDDED_FORK))
    assert code in done.stderr
    assert done.stdout == ""
    assert done.returncode == 2


def test_operators_that_cannot_be_added_do_not_stop_the_others(tmp_path: Path) -> None:
    fork = make_fork(tmp_path / "fork")
    before = read_files(fork.root)
    given = ("--no-verify", "--unverified", "--checkout", str(fork.root))
    done = porter("add", "no_such_operator", "wave", "most_common", "heaviside", "--write", *given)
    assert re.findall(r"^porter: (\w+): .*(PTR\d+)", done.stderr, re.M) == [
        ("no_such_operator", "PTR012"),
        ("most_common", "PTR310"),
    ]
    assert re.findall(r"^\+struct (\w+)_functor", done.stdout, re.M) == ["wave", "heaviside"]
    assert done.returncode == 1
    told = done.stderr[done.stderr.index("what became of each:") :].splitlines()[1:]
    assert [line.split(": PTR")[0] for line in told if line.startswith("  ")] == [
        "  no_such_operator: not planned", "  wave: planned", "  most_common: not planned", "  heaviside: planned",
    ]  # fmt: skip
    assert len(added := read_files(fork.root)) == len(before) and added != before
    none = porter("add", "no_such_operator", "most_common", "--write", *given)
    assert (none.returncode, none.stdout, read_files(fork.root)) == (2, "", added)


def test_what_mps_lacks_is_printed(tmp_path: Path) -> None:
    fork = make_fork(tmp_path / "fork")
    done = porter("status", "--missing", "--checkout", str(fork.root))
    assert re.search(r"^heaviside +elementwise +can add it$", done.stdout, re.M)
    assert re.search(r"^most_common +row-wise +PTR310 its CPU code calls ", done.stdout, re.M)
    assert "4 operators: porter can add 3" in done.stdout
    shown = porter("explain", "distances", "--no-record", "--checkout", str(fork.root))
    assert "missing on MPS\n  most_common needs a kernel of the row-wise family" in shown.stdout
