"""What the tests of the suite share: what came of calls on the CPU, and how samples are drawn."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from porter.verdict.suite import kept_outcomes, torch_tools


@pytest.fixture(autouse=True, scope="session")
def quick_tools() -> None:
    """Samples are drawn as verdicts draw them: torch's own tools look through all source files for each."""
    torch_tools.make_quick()


@pytest.fixture(autouse=True)
def outcomes(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Outcomes are kept between the tests of a worker as verdicts keep them, though nothing watches the CPU's memory.

    To ask child processes again took half of the time of these tests.
    """
    folder = tmp_path_factory.getbasetemp() / "outcomes"
    monkeypatch.setattr(kept_outcomes, "_find_file", lambda name: folder / name)
    monkeypatch.setattr(kept_outcomes, "cpu_memory", SimpleNamespace(is_installed=lambda: True))
