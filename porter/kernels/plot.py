"""Draws a benchmark. matplotlib is an extra: `pip install porter[plot]`."""

from __future__ import annotations

from pathlib import Path

from porter.core.errors import PorterError
from porter.kernels.benchmark import BenchmarkReport


def draw(report: BenchmarkReport, path: Path) -> None:
    """Writes the times of kernel and torch over the sizes to `path`; its suffix is the format. Raises PTR233."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PorterError(
            "PTR233", "plots need matplotlib, which is not installed", hint="Install it: pip install 'porter[plot]'."
        ) from error
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot(title=f"{report.kernel} on {report.device}", ylabel="microseconds per call", yscale="log")
    labels = [m.inputs for m in report.measurements]
    axes.plot(labels, [m.best.seconds * 1e6 for m in report.measurements], marker="o", label="kernel")
    axes.plot(labels, [m.torch_seconds * 1e6 for m in report.measurements], marker="o", label="torch")
    axes.tick_params(axis="x", rotation=30)
    axes.legend()
    figure.savefig(path)
