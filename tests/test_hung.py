"""A test that hangs once is run again and told; one that hangs twice, or ends its process, fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT, Run

CONFTEST = "from tests import hung\n\n\ndef pytest_configure(config):\n    hung.watch(config)\n"
TESTS = """import os, time
from pathlib import Path


def hang(times):
    tried = Path(__file__).with_name(f"tried{times}")
    count = len(tried.read_text()) if tried.exists() else 0
    tried.write_text("x" * (count + 1))
    if count < times:
        time.sleep(600)


def test_once():
    hang(1)


def test_twice():
    hang(2)


def test_end():
    os._exit(3)


def test_right():
    pass
"""


def test_what_becomes_of_tests_that_hang(tmp_path: Path, python: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_made_up.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    monkeypatch.setenv("PORTER_HUNG_SECONDS", "2")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for name in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT", "PYTEST_XDIST_TESTRUNUID"):
        monkeypatch.delenv(name, raising=False)
    shown = python("-m", "pytest", "-n", "1", "-p", "no:cacheprovider", str(tmp_path)).stdout
    assert "2 failed, 2 passed, 2 rerun" in shown, shown
    assert "test_made_up.py::test_once hung, and was run once more" in shown
    assert "in hang" in shown
    assert "crashed while running 'test_made_up.py::test_twice'" in shown
    assert "crashed while running 'test_made_up.py::test_end'" in shown
