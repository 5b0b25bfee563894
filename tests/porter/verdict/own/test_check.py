"""A CUDA kernel of a person's own and its functor, both run on the host: they agree, or the tool says where not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.errors import PorterError
from porter.cuda.own import read_own_kernel
from porter.metal.own_functor import write_own_functor
from porter.report.kernel import describe_translation, translation_object
from porter.verdict.own.check import compare_functor, measure
from porter.workflows.own_kernel import translate_own_kernel

FILE = Path(__file__).parent / "own.cu"
FORK = Checkout(EMBEDDED_FORK, "test")
KERNELS = ("lambda_kernel", "clip_kernel", "in_place_kernel", "fade", "whole_kernel")


@pytest.mark.parametrize("name", KERNELS)
def test_a_functor_agrees_with_its_kernel_compiled_as_cpp(name: str) -> None:
    announced = list[str]()
    found = translate_own_kernel(FORK, (), str(FILE), name, True, announced.append)
    assert announced == [f"the code of {FILE} is compiled and run on this machine; --no-verify only translates it"]
    assert found.comparisons and found.done
    assert all(each.values > 4000 for each in found.comparisons)
    assert "was compiled as C++ and run on this machine" in describe_translation(found)


def test_a_wrong_functor_is_found_and_shown() -> None:
    fork = FORK.layer({FILE.name: FILE.read_text()})
    own = read_own_kernel(fork, FILE.name, "fade")
    functor = write_own_functor(fork, own)
    wrong = replace(functor, text=functor.text.replace("metal::fabs(", "("))
    assert wrong.text != functor.text
    [compared] = compare_functor(fork, own, wrong, FILE)
    assert compared.wrong is not None and compared.largest > 1000
    found = translate_own_kernel(FORK, (), str(FILE), "fade", run=False)
    shown = replace(found, comparisons=(compared,), not_compared="")
    assert not shown.done
    assert "FAIL at (" in describe_translation(shown)
    assert translation_object(shown)["values"][0]["wrong"]["ulps"] == compared.largest


def test_nothing_runs_where_that_is_not_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.run", lambda *_a, **_k: pytest.fail("a program was run"))
    monkeypatch.setattr("porter.metal.own_functor.format_block", lambda _fork, _file, text: text)
    found = translate_own_kernel(FORK, (), str(FILE), "whole_kernel", run=False)
    assert "not compared (--no-verify): nothing of" in describe_translation(found)
    assert translation_object(found)["ran"] is False


@pytest.mark.parametrize(
    ("name", "code", "what"),
    [
        ("two_outputs", "PTR337", "it stores to 2 arrays at [i], not to one"),
        ("shifted", "PTR079", "has no Metal equivalent"),
        ("unguarded", "PTR337", "it has no `if (i < n)` around what it stores"),
        ("missing", "PTR337", "this file defines no function missing"),
    ],
)
def test_other_forms_are_refused(name: str, code: str, what: str) -> None:
    with pytest.raises(PorterError) as caught:
        translate_own_kernel(FORK, (), str(FILE), name, run=False)
    assert caught.value.code == code
    assert what in caught.value.what


@pytest.mark.parametrize(
    ("ops", "file", "function"), [((), None, "f"), (("add",), "x.cu", "f"), ((), "x.cu", None), ((), "cuda", "f")]
)
def test_the_options_name_one_kernel(ops: tuple[str, ...], file: str | None, function: str | None) -> None:
    with pytest.raises(PorterError) as caught:
        translate_own_kernel(FORK, ops, file, function, run=False)
    assert caught.value.code == "PTR340"


def translate(folder: Path, text: str) -> PorterError:
    path = folder / "given.cu"
    path.write_text(text)
    with pytest.raises(PorterError) as caught:
        translate_own_kernel(FORK, (), str(path), "f", run=True)
    return caught.value


def test_a_file_that_is_not_cpp_is_named_with_its_line(tmp_path: Path) -> None:
    error = translate(tmp_path, "__device__ float f(float x) { return x; }\nvoid host() { cudaMalloc(); }\n")
    assert (error.code, error.place and error.place.line) == ("PTR338", 2)
    assert "cudaMalloc" in error.what


def test_a_kernel_that_ends_with_a_signal_is_named(tmp_path: Path) -> None:
    error = translate(tmp_path, "__device__ int f(int x) { return 7 / (x / 1000); }\n")
    assert (error.code, error.what) == ("PTR339", "f, compiled for the host, ended with status -8")


def test_errors_are_measured_beyond_what_float_explains() -> None:
    out, meant = torch.tensor([1.0, 1.0, float("nan"), 2.0]), torch.tensor([1.0, 1.0, 1.0, float("inf")]).double()
    off = measure(out + torch.tensor([0.0, 2.0**-20, 0.0, 0.0]), meant, meant)
    assert off.tolist() == [0.0, 8.0, float("inf"), float("inf")]
    lost = torch.tensor([1.0 + 2.0**-21]).double()
    assert measure(torch.tensor([1.0 + 2.0**-20]), torch.tensor([1.0]).double(), lost).tolist() == [0.0]
