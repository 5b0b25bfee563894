"""What every test may ask for, and no test is about time: a machine that is busy fails none."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from porter.core.cache import digest
from porter.workflows import decisions

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

ROOT = Path(__file__).resolve().parents[1]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def own_state(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """No test writes a journal into the state folder of whoever runs it."""
    folder = tmp_path_factory.getbasetemp() / "state"
    monkeypatch.setenv("PORTER_STATE", str(folder))
    return folder


@pytest.fixture(autouse=True)
def own_decisions(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No verdict that a test makes up is remembered for whoever runs it, nor for the next test."""
    folder, test = tmp_path_factory.getbasetemp() / "decisions", request.node.nodeid
    monkeypatch.setattr(decisions, "key", lambda *parts: folder / digest(test, *map(str, parts)))


@pytest.fixture
def python() -> Run:
    """Runs Python with arguments, from the repository's root."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)

    return run


@pytest.fixture
def on_device(python: Run) -> Run:
    """Runs a piece of code with the device present, which has to come up before torch is imported."""

    def run(code: str) -> subprocess.CompletedProcess[str]:
        return python("-m", "aten_overlay", "-c", code)

    return run


@pytest.fixture
def passes_inside(python: Run) -> Callable[[Path], None]:
    """Runs a suite in a process of its own under the plugin: ordinary tests that use torch's mps device."""

    def run(suite: Path) -> None:
        done = python("-m", "pytest", "-p", "aten_overlay.plugin", "-p", "no:cacheprovider", str(suite))
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
        assert " passed" in done.stdout and "skipped" not in done.stdout

    return run
