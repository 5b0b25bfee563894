"""What a run with bounds checks is built for."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import NoReturn

import pytest
from torch.testing._internal import common_device_type

import aten_overlay
from porter.core.garbage import SELDOM
from porter.server import command, worker
from porter.verdict.backends import host
from porter.verdict.suite import consistency, execution, runner
from porter.verdict.suite.context import Context


def test_tests_that_only_a_run_with_checks_has_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "select", lambda context, _expr: ["beyond"] if context.checks_memory else [])
    assert worker._selects_any(Context(), "test_indices_beyond")


def test_gradients_are_checked_where_they_alone_call_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution._execution, "redirect", nullcontext())
    bases = list(common_device_type.device_type_test_bases)
    monkeypatch.setattr(common_device_type, "device_type_test_bases", bases)
    monkeypatch.setattr(consistency, "device_type_test_bases", bases)
    of_slopes = Context(
        ("_log_softmax_backward_data",), through_backward=("log_softmax", "nn.functional.cross_entropy")
    )
    checked = replace(of_slopes, checks_memory=True)
    assert runner.select(checked, worker.CHECKED) == [
        "TestSlopeLayoutsMPS.test_slopes_by_layouts_log_softmax_mps_float32",
        "TestVariationsMPS.test_call_layouts_log_softmax_mps_float32",
        "TestVariationsMPS.test_outs_log_softmax_mps_float32",
    ]
    assert not runner.select(Context(("cumsum",), checks_memory=True), "test_slopes_by_layouts")


def test_nothing_is_built_for_no_test_and_what_is_no_expression_is_told_by_the_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "select", lambda _context, _expr: [])
    assert not worker._selects_any(Context(), "test_edge_values")

    def refuse(_context: Context, _expr: str) -> list[str]:
        raise ValueError("no expression")

    monkeypatch.setattr(runner, "select", refuse)
    assert worker._selects_any(Context(), "and and")


class _StopError(Exception):
    pass


@pytest.mark.parametrize("preload", [partial(worker.preload, host.NAME), command.preload])
def test_garbage_is_seldom_looked_for_while_a_server_imports(
    preload: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    thresholds: list[tuple[int, int, int]] = []

    def start() -> NoReturn:
        thresholds.append(gc.get_threshold())
        raise _StopError

    monkeypatch.setattr(host, "start", start)
    monkeypatch.setattr(aten_overlay, "start", start)
    before = gc.get_threshold()
    monkeypatch.setattr("porter.core.garbage.SELDOM", (SELDOM[0] + 1, *SELDOM[1:]))  # than tests have by themselves
    with pytest.raises(_StopError):
        preload()
    assert thresholds == [(SELDOM[0] + 1, *SELDOM[1:])]
    assert gc.get_threshold() == before
