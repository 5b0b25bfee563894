"""Tests that may have failed before a port run on the fork as it was, once for each fork."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from porter.core import cache
from porter.core.checkout import EMBEDDED_FORK
from porter.core.layout import KERNELS
from porter.core.progress import Progress
from porter.server import server, worker
from porter.server.worker import RunOptions
from porter.verdict.baseline import EarlierResult
from porter.verdict.behavior import SampleResult, Status
from porter.verdict.messages import Answer, VerdictAnswer, VerifyRequest
from porter.verdict.result import Failure, Finding, Verdict, VerifyTarget

TARGET = VerifyTarget("silu", kernels=("silu",))
REQUEST = VerifyRequest(EMBEDDED_FORK, {"a.metal": "x"}, TARGET, None, "host", "default")
GRADIENT, FORWARD = "T.test_output_grad_match_silu_mps_float16", "T.test_output_match_silu_mps_float16"
WRONG = Finding("1 of 20 differ", 0, sample=0)


def verify(
    root: Path, earlier: object, texts: object, target: VerifyTarget, options: RunOptions, progress: Progress
) -> VerdictAnswer:
    failures = (
        Failure(GRADIENT, WRONG.what, "float16", kernel_calls=1, findings=(WRONG,)),
        Failure(FORWARD, "off", "float16", kernel_calls=1, findings=(Finding("off", 1),)),
    )
    shown = () if options.checked else failures[: 2 if options.expr else 1]
    return VerdictAnswer(Verdict("silu", "host", options.arithmetic, 3, len(shown), 0, 7, None, 0.5, failures=shown))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The tests that were run on the fork as it was, one run a line."""
    path = tmp_path / "log"
    path.touch()

    def run_baseline(
        root: Path,
        earlier: object,
        target: VerifyTarget,
        tests: Collection[str],
        arithmetic: str,
        progress: Progress,
        library: str = "",
    ) -> list[EarlierResult]:
        with path.open("a") as file:
            file.write(f"{arithmetic} {' '.join(tests)}\n")
        return [EarlierResult(test, "failed", (WRONG,)) for test in tests]

    monkeypatch.setattr(cache, "root", lambda: tmp_path / "cache")
    monkeypatch.setattr(worker, "verify", verify)
    monkeypatch.setattr(worker, "run_old_path", lambda *_: [])
    monkeypatch.setattr(worker, "run_baseline", run_baseline)
    return path


def verdict_of(answer: Answer) -> Verdict:
    assert isinstance(answer, VerdictAnswer), answer
    return answer.verdict


def test_a_failure_that_was_there_before_is_told_apart_and_cached(log: Path) -> None:
    for _ in range(2):
        found = verdict_of(server.answer(REQUEST))
        assert (found.ok, [each.test for each in found.failed_before]) == (True, [GRADIENT])
    assert log.read_text() == f"default {GRADIENT}\n"
    verdict_of(server.answer(replace(REQUEST, arithmetic="fused")))
    verdict_of(server.answer(replace(REQUEST, target=replace(TARGET, stubs=("silu_stub",)))))
    assert log.read_text().splitlines()[1:] == [f"fused {GRADIENT}", f"default {GRADIENT}"]


def test_every_arithmetic_has_its_own_baseline(log: Path) -> None:
    assert verdict_of(server.answer(replace(REQUEST, arithmetic="all"))).ok
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["default", "fused", "flush", "reorder"]


def test_what_kernels_computed_is_not_run_before_and_stays_a_failure(log: Path) -> None:
    found = verdict_of(server.answer(replace(REQUEST, expr="all")))
    assert [(each.test, each.before) for each in found.failures] == [(FORWARD, "not run")]
    assert log.read_text() == f"default {GRADIENT}\n"


def test_another_fork_has_another_baseline(log: Path, tmp_path: Path) -> None:
    verdict_of(server.answer(REQUEST))
    fork = tmp_path / "fork"
    yaml = fork / "aten/src/ATen/native/native_functions.yaml"
    lists = fork / "torch/testing/_internal/common_mps.py"
    for file in (yaml, lists):
        file.parent.mkdir(parents=True)
        file.write_text("")
    other = replace(REQUEST, root=fork)
    verdict_of(server.answer(other))
    lists.write_text("# changed")
    verdict_of(server.answer(other))
    assert len(log.read_text().splitlines()) == 3


def test_a_baseline_that_dies_excuses_nothing_and_is_not_cached(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "run_baseline", lambda *_: os._exit(3))
    found = verdict_of(server.answer(REQUEST))
    assert [(each.test, each.before) for each in found.failures] == [(GRADIENT, "crashed")]
    assert any(note.startswith("the fork before the port was not tested: PTR137") for note in found.notes)
    assert not list((log.parent / "cache").glob("baseline/*"))


def test_native_code_and_backends_without_host_code_have_no_baseline(log: Path) -> None:
    native = verdict_of(server.answer(replace(REQUEST, texts={})))
    assert [each.before for each in native.failures] == [""]
    kernels = verdict_of(server.answer(replace(REQUEST, backend="kernels")))
    assert [each.before for each in kernels.failures] == ["not run"]
    assert log.read_text() == ""


def test_a_written_port_is_compared_with_the_fork_before_it(log: Path, tmp_path: Path) -> None:
    """What was found of the fork before the port was written is that of the fork before the written port."""
    fork, path = shutil.copytree(EMBEDDED_FORK, tmp_path / "fork"), f"{KERNELS}/UnaryKernel.metal"
    planned = replace(REQUEST, root=fork, texts={path: "// the port"})
    verdict_of(server.answer(planned))
    before = (fork / path).read_text()
    (fork / path).write_text("// the port")
    assert verdict_of(server.answer(replace(planned, earlier={path: before}))).ok
    assert log.read_text() == f"default {GRADIENT}\n"
    verdict_of(server.answer(planned))
    assert len(log.read_text().splitlines()) == 2, "without it, the port itself is taken for the fork before"


@pytest.mark.parametrize("listed", [(), ("float32",)])
def test_neither_selected_tests_nor_listed_ones_pass_samples_that_got_worse(
    log: Path, monkeypatch: pytest.MonkeyPatch, listed: tuple[str, ...]
) -> None:
    def verify(*given: object) -> VerdictAnswer:
        passed = Verdict("silu", "host", "default", 3, 0, 0, 7, None, 0.5)
        samples = (SampleResult("float32", "silu sample 0", Status.DIFFERS, "1 for 2"),)
        return VerdictAnswer(passed, samples, listed)

    monkeypatch.setattr(worker, "verify", verify)
    monkeypatch.setattr(worker, "run_old_path", lambda *_: [SampleResult("float32", "silu sample 0", Status.AGREES)])
    whole = verdict_of(server.answer(REQUEST))
    assert whole.ok is not bool(listed), "all tests together judge its values, but those that are expected to fail"
    found = verdict_of(server.answer(replace(REQUEST, expr="error_inputs", selects=True)))
    assert [each.test for each in found.failures] == ["silu sample 0"]
