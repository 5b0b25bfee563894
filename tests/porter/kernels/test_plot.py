"""Plots of a benchmark, and what is said where matplotlib is missing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from porter.core.errors import PorterError
from porter.kernels.benchmark import BenchmarkReport, Measurement, Timing, draw

REPORT = BenchmarkReport(
    "silu",
    "the stand-in",
    tuple(Measurement(f"float32[{n}]", (Timing((64, 1, 1), n * 1e-6),), n * 2e-6) for n in (10, 100)),
)


def test_a_plot_is_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(REPORT, tmp_path / "silu.png")
    assert (tmp_path / "silu.png").read_bytes().startswith(b"\x89PNG")


def test_matplotlib_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(PorterError, match=r"PTR233 .*\n.*porter\[plot\]"):
        draw(REPORT, tmp_path / "silu.png")
