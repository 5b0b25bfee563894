"""The `mps` backend against a recording stand-in for `torch.mps.compile_shader`: what a Mac would be asked to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from expecttest import assert_expected_inline

from porter.core import cache
from porter.core.checkout import EMBEDDED_FORK, Checkout
from porter.core.layout import KERNELS
from porter.core.progress import ignore
from porter.report.verdict import summary
from porter.server import worker
from porter.verdict.backends.kernels import APPLE_GPU
from porter.verdict.build.tree import materialise
from porter.verdict.native import native_target
from porter.verdict.result import Verdict

UNARY = f"{KERNELS}/UnaryKernel.metal"


@dataclass
class Recorder:
    """The sources given to `compile_shader`, and one line for every kernel called: name, arguments, grid and casts."""

    sources: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)


@dataclass
class Recorded:
    library: Any
    recorder: Recorder

    def __dir__(self) -> list[str]:
        return dir(self.library)

    def __getattr__(self, name: str) -> Callable[..., None]:
        kernel = getattr(self.library, name)

        def call(*args: Any, threads: list[int], arg_casts: dict[int, str]) -> None:
            told = ", ".join(str(tuple(a.shape)) if isinstance(a, torch.Tensor) else str(a) for a in args)
            self.recorder.calls.append(f"{name}({told}) threads={threads} arg_casts={arg_casts}")
            kernel(*args, threads=threads, arg_casts=arg_casts)

        return call


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    found, compile_shader = Recorder(), torch.mps.compile_shader

    def compiled(source: str) -> Recorded:
        found.sources.append(source)
        return Recorded(compile_shader(source), found)

    monkeypatch.setattr(torch.mps, "compile_shader", compiled)
    return found


def verdict(op: str, texts: dict[str, str], expr: str) -> Verdict:
    target = native_target(Checkout(EMBEDDED_FORK, "embedded"), op)
    return worker.verify(EMBEDDED_FORK, {}, texts, target, worker.RunOptions(expr, "mps", "default"), ignore).verdict


def test_the_kernels_are_called_as_the_host_code_would(recorder: Recorder) -> None:
    found = verdict("copysign", {}, "float32 or int64")
    assert found.ok, found.failures[:2]
    assert found.kernel_calls == len([call for call in recorder.calls if call.startswith("copysign_")])
    assert "(backend mps (not yet run on Apple hardware)" in summary(found)
    recorder.calls.clear()
    x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device="mps")
    torch.copysign(x, -x)
    torch.copysign(x.T, torch.tensor([-1.0, 1.0], device="mps"))
    torch.copysign(x.long(), -2.0)
    assert_expected_inline(
        "\n".join(recorder.calls),
        """\
copysign_dense_float_float((2, 3), (2, 3), (2, 3)) threads=[6] arg_casts={}
copysign_strided_float_float((3, 2), (3, 2), (3, 2), [2, 3], [4, 8], [12, 4], [4, 0], [2, 6, 6, 6]) threads=[6] arg_casts={7: 'int32'}
copysign_strided_cast_float_float((2, 3), (2, 3), (2, 3), [3, 2], [4, 12], [8, 24], [0, 0], [2, 4, 6, 6]) threads=[6] arg_casts={7: 'int32'}""",
    )


def test_the_headers_of_the_fork_are_used(recorder: Recorder) -> None:
    edited = "c10/metal/utils.h"
    text = (EMBEDDED_FORK / edited).read_text().replace("#pragma once", "#pragma once\n// an edit of the plan")
    tree = materialise(EMBEDDED_FORK, {edited: text}, cache.root())
    APPLE_GPU.load_operator(tree, native_target(Checkout(EMBEDDED_FORK, "embedded"), "sub"), "default", checked=False)
    (source,) = recorder.sources
    assert source.count("// an edit of the plan") == 1
    assert "#include <c10" not in source and "#include <metal_stdlib>" in source
    recorder.calls.clear()
    x = torch.tensor([1, 2], device="mps")
    assert torch.sub(x, x, alpha=3).cpu().tolist() == [-2, -4]
    assert_expected_inline(
        "\n".join(recorder.calls), """sub_alpha_dense_long_long_long((2,), (2,), (2,), 3) threads=[2] arg_casts={}"""
    )


def test_a_wrong_functor_fails_the_verdict(recorder: Recorder) -> None:
    text = (EMBEDDED_FORK / UNARY).read_text()
    wrong = text.replace("::exp(", "::exp2(")
    assert wrong != text
    found = verdict("exp", {UNARY: wrong}, "test_output_match and float32")
    assert not found.ok and recorder.calls
