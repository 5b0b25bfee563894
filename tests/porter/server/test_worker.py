"""What a run with bounds checks is built for."""

from __future__ import annotations

import pytest

from porter.server import worker
from porter.verdict.suite import runner
from porter.verdict.suite.context import Context


def test_tests_that_only_a_run_with_checks_has_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "select", lambda context, _expr: ["beyond"] if context.checks_memory else [])
    assert worker._selects_any(Context(), "test_indices_beyond")


def test_nothing_is_built_for_no_test_and_what_is_no_expression_is_told_by_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "select", lambda _context, _expr: [])
    assert not worker._selects_any(Context(), "test_edge_values")

    def refuse(_context: Context, _expr: str) -> list[str]:
        raise ValueError("no expression")

    monkeypatch.setattr(runner, "select", refuse)
    assert worker._selects_any(Context(), "and and")
