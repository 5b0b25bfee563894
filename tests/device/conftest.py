"""Programs that run in a process of their own, because the device has to come up before torch is imported."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def python() -> Run:
    """Runs Python with arguments, from the repository's root."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, cwd=ROOT)

    return run


@pytest.fixture
def on_device(python: Run) -> Run:
    """Runs a piece of code with the device present."""

    def run(code: str) -> subprocess.CompletedProcess[str]:
        return python("-m", "aten_overlay", "-c", code)

    return run
